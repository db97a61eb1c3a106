//! `framepack-tui runs show`: one run in a page of text, or its events as JSON lines.

use std::io;

use crate::cli::{CliError, find};
use crate::model::{Bytes, Event};
use crate::record::story::Story;
use crate::record::{Events, RunEntry, RunStatus, open_text};

use super::{print, printable};

/// Shows the run.
pub(super) fn main(asked: Option<&str>, json: bool) -> Result<u8, CliError> {
    let run = find::run(asked)?;
    if json {
        // the first event tells whether there are any
        let mut events = Events::open(&run.path)?;
        if events.next()?.is_none() {
            require_any(&run, &events)?;
        }
        let mut text = open_text(&run.path)?;
        return match io::copy(&mut text, &mut io::stdout().lock()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(CliError::System {
                what: "print the record",
                why: e,
            }),
            _ => Ok(0),
        };
    }
    let mut events = Events::open(&run.path)?;
    let mut story = Story::default();
    while let Some((envelope, _)) = events.next()? {
        // ticks say nothing, and are half of all events
        if envelope.event != Event::Tick {
            story.take(&envelope);
        }
    }
    require_any(&run, &events)?;
    let mut lines = page(&run, &story);
    lines.extend(events.warnings().iter().map(|w| format!("warning     {w}")));
    if events.more_warnings() > 0 {
        lines.push(format!("warning     {} more", events.more_warnings()));
    }
    print(lines.iter().map(|l| printable(l)))?;
    Ok(0)
}

/// A record without any event is broken, unless it has only just begun.
fn require_any(run: &RunEntry, events: &Events) -> Result<(), CliError> {
    if run.status != RunStatus::Running {
        events.require_any()?;
    }
    Ok(())
}

fn page(run: &RunEntry, story: &Story) -> Vec<String> {
    let mut lines = vec![
        format!("run         {}", run.id),
        format!("state       {}", run.state()),
    ];
    if let Some(head) = &story.started {
        if let Some(attached) = head.attached {
            lines.push(format!(
                "watched     process {}, which was there before: judged, and left alone but on your word",
                attached.pid
            ));
        }
        let when = head.wall_clock.replace('T', " ");
        lines.push(format!("began       {when}, {} long", story.last.clock()));
        lines.push(format!("command     {}", head.argv.join(" ")));
        lines.push(format!("in          {}", head.cwd));
        lines.push(format!(
            "profile     {} ({})",
            head.profile, head.profile_why
        ));
        lines.push(format!(
            "recorded by framepack-tui {}, stream {}",
            head.program, head.schema
        ));
    }
    if let Some(card) = &story.card {
        let arch = card.arch.as_deref().unwrap_or("architecture not known");
        lines.push(format!("card        {} ({arch})", card.name));
    }
    let size = Bytes(run.size());
    lines.push(format!("folder      {} ({size})", run.path.display()));
    // of a process that is not ours there are none
    for spec in story.attempts.iter().filter(|_| !story.is_watch()) {
        lines.push(format!("attempt     {} on {}", spec.number, spec.rung));
    }
    match &story.main {
        Some((at, v)) => lines.push(format!(
            "verdict     {} in {} at {}: {}",
            v.id,
            v.phase,
            at.clock(),
            v.sentence
        )),
        None => lines.push("verdict     none".to_owned()),
    }
    for report in &story.evidence {
        lines.push(format!("evidence    {} ({})", report.dir, report.counts()));
    }
    match &story.end {
        Some((outcome, code, summary)) => lines.push(format!(
            "end         {}: {summary} (our exit code {code})",
            outcome.short()
        )),
        None => lines.push("end         none is recorded".to_owned()),
    }
    if let Some(result) = &story.result {
        lines.push(format!("result      {result}"));
    }
    lines.push(format!(
        "events      {} besides ticks: {} console lines, {} readings",
        story.events, story.lines, story.samples
    ));
    lines.push(String::new());
    for m in &story.moments {
        lines.push(format!("{} {:<9} {}", m.at.clock(), m.about, m.text));
    }
    if story.more_moments > 0 {
        lines.push(format!(
            "{} more in between; --json prints everything",
            story.more_moments
        ));
    }
    lines
}
