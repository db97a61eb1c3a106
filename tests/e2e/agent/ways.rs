//! The way into a command: which Python says hello, what leaves the agent out, what is said
//! where it does not come.

use std::path::PathBuf;

use framepack_tui::model::{AgentWay, AgentWord, Event, Phase};

use super::{LIMIT, WORKS, hellos, lines, told, with_agent, words};
use crate::harness::{Home, Start, python};

#[test]
fn it_can_be_left_out_and_what_needs_it_says_why() {
    let home = Home::new();
    let run = Start::new(&home)
        .options(&["--agent", "off"])
        .python("import sys; print('agent' if 'fpt_agent' in sys.modules else 'none')")
        .start()
        .finish(LIMIT);
    run.assert_exit(0);
    assert_eq!(words(&run), []);
    assert!(lines(&run).contains("none"));
    let plan = &run.all(|e| match e {
        Event::RunStarted(s) => Some(s.plan.clone()),
        _ => None,
    })[0];
    assert!(matches!(&plan.agent, AgentWay::Off { why } if why.contains("--agent off")));
    let lacking: Vec<_> = plan
        .ladder
        .iter()
        .filter_map(|r| r.unavailable.clone())
        .collect();
    assert!(
        lacking.iter().any(|why| why.contains("--agent off")),
        "{lacking:?}"
    );
}

#[test]
fn python_that_heeds_no_variable_is_reached_by_the_launcher() {
    for flags in ["-I", "-Iu", "-ES"] {
        let home = Home::new();
        let script = home.path("script.py");
        std::fs::write(
            &script,
            format!("{WORKS}\nprint(__name__, sys.argv[1:], sys.flags.isolated)"),
        )
        .unwrap();
        let run = with_agent(&home)
            .command(&[
                python().as_os_str(),
                flags.as_ref(),
                script.as_os_str(),
                "-x".as_ref(),
            ])
            .start()
            .finish(LIMIT);
        run.assert_exit(0);
        assert_eq!(hellos(&run), 1, "{flags} {}", run.digest());
        let isolated = i32::from(flags.contains('I'));
        assert!(
            lines(&run).contains(&format!("__main__ ['-x'] {isolated}")),
            "{}",
            lines(&run)
        );
    }
}

#[test]
fn a_script_that_takes_the_path_away_is_said_and_runs_on() {
    let home = Home::new();
    let python = python();
    let text = format!(
        "unset PYTHONPATH; exec {} -c 'import time; time.sleep(9); print(\"done\")'",
        python.display()
    );
    let run = with_agent(&home)
        .command(&["sh", "-c", &text])
        .start()
        .finish(LIMIT);
    run.assert_exit(0);
    let all = words(&run);
    assert_eq!(all.len(), 1, "{all:?}");
    // while it still runs, and no sooner than a slow start would take
    assert!(
        matches!(all[0].word, AgentWord::Silent { for_ms } if (3500..9000).contains(&for_ms)),
        "{all:?}"
    );
    assert!(all[0].words().unwrap().contains("PYTHONPATH"));
    assert!(lines(&run).contains("done"));
}

#[test]
fn a_users_own_path_and_sitecustomize_still_count() {
    let home = Home::new();
    let own = home.path("own");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("sitecustomize.py"), "print('own sitecustomize')\n").unwrap();
    std::fs::write(own.join("helper_of_mine.py"), "WORD = 'helped'\n").unwrap();
    let run = with_agent(&home)
        .env("PYTHONPATH", &own)
        .python("import helper_of_mine; print(helper_of_mine.WORD)")
        .start()
        .finish(LIMIT);
    run.assert_exit(0);
    assert_eq!(hellos(&run), 1);
    let lines = lines(&run);
    assert!(
        lines.contains("own sitecustomize") && lines.contains("helped"),
        "{lines}"
    );
}

/// Two Pythons of different versions in one tree: each says hello with its own, and the one
/// that generates is the one that counts.
#[test]
fn two_pythons_in_one_tree() {
    let other = "
import subprocess, sys, time
state = sys.modules['fpt_agent.state']
state.link.send('progress', n=1.0, total=9.0, desc='the launcher waits', unit='it')
subprocess.run([sys.argv[1], '-c', sys.argv[2]], check=True)
time.sleep(1)
";
    let home = Home::new();
    let first = other_python().unwrap_or_else(python);
    let run = with_agent(&home)
        .command(&[
            first.as_os_str(),
            "-c".as_ref(),
            other.as_ref(),
            python().as_os_str(),
            WORKS.as_ref(),
        ])
        .start()
        .finish(LIMIT);
    run.assert_exit(0);
    let all = words(&run);
    let said: Vec<_> = all
        .iter()
        .filter_map(|n| match &n.word {
            AgentWord::Hello(h) => Some((n.pid, h.python.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(said.len(), 2, "{all:?}");
    let counts: Vec<_> = all
        .iter()
        .filter(|n| n.word == AgentWord::Main)
        .map(|n| n.pid)
        .collect();
    // the launcher until the generation works, and again behind it
    assert_eq!(counts, [said[0].0, said[1].0, said[0].0], "{all:?}");
    let phases: Vec<_> = told(&run)
        .iter()
        .filter_map(|e| match e {
            Event::Phase(p) => Some(p.phase),
            _ => None,
        })
        .collect();
    assert!(phases.contains(&Phase::Sampling), "{phases:?}");
}

/// A Python of this machine that is not the tests' own: the system's.
fn other_python() -> Option<PathBuf> {
    let candidates = ["/usr/bin/python3", "/usr/local/bin/python3"];
    candidates.iter().map(PathBuf::from).find(|p| p.is_file())
}

#[test]
fn a_profile_leaves_it_out_and_the_command_line_wins() {
    let home = Home::new();
    let profile = home.path("mine.toml");
    std::fs::write(
        &profile,
        "schema = 1\n[profile]\nid = \"mine\"\nversion = \"1.0.0\"\ntitle = \"t\"\n[workload]\nagent = \"off\"\n",
    )
    .unwrap();
    let run_with = |options: &[&str]| {
        let run = with_agent(&home)
            .options(&["--profile", profile.to_str().unwrap()])
            .options(options)
            .python("pass")
            .start()
            .finish(LIMIT);
        run.assert_exit(0);
        hellos(&run)
    };
    assert_eq!(run_with(&[]), 0);
    assert_eq!(run_with(&["--agent", "auto"]), 1);
}

/// What is no Python has no agent, and nobody complains of it.
#[test]
fn a_program_that_is_no_python_hears_no_complaint() {
    for command in [&["sleep", "17"][..], &["sh", "-c", "sleep 17; true"]] {
        let home = Home::new();
        let run = with_agent(&home).command(command).start().finish(LIMIT);
        run.assert_exit(0);
        assert_eq!(words(&run), []);
        let about = run.all(|e| match e {
            Event::Notice { text, .. } if text.contains("agent") => Some(text.clone()),
            _ => None,
        });
        assert_eq!(about, Vec::<String>::new(), "{command:?}");
    }
}
