//! The job is ended after a step, by a key.

use std::ffi::OsString;
use std::time::Duration;

use super::LIMIT;
use crate::harness::{BINARY, Home, assert_none_left, python};
use crate::terminal::Terminal;

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
    screen.wait_for("the job ends after this step", LIMIT);
    screen.wait_for("cleaned up after some", LIMIT);
    screen.wait_for("after a step", LIMIT);
    screen.assert_restored(130);
    assert_none_left(&home, Duration::from_secs(5));
}
