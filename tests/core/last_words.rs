//! A program's last words come by two ways, its console and its agent, in any order: the
//! verdict is the same.

use std::time::Duration;

use framepack_tui::model::agent::AgentHello;
use framepack_tui::model::{
    AgentNote, AgentWay, AgentWord, Event, ExitStatus, JobChange, Phase, PhaseChange, Progress,
    Speaker, VerdictId,
};

use crate::sim::{Sim, plan};

/// What a program tells at its end, and how.
#[derive(Debug, Clone, Copy)]
enum Told<'a> {
    /// Its agent: the job failed, and why.
    Failed(Option<&'a str>),
    /// Its agent ends with it.
    Ends,
    /// A line of its console.
    Line(&'a str),
    /// What the console's reader makes of a line that came late: a step on the CPU.
    Step,
    /// The same of a bar.
    Bar,
    /// The same of a file that was written.
    Saves,
}

fn note(word: AgentWord) -> Event {
    Event::Agent(Box::new(AgentNote { pid: 101, word }))
}

fn phase(phase: Phase, on_cpu: bool) -> Event {
    Event::Phase(PhaseChange {
        phase,
        section: None,
        sections: None,
        on_cpu,
    })
}

fn tell(sim: &mut Sim, told: Told<'_>) {
    match told {
        Told::Failed(why) => sim.feed_from(
            Some(Speaker::Agent),
            Event::Job(JobChange::Failed {
                why: why.map(str::to_owned),
            }),
        ),
        Told::Ends => sim.feed(note(AgentWord::Ended)),
        Told::Line(text) => sim.line(text),
        Told::Step => sim.feed(phase(Phase::VaeDecode, true)),
        Told::Saves => sim.feed(phase(Phase::Save, false)),
        Told::Bar => sim.feed(Event::Progress(Progress {
            what: None,
            done: 25.0,
            total: Some(25.0),
            seconds_per_step: None,
            sampling: true,
            closed: false,
        })),
    }
}

/// Verdict, confidence and sentence of a program that says this and exits with `code`.
fn verdict(told: &[Told<'_>], code: i32) -> (VerdictId, f64, String) {
    let mut plan = plan();
    plan.agent = AgentWay::On;
    let mut sim = Sim::running_in(plan, Phase::ModelLoad);
    sim.feed(note(AgentWord::Hello(AgentHello {
        protocol: 1,
        agent: "0.1.0".to_owned(),
        python: "3.11.4".to_owned(),
        stacks_by_signal: true,
        rank: None,
    })));
    sim.feed(note(AgentWord::Main));
    sim.feed_from(Some(Speaker::Agent), Event::Job(JobChange::Started));
    sim.feed_from(Some(Speaker::Agent), phase(Phase::ModelLoad, false));
    for told in told {
        tell(&mut sim, *told);
    }
    sim.exit(ExitStatus::Code(code));
    sim.run_for(Duration::from_secs(20));
    let verdicts = sim.stream.iter().rev().find_map(|e| match &e.event {
        Event::Verdict(v) => Some((v.id, v.confidence, v.sentence.clone())),
        _ => None,
    });
    verdicts.unwrap()
}

#[test]
fn a_reason_counts_whichever_way_it_comes_first() {
    use Told::{Bar, Ends, Failed, Line, Saves, Step};
    let own = "l.safetensors: NaN stands at number 0 of tensor latents: make them anew";
    let line = format!("framepack-tui worker: failed to decode: {own}");
    let unknown = "ValueError: the start image has no pixels";
    let known = "RuntimeError: PytorchStreamReader failed reading zip archive";
    let begins = "Traceback (most recent call last):";
    let frame = "  File \"app.py\", line 3, in main";
    for (code, why, last, want) in [
        (65, Some(own), line.as_str(), VerdictId::AppError),
        (1, Some(unknown), unknown, VerdictId::AppError),
        (1, Some(known), known, VerdictId::CorruptModel),
        (1, None, unknown, VerdictId::AppError),
        (1, None, known, VerdictId::CorruptModel),
    ] {
        let words = [Line(begins), Line(frame), Line(last)];
        let mut seen: Vec<(VerdictId, f64, String)> = Vec::new();
        for late in [&[][..], &[Step], &[Bar], &[Saves]] {
            let first = [late, &words, &[Failed(why), Ends]].concat();
            let then = [&[Failed(why), Ends], late, &words].concat();
            let last = [&[Failed(why), Ends], &words[..], late].concat();
            seen.extend([first, then, last].map(|told| verdict(&told, code)));
        }
        for (id, confidence, sentence) in &seen {
            assert_eq!(*id, want, "{sentence}");
            // a known cause has a sentence of its own
            let quotes = want == VerdictId::AppError;
            assert_eq!(sentence.contains(last), quotes, "{sentence}");
            assert_eq!(
                (*confidence, sentence.as_str()),
                (seen[0].1, seen[0].2.as_str())
            );
        }
    }
}

/// One way tells its words in their order: a job that goes on there has outlived its error.
#[test]
fn what_the_same_way_tells_after_a_failure_has_outlived_it() {
    use Told::{Bar, Ends, Failed, Line};
    let told = [
        Failed(Some("ValueError: x")),
        Ends,
        Bar,
        Line("ValueError: x"),
    ];
    let (_, _, sentence) = verdict(&told, 3);
    assert!(sentence.contains("ValueError: x"), "{sentence}");

    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    let failed = JobChange::Failed {
        why: Some("ValueError: x".to_owned()),
    };
    sim.feed(Event::Job(failed));
    tell(&mut sim, Bar);
    sim.exit(ExitStatus::Code(3));
    sim.run_for(Duration::from_secs(20));
    let gave_none = |e: &Event| matches!(e, Event::Verdict(v) if v.sentence.contains("no reason"));
    assert!(sim.find(gave_none).is_some());
}
