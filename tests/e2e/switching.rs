//! Settings switched on the screen of the real binary, applied by a restart, and kept
//! as a profile of one's own.

use std::time::Duration;

use crate::harness::{Card, Home, assert_none_left, python, wait_until};
use crate::terminal::{Terminal, generation};

const SOON: Duration = Duration::from_secs(20);

/// A typed find mode waits for the next attempt, a restart that was asked for brings
/// it, and what was chosen is found again under an id.
fn a_setting_is_switched_applied_and_saved(size: (u16, u16)) {
    let home = Home::new();
    let mut card = Card::rx7900xtx();
    card.follow(&home, 0);
    let words = generation(&home, &[], &["--step-seconds", "3"]);
    let mut terminal = Terminal::start(&home, &card, size, &words);
    terminal.wait_for("sampling", Duration::from_mins(2));
    terminal.press("3");
    terminal.wait_for("[3]Prof", SOON);
    terminal.wait_for("find mode         not set", SOON);
    terminal.press("\r");
    terminal.wait_for("as the profile says", SOON);
    terminal.press("fast");
    terminal.wait_for("= fast_", SOON);
    terminal.press("\r");
    terminal.wait_for("1 change waits for the next attempt", SOON);
    // Enter is not the answer that ends something.
    terminal.press("a");
    terminal.wait_for("Restart with what you chose?", SOON);
    terminal.press("\r");
    terminal.wait_for(
        "1 change waits for the next attempt; a applies it now",
        SOON,
    );
    terminal.press("a");
    terminal.wait_for("the next attempt on as_given", SOON);
    terminal.press("y");
    terminal.wait_for("attempt 2 on as_given", Duration::from_mins(1));
    terminal.wait_for(
        "the next attempt has these settings too",
        Duration::from_mins(1),
    );
    terminal.wait_for("find mode         FAST", SOON);
    terminal.wait_for("chosen by you", SOON);
    terminal.press("m");
    terminal.wait_for("generic-amd-mine", SOON);
    terminal.press("\r");
    terminal.wait_for("generic-amd-mine saved as", SOON);
    terminal.press("\x1b");
    terminal.wait_for("yours", SOON);
    terminal.press("\x03");
    terminal.assert_restored(130);
    assert_none_left(&home);
    let saved = home.path("config/framepack-tui/profiles/generic-amd-mine.toml");
    let text = std::fs::read_to_string(saved).unwrap();
    for words in [
        "id          = \"generic-amd-mine\"",
        "version     = \"1.0.0\"",
        "MIOPEN_FIND_MODE = \"FAST\"",
        "MIOPEN_FIND_ENFORCE = \"NONE\"",
        "# Rungs in order of cost.",
    ] {
        assert!(text.contains(words), "`{words}` is not in:\n{text}");
    }
}

#[test]
fn a_setting_at_80x24() {
    a_setting_is_switched_applied_and_saved((80, 24));
}

#[test]
fn a_setting_at_120x36() {
    a_setting_is_switched_applied_and_saved((120, 36));
}

/// A rung that the user chooses ends the attempt only after a question, and follows.
#[test]
fn a_rung_is_chosen_and_follows() {
    let home = Home::new();
    let mut card = Card::rx7900xtx();
    card.follow(&home, 0);
    let words = generation(&home, &[], &["--step-seconds", "3"]);
    let mut terminal = Terminal::start(&home, &card, (120, 36), &words);
    terminal.wait_for("sampling", Duration::from_mins(2));
    terminal.press("o");
    terminal.wait_for("Which rung follows?", SOON);
    // as_given, retry_same, retry_elsewhere, fast_find
    terminal.press("\x1b[B\x1b[B\x1b[B\r");
    terminal.wait_for("End the attempt for this rung?", SOON);
    terminal.wait_for("the next attempt on rung 3 fast_find", SOON);
    terminal.press("y");
    terminal.wait_for("attempt 2 on fast_find", Duration::from_mins(1));
    terminal.press("\x03");
    terminal.assert_restored(130);
    assert_none_left(&home);
}

const OWN: &str = r#"schema = 1
# mine, with words
[profile]
id = "night"
version = "1.2.9"
title = "Night runs"

[workload.arguments]
vae_tile = ["--tile", "{value}"]   # how the program is told
vae_dtype = ["--vae-{value}"]

[workload.settings]
vae_tile = 512 # large
"#;

/// A command of the palette, and Enter once it stands there.
fn typed(terminal: &mut Terminal, command: &str) {
    terminal.press(":");
    terminal.wait_for(":_", SOON);
    terminal.press(command);
    terminal.wait_for(&format!(":{command}_"), SOON);
    terminal.press("\r");
}

/// What was chosen reaches the program's arguments and environment, a refusal is said
/// in sight, and an own profile is changed twice with its comments.
#[test]
fn what_is_switched_reaches_the_program_and_the_own_profile() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let file = home.path("config/framepack-tui/profiles/night.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, OWN).unwrap();
    let seen = home.path("seen");
    let text = format!(
        "import os, sys, time\nm = os.environ.get('MIOPEN_FIND_MODE')\nopen({:?}, 'a').write(f'{{sys.argv[1:]}} {{m}}\\n')\nprint('begun', flush=True)\ntime.sleep(600)",
        seen.display().to_string()
    );
    let python = python().display().to_string();
    let words = [
        "--profile",
        "night",
        "--cap",
        "20G",
        "--",
        &python,
        "-c",
        &text,
    ];
    let mut terminal = Terminal::start(&home, &card, (120, 36), &words);
    terminal.wait_for("begun", SOON);
    terminal.press("3");
    terminal.wait_for("tile size         512", SOON);
    typed(&mut terminal, "tile 256");
    terminal.wait_for("tile size 256 from the next attempt on", SOON);
    typed(&mut terminal, "find hybrid");
    terminal.wait_for("find mode HYBRID from the next attempt on", SOON);
    typed(&mut terminal, "cap 99G");
    terminal.wait_for("99 GiB is more than the card has", SOON);
    terminal.press("a");
    terminal.wait_for("tile size 512", SOON);
    terminal.press("y");
    let second = || std::fs::read_to_string(&seen).is_ok_and(|t| t.lines().count() == 2);
    assert!(
        wait_until(Duration::from_mins(1), second),
        "{}",
        terminal.text()
    );
    let told = std::fs::read_to_string(&seen).unwrap();
    assert_eq!(told, "['--tile', '512'] None\n['--tile', '256'] HYBRID\n");
    terminal.press("m");
    terminal.wait_for("VRAM cap 20 GiB (--cap)", SOON);
    terminal.press("\r");
    terminal.wait_for("night saved as", SOON);
    let once = std::fs::read_to_string(&file).unwrap();
    typed(&mut terminal, "tile 128");
    terminal.wait_for("tile size 128 from the next attempt on", SOON);
    terminal.press("m");
    terminal.wait_for("changes your profile", SOON);
    terminal.press("\r");
    let twice =
        || std::fs::read_to_string(&file).is_ok_and(|t| t.contains("vae_tile = 128 # large"));
    assert!(wait_until(SOON, twice), "{}", terminal.text());
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(once.contains("version = \"1.2.10\"") && text.contains("version = \"1.2.11\""));
    for words in [
        "# mine, with words",
        "# how the program is told",
        "vram_cap = \"20 GiB\"",
    ] {
        assert!(text.contains(words), "`{words}` is not in:\n{text}");
    }
    // what somebody else writes meanwhile is not lost
    std::fs::write(&file, format!("{text}# by hand\n")).unwrap();
    terminal.press("m");
    terminal.wait_for("changes your profile", SOON);
    terminal.press("\r");
    terminal.wait_for("changed by somebody else", SOON);
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .ends_with("# by hand\n")
    );
    terminal.press("\x03");
    terminal.assert_restored(130);
    assert_none_left(&home);
}
