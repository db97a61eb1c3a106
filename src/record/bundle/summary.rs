//! `README.md` of a bundle: what a reader of a bug report wants to know first.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::model::{ActionId, Bytes, EnvOrigin, Remedy};
use crate::record::story::Story;

use super::{Contents, FreeText};

/// Findings, cited lines and changes that are listed.
const LISTED: usize = 40;
/// Longest text of a cell.
const CELL: usize = 300;

/// A text that does not break a table or a list.
fn cell(text: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let mut cell: String = text.chars().take(CELL).map(printable).collect();
    if text.chars().count() > CELL {
        cell.push('…');
    }
    // placeholders are no HTML, and a table has no further columns
    cell.replace('<', "&lt;").replace('|', "\\|")
}

/// A text as code.
fn code(text: &str) -> String {
    let printable = |c: char| if c.is_control() || c == '`' { ' ' } else { c };
    format!(
        "`{}`",
        text.chars().take(CELL).map(printable).collect::<String>()
    )
}

/// The page, from events that are redacted already.
pub(super) fn page(story: &Story, contents: &Contents) -> String {
    let mut out = format!("# framepack-tui run {}\n\n", contents.run);
    // writing into a string does not fail
    let _ = what_happened(&mut out, story)
        .and_then(|()| machine(&mut out, story))
        .and_then(|()| timeline(&mut out, story))
        .and_then(|()| findings(&mut out, story))
        .and_then(|()| settings(&mut out, story))
        .and_then(|()| about(&mut out, story, contents));
    out
}

fn what_happened(out: &mut String, story: &Story) -> std::fmt::Result {
    match &story.main {
        Some((at, v)) => {
            let (id, phase, clock) = (v.id, v.phase, at.clock());
            write!(out, "**Verdict: {id}** in {phase}, {clock} after the start")?;
            if !v.id.is_no_fault() {
                write!(out, ", trouble since {}", v.onset.clock())?;
            }
            writeln!(out, ".\n\n{}\n", cell(&v.sentence))?;
            let helps = |r: &&Remedy| r.action != ActionId::None;
            if let Some(remedy) = v.remedy.as_ref().filter(helps) {
                writeln!(
                    out,
                    "What would help: {} ({}).\n",
                    cell(&remedy.why),
                    remedy.action
                )?;
            }
        }
        None => writeln!(out, "**No verdict.**\n")?,
    }
    match &story.end {
        Some((outcome, code, summary)) => writeln!(
            out,
            "End: {}, {} (exit code {code} of framepack-tui)\n",
            outcome.short(),
            cell(summary)
        ),
        None => writeln!(
            out,
            "The record has no end: the run still went on, or its supervisor was killed.\n"
        ),
    }
}

fn machine(out: &mut String, story: &Story) -> std::fmt::Result {
    writeln!(out, "## Machine and program\n\n| | |\n| --- | --- |")?;
    if let Some(card) = &story.card {
        let arch = card.arch.as_deref().unwrap_or("unknown architecture");
        let vram = card
            .vram_total
            .fresh()
            .map_or_else(String::new, |b| format!(", {b}"));
        let apu = if card.apu { ", APU" } else { "" };
        writeln!(
            out,
            "| card | {} ({arch}{vram}{apu}), read by {} |",
            cell(&card.name),
            cell(&card.source)
        )?;
    }
    if let Some(memory) = story.memory {
        writeln!(out, "| memory | {} |", Bytes(memory))?;
    }
    if let Some(head) = &story.started {
        writeln!(
            out,
            "| framepack-tui | {} (stream {}) |",
            cell(&head.program),
            cell(&head.schema)
        )?;
        writeln!(out, "| began | {} |", cell(&head.wall_clock))?;
        writeln!(
            out,
            "| command | {} |",
            code(&head.argv.join(" ")).replace('|', "\\|")
        )?;
        writeln!(out, "| adapter | {} |", cell(&head.adapter))?;
        writeln!(
            out,
            "| profile | {} ({}) |",
            cell(&head.profile),
            cell(&head.profile_why)
        )?;
        if let Some(cap) = head.vram_cap {
            writeln!(out, "| VRAM cap | {cap} |")?;
        }
    }
    writeln!(
        out,
        "| length | {}, {} events, {} console lines, {} readings |\n",
        story.last.clock(),
        story.events,
        story.lines,
        story.samples
    )
}

fn timeline(out: &mut String, story: &Story) -> std::fmt::Result {
    writeln!(out, "## Timeline\n\n| time | | |\n| --- | --- | --- |")?;
    for m in &story.moments {
        writeln!(
            out,
            "| {} | {} | {} |",
            m.at.clock(),
            m.about,
            cell(&m.text)
        )?;
    }
    if story.more_moments > 0 {
        writeln!(out, "\n{} more in between.", story.more_moments)?;
    }
    writeln!(out)
}

fn findings(out: &mut String, story: &Story) -> std::fmt::Result {
    let Some((_, verdict)) = &story.main else {
        return Ok(());
    };
    writeln!(out, "## Findings\n")?;
    for finding in verdict.findings.iter().take(LISTED) {
        let often = match finding.count {
            0 | 1 => String::new(),
            n => format!(" ({n} times)"),
        };
        writeln!(out, "- {}: {}{often}", finding.verdict, cell(&finding.text))?;
        for cite in finding.cites.iter().take(LISTED) {
            let line = cite
                .line
                .map_or_else(String::new, |n| format!(", line {n}"));
            writeln!(
                out,
                "  - {} (event {}{line}): {}",
                cite.at.clock(),
                cite.seq,
                code(&cite.text)
            )?;
        }
    }
    for out_ruled in verdict.ruled_out.iter().take(LISTED) {
        writeln!(out, "- ruled out: {}", cell(out_ruled))?;
    }
    writeln!(out)
}

fn settings(out: &mut String, story: &Story) -> std::fmt::Result {
    writeln!(out, "## What was tried\n")?;
    if let Some(attached) = story.started.as_ref().and_then(|s| s.attached) {
        writeln!(
            out,
            "- nothing: process {} was there before and was only watched\n",
            attached.pid
        )?;
        return Ok(());
    }
    for spec in &story.attempts {
        writeln!(
            out,
            "- attempt {} on {} (action {}, tier {})",
            spec.number,
            cell(&spec.rung.0),
            spec.action,
            spec.tier
        )?;
        for change in spec.env.iter().take(LISTED) {
            let value = change.value.as_deref().unwrap_or("(removed)");
            writeln!(
                out,
                "  - {} by the {}",
                code(&format!("{}={value}", change.name)),
                origin(change.origin)
            )?;
        }
        for (key, value) in spec.settings.iter().take(LISTED) {
            writeln!(out, "  - {}", code(&format!("{key} = {value}")))?;
        }
    }
    writeln!(out)
}

const fn origin(origin: EnvOrigin) -> &'static str {
    match origin {
        EnvOrigin::Supervisor => "supervisor",
        EnvOrigin::Profile => "profile",
        EnvOrigin::User => "user",
        EnvOrigin::Rung => "rung",
        EnvOrigin::Live => "user while watching",
    }
}

/// What the redaction looks for; prompts only where they are not wanted.
pub const fn looked_for(text: FreeText) -> &'static str {
    match text {
        FreeText::All => {
            "tokens and passwords, names of accounts and machines, addresses, serial numbers"
        }
        FreeText::Masked | FreeText::Searched => {
            "tokens and passwords, names of accounts and machines, addresses, serial numbers, prompts"
        }
    }
}

fn about(out: &mut String, story: &Story, contents: &Contents) -> std::fmt::Result {
    writeln!(
        out,
        "## This file\n\nMade by framepack-tui {}.",
        contents.program
    )?;
    if contents.redactions.is_empty() {
        let what = looked_for(contents.text);
        writeln!(out, "Looked for {what}: none was found.")?;
    } else {
        writeln!(
            out,
            "Replaced by placeholders: {}.",
            counted(&contents.redactions)
        )?;
    }
    writeln!(out, "{}\n", text_note(contents))?;
    for what in &contents.left_out {
        writeln!(out, "- left out: {}", cell(what))?;
    }
    for report in &story.evidence {
        for item in report.items.iter().filter(|i| i.failed.is_some()) {
            let why = item.failed.as_deref().unwrap_or_default();
            writeln!(
                out,
                "- evidence {}: {} {}: {}",
                report.number,
                item.kind,
                if item.absent { "absent" } else { "failed" },
                cell(why)
            )?;
        }
    }
    Ok(())
}

fn text_note(contents: &Contents) -> String {
    const LOOK: &str = "What is private and looks like anything else cannot be told: look through it before you publish it.";
    match contents.text {
        FreeText::Masked => format!(
            "Free text is not in it: {} are placeholders, the same for the same text.",
            counted(&contents.masked)
        ),
        FreeText::Searched => {
            format!("Free text is in it on request; prompts were taken out. {LOOK}")
        }
        FreeText::All => format!("Free text is in it on request, prompts included. {LOOK}"),
    }
}

fn counted(counts: &BTreeMap<String, u64>) -> String {
    let each: Vec<String> = counts
        .iter()
        .map(|(what, n)| format!("{what} {n}"))
        .collect();
    each.join(", ")
}
