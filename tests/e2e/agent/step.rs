//! The job is ended after a step, by a key.

use super::LIMIT;
use crate::harness::{BINARY, Home, assert_none_left, python, recorded_text};
use crate::terminal::Terminal;
use std::ffi::OsString;

const BAR: &str = "
import time, tqdm
done = 0
try:
    for _ in tqdm.tqdm(range(2000)):
        time.sleep(0.05)
        done += 1
finally:
    print('cleaned up after', 'all' if done == 2000 else 'some', flush=True)
";

#[test]
fn a_key_ends_the_job_after_its_step_and_the_program_cleans_up() {
    let home = Home::new();
    let script = home.path("bar.py");
    std::fs::write(&script, BAR).unwrap();
    let program: [OsString; 5] = [
        BINARY.into(),
        "run".into(),
        "--".into(),
        python().into(),
        script.into(),
    ];
    let mut screen = Terminal::open(&home, (120, 36), &program);
    screen.wait_for("/2000", LIMIT);
    screen.press("S");
    screen.wait_for("end it", LIMIT);
    screen.press("y");
    // what is on the screen between the answer and the end may be there for one frame only
    screen.wait_for("ENDED", LIMIT);
    screen.press("q");
    screen.assert_restored(130);
    let record = recorded_text(&home.record());
    assert!(record.contains("the job ends after this step"), "{record}");
    assert!(record.contains("cleaned up after some"), "{record}");
    assert_none_left(&home);
}
