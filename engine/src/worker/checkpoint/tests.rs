use candle_core::Device;

use super::index::CheckpointIndex;
use super::*;
use crate::vae::Carry;

pub(super) const SIZE: Size = Size {
    width: 2,
    height: 1,
};

pub(super) const DIGEST: &str = "0123456789abcdef";

/// More than any of these tests keeps.
pub(super) const TOTAL: usize = 90_000;
/// Bytes of a state.
const MOST: u64 = 1 << 20;

pub(super) fn state(frames: usize) -> Carry {
    Carry::stateless(frames, frames)
}

/// The frames that an earlier decode has left to go on from.
pub(super) fn stopped(parts: &mut CheckpointDir) -> usize {
    stop(parts).carry.map_or(0, |carry| carry.frames())
}

/// The newest state of the frames that are there.
fn stop(parts: &mut CheckpointDir) -> Stop {
    let there = parts.frames_there().unwrap();
    parts.resume(&Device::Cpu, MOST, &(0..=there)).unwrap()
}

pub(super) fn open(folder: &Path) -> CheckpointDir {
    open_of(folder, TOTAL)
}

pub(super) fn open_of(folder: &Path, total: usize) -> CheckpointDir {
    CheckpointDir::open(&folder.join("o.mp4"), DIGEST, SIZE, total).unwrap()
}

#[test]
fn whole_frames_and_their_state_are_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open(folder.path());
    assert_eq!(stopped(&mut parts), 0);
    parts.keep(0, &[1; 6], &state(1)).unwrap();
    parts.keep(1, &[2; 24], &state(5)).unwrap();
    drop(parts);
    let mut parts = open(folder.path());
    let stop = stop(&mut parts);
    assert_eq!(stop.carry.unwrap().frames(), 5);
    assert_eq!(stop.unfit, Vec::<String>::new());
    // cut short, as by a full disk: only what lies before it counts
    let path = parts.part(1, &[2; 24]).path;
    assert_eq!(path.parent(), Some(&*parts.folder));
    assert!(path.is_file());
    std::fs::write(&path, [2; 23]).unwrap();
    assert_eq!(stopped(&mut parts), 0);
    std::fs::write(&path, [2; 24]).unwrap();
    std::fs::write(
        folder
            .path()
            .join("o.mp4.parts/0123456789abcdef/state-000005.bin"),
        "rubbish",
    )
    .unwrap();
    assert_eq!(stopped(&mut parts), 0);
    assert_eq!(parts.frames_there().unwrap(), 5);
    // numbers that no decode reaches: nobody counts beyond them
    for first in [usize::MAX, TOTAL] {
        let far = format!("frames-{first}-000001-{DIGEST}.rgb");
        std::fs::write(parts.folder.join(far), [3; 6]).unwrap();
    }
    let far = File::create(
        parts
            .folder
            .join(format!("frames-000005-{TOTAL}-{DIGEST}.rgb")),
    )
    .unwrap();
    far.set_len(6 * TOTAL as u64).unwrap();
    assert_eq!(parts.frames_there().unwrap(), 5);
    parts.total = 5;
    let all: Vec<Vec<u8>> = parts.frames().unwrap().map(Result::unwrap).collect();
    assert_eq!(all.concat(), [vec![1; 6], vec![2; 24]].concat());
    parts.remove();
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

/// The words for states that are of no use, without their folder.
fn unfit(parts: &mut CheckpointDir) -> Vec<String> {
    let stop = stop(parts);
    assert!(stop.carry.is_none());
    let folder = format!("{}/", parts.folder.display());
    let all = stop.unfit.iter();
    all.map(|text| text.strip_prefix(&folder).unwrap().to_owned())
        .collect()
}

#[test]
fn a_state_that_is_not_whole_or_another_is_told_and_not_gone_on_from() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open(folder.path());
    parts.keep(0, &[1; 30], &state(5)).unwrap();
    let path = parts.folder.join("state-000005.bin");
    let whole = fs::read(&path).unwrap();
    let mut say = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        unfit(&mut parts)
    };
    let none = "state-000005.bin: no state of a decode";
    for cut in [0, 7, whole.len() / 2, whole.len() - 1] {
        let told = say(&whole[..cut]);
        assert!(told[0].starts_with(none), "{told:?}");
    }
    // each byte of the tensors counts
    let header = 8 + usize::from(whole[0]) + 256 * usize::from(whole[1]);
    for at in header..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let told = say(&bytes);
        assert_eq!(told, [format!("{none}, or damaged: its digest is another")]);
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(stopped(&mut parts), 5);
    // one of ours under another number
    fs::rename(&path, parts.folder.join("state-000004.bin")).unwrap();
    assert_eq!(
        unfit(&mut parts),
        ["state-000004.bin: is of 5 frames, not of 4"]
    );
    // longer than the memory of any machine: it is not read
    let huge = File::create(&path).unwrap();
    huge.set_len(1 << 42).unwrap();
    let told = unfit(&mut parts);
    assert!(
        told[0].contains("4398046511104 bytes are no state of this decode, which takes 1048576"),
        "{told:?}"
    );
    pipe(&path);
    assert_eq!(unfit(&mut parts), ["state-000005.bin: not a regular file"]);
    // each is told once, and gone
    assert!(parts.state_before(TOTAL).unwrap() == 0 && unfit(&mut parts).is_empty());
}

/// A pipe, to open which would wait for its other end for ever.
pub(super) fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[test]
fn of_how_frames_were_made_no_more_is_read_than_we_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open(folder.path());
    assert_eq!(parts.way().unwrap(), None);
    let way = serde_json::json!({ "space": null, "time": [16, 12] });
    parts.begin(&way).unwrap();
    assert_eq!(parts.way().unwrap(), Some(way));
    let path = parts.way_path();
    let said = |parts: &CheckpointDir| parts.way().unwrap_err().to_string();
    for text in ["", "{\"space\":", "\0\0\0"] {
        fs::write(&path, text).unwrap();
        assert!(said(&parts).contains("way.json: damaged: "), "{text:?}");
    }
    File::create(&path).unwrap().set_len(1 << 42).unwrap();
    assert!(said(&parts).contains("way.json: more than 4096 bytes long"));
    fs::remove_file(&path).unwrap();
    pipe(&path);
    assert!(said(&parts).ends_with("way.json: not a regular file"));
    // neither is a pipe waited for where the number of a finished file is expected
    pipe(&parts.folder.join(FINISHING));
    assert!(!parts.has_finished(&folder.path().join("o.mp4"), 24.0));
    // the next attempt puts its own there
    parts.begin(&serde_json::json!({})).unwrap();
    assert_eq!(parts.way().unwrap(), Some(serde_json::json!({})));
}

#[test]
fn a_state_that_cannot_be_written_ends_no_decode_and_the_old_one_counts() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open(folder.path());
    assert_eq!(parts.keep(0, &[1; 6], &state(1)).unwrap(), None);
    // something in its place: nothing can be renamed to it
    fs::create_dir_all(parts.folder.join("state-000005.bin/x")).unwrap();
    let told = parts.keep(1, &[2; 24], &state(5)).unwrap().unwrap();
    assert!(
        told.contains("state-000005.bin") && told.contains("goes on without"),
        "{told}"
    );
    assert!(!parts.folder.join(PART).exists());
    assert_eq!(stopped(&mut parts), 1);
    // said once, and not tried again
    assert_eq!(parts.keep(5, &[3; 6], &state(6)).unwrap(), None);
    assert_eq!(parts.frames_there().unwrap(), 6);
    assert_eq!(stopped(&mut parts), 1);
}

#[test]
fn on_a_full_disk_a_state_makes_room_for_frames_and_nothing_else_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open(folder.path());
    parts.keep(0, &[1; 6], &state(1)).unwrap();
    let full = |parts: &CheckpointDir| {
        std::os::unix::fs::symlink("/dev/full", parts.folder.join(PART)).unwrap();
    };
    // the state is smaller than what is needed: it stays, and the error names the file
    let large = vec![2; 6 * 10_000];
    full(&parts);
    let e = parts.keep(1, &large, &state(5)).unwrap_err();
    assert!(e.is_full() && e.to_string().contains("o.mp4.parts"), "{e}");
    assert_eq!(stopped(&mut parts), 1);
    // larger than these frames, but not than all that are to come: without it a later run would begin anew
    full(&parts);
    let e = parts.keep(1, &[2; 24], &state(5)).unwrap_err();
    assert!(e.is_full(), "{e}");
    assert_eq!(stopped(&mut parts), 1);
    let cure = parts.cure(&e);
    assert!(cure.starts_with("1 of 90000 frames are kept in "), "{cure}");
    assert!(
        cure.contains("make 1 MiB free there") && cure.contains("goes on after them"),
        "{cure}"
    );
    // enough for all of a shorter video
    drop(parts);
    let mut parts = open_of(folder.path(), 9);
    assert_eq!(stopped(&mut parts), 1);
    full(&parts);
    let told = parts.keep(1, &[2; 24], &state(5)).unwrap().unwrap();
    assert!(told.contains("goes on without"), "{told}");
    assert_eq!(parts.frames_there().unwrap(), 5);
    assert!(CheckpointIndex::of(&parts).unwrap().states.is_empty());
    assert!(parts.cure(&e).contains("give the same command again"));
    drop(parts);
    let cure = open_of(folder.path(), 5).cure(&e);
    assert!(cure.contains("writes it without decoding again"), "{cure}");
}

#[test]
fn a_pipe_in_the_place_of_the_lock_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("o.mp4");
    let root = CheckpointDir::root(&output);
    fs::create_dir(&root).unwrap();
    pipe(&root.join(LOCK));
    let e = CheckpointDir::open(&output, DIGEST, SIZE, TOTAL).unwrap_err();
    assert!(
        matches!(&e, Error::InTheWay { path, .. } if path.ends_with(LOCK)),
        "{e}"
    );
}

#[test]
fn nothing_stays_of_a_decode_that_kept_nothing_and_a_finished_one_is_known() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    let (parts, output) = (open(folder.path()), folder.path().join("o.mp4"));
    std::fs::write(&output, "another").unwrap();
    let whole = folder.path().join("whole");
    std::fs::write(&whole, "video").unwrap();
    parts.finishing(&whole, 24.0).unwrap();
    assert!(!parts.has_finished(&output, 24.0) && !CheckpointDir::is_finished(&output));
    std::fs::rename(&whole, &output).unwrap();
    assert!(parts.has_finished(&output, 24.0) && CheckpointDir::is_finished(&output));
    // asked for at another speed it is another video
    assert!(!parts.has_finished(&output, 12.0));
    // the same file with something else in it is the user's
    std::fs::write(&output, "mine!").unwrap();
    assert!(!parts.has_finished(&output, 24.0) && !CheckpointDir::is_finished(&output));
}

#[test]
fn a_finished_folder_is_known_by_all_that_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let (parts, output) = (open(folder.path()), folder.path().join("v"));
    let whole = folder.path().join("whole");
    fs::create_dir(&whole).unwrap();
    for name in ["frame_00001.png", "frame_00002.png"] {
        fs::write(whole.join(name), name).unwrap();
    }
    parts.finishing(&whole, 24.0).unwrap();
    fs::rename(&whole, &output).unwrap();
    assert!(parts.has_finished(&output, 24.0));
    let more = output.join("frame_00003.png");
    fs::write(&more, "mine").unwrap();
    assert!(!parts.has_finished(&output, 24.0));
    fs::remove_file(more).unwrap();
    assert!(parts.has_finished(&output, 24.0));
    fs::write(output.join("frame_00001.png"), "other_00001.png").unwrap();
    assert!(!parts.has_finished(&output, 24.0));
}

#[test]
fn files_of_the_users_beside_ours_stay() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("o.mp4.parts");
    let mine = [
        "notes.txt",
        "lock",
        "album/way.json",
        "0123456789abcdef/mine.txt",
    ];
    for name in mine {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "mine").unwrap();
    }
    let mut parts = open(folder.path());
    parts.begin(&serde_json::json!({})).unwrap();
    parts.keep(0, &[1; 6], &state(1)).unwrap();
    fs::write(parts.whole(), "half a video").unwrap();
    fs::write(parts.folder.join(".tmpAb12Cd"), "half a state").unwrap();
    parts.remove();
    for name in mine {
        assert_eq!(fs::read(root.join(name)).unwrap(), b"mine", "{name}");
    }
    let left = names(&root.join(DIGEST)).unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(CheckpointDir::check_place(&folder.path().join("o.mp4")).is_ok());
    fs::write(folder.path().join("q.parts"), "mine").unwrap();
    assert!(CheckpointDir::check_place(&folder.path().join("q")).is_err());
}

#[test]
fn one_output_is_written_by_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let _first = open(folder.path());
    let second =
        CheckpointDir::open(&folder.path().join("o.mp4"), "other", SIZE, TOTAL).unwrap_err();
    assert!(matches!(second, Error::InTheWay { .. }), "{second:?}");
    assert!(
        second.to_string().contains("another process is decoding"),
        "{second}"
    );
}

/// What a kill leaves: the folder of an open decode, put beside it and its lock let go.
fn killed(folder: &Path, output: &Path, fill: impl FnOnce(&mut CheckpointDir)) {
    let other = folder.join("elsewhere.mp4");
    let mut parts = CheckpointDir::open(&other, DIGEST, SIZE, TOTAL).unwrap();
    fill(&mut parts);
    fs::rename(CheckpointDir::root(&other), CheckpointDir::root(output)).unwrap();
}

#[test]
fn what_a_kill_leaves_goes_unless_a_decode_goes_on_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("o.mp4");
    let root = CheckpointDir::root(&output);
    let begun = |parts: &mut CheckpointDir| {
        parts.begin(&serde_json::json!({})).unwrap();
        fs::write(parts.folder.join(PART), "half a file").unwrap();
    };
    killed(folder.path(), &output, begun);
    assert!(root.join(DIGEST).join(PART).is_file() && root.join(LOCK).is_file());
    CheckpointDir::tidy(&output);
    assert!(!root.exists());
    CheckpointDir::tidy(&output);
    assert!(!root.exists(), "nothing is made where nothing is");

    killed(folder.path(), &output, |parts| {
        begun(parts);
        parts.keep(0, &[1; 6], &state(1)).unwrap();
        // of other settings, without a frame
        let other = parts.root.join("fedcba9876543210");
        fs::create_dir(&other).unwrap();
        fs::write(other.join(WAY), "{}").unwrap();
    });
    CheckpointDir::tidy(&output);
    assert!(!root.join("fedcba9876543210").exists());
    let mut parts = open(folder.path());
    assert_eq!(stopped(&mut parts), 1);

    // it is in use
    let before = names(&root.join(DIGEST)).unwrap();
    let whole = folder.path().join("whole");
    fs::write(&whole, "video").unwrap();
    parts.finishing(&whole, 24.0).unwrap();
    fs::rename(&whole, &output).unwrap();
    CheckpointDir::tidy(&output);
    assert_eq!(names(&root.join(DIGEST)).unwrap().len(), before.len() + 1);
    // the output is there: nothing is left to go on with
    drop(parts);
    CheckpointDir::tidy(&output);
    assert!(!root.exists());
}

#[test]
fn what_is_not_ours_is_no_work_of_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("o.mp4");
    let root = CheckpointDir::root(&output);
    fs::create_dir(&root).unwrap();
    CheckpointDir::tidy(&output);
    assert!(root.is_dir(), "a folder of the user's");
    fs::remove_dir(&root).unwrap();
    killed(folder.path(), &output, |parts| {
        parts.begin(&serde_json::json!({})).unwrap();
        fs::write(parts.root.join("notes.txt"), "mine").unwrap();
        fs::write(parts.folder.join("mine.txt"), "mine").unwrap();
    });
    CheckpointDir::tidy(&output);
    let left = |folder: &Path| {
        let mut left = names(folder).unwrap();
        left.sort();
        left.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(left(&root), [DIGEST, "notes.txt"]);
    assert_eq!(left(&root.join(DIGEST)), ["mine.txt"]);
}

#[test]
fn a_lock_that_was_removed_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    fs::remove_dir_all(&first.root).unwrap();
    // another one takes the place, and the first leaves it alone at its end
    let second = open(folder.path());
    drop(first);
    assert!(second.folder.is_dir() && second.root.join(LOCK).is_file());
}

#[test]
fn an_attempt_of_which_no_frame_came_is_known_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open(folder.path());
    let nowhere = |parts: &CheckpointDir, run| parts.got_nowhere(run).unwrap();
    assert!(!nowhere(&parts, "r"));
    parts.begin(&serde_json::json!({ "way": 1 })).unwrap();
    assert!(!nowhere(&parts, "r"));
    parts.note_begin("r").unwrap();
    assert!(nowhere(&parts, "r"));
    assert!(!nowhere(&parts, "another"));
    parts.keep(0, &[1; 6], &state(1)).unwrap();
    assert!(!nowhere(&parts, "r"));
    parts.note_begin("r").unwrap();
    assert!(nowhere(&parts, "r"));
    // another way: nothing is known of it
    parts.begin(&serde_json::json!({ "way": 2 })).unwrap();
    assert!(!nowhere(&parts, "r"));
    for damaged in ["", "{", "{\"run\": \"r\"}", "{\"run\": 1, \"frames\": 0}"] {
        std::fs::write(parts.folder.join(BEGUN), damaged).unwrap();
        assert!(parts.got_nowhere("r").is_err(), "{damaged}");
    }
    std::fs::write(parts.folder.join(BEGUN), [b' '; 5000]).unwrap();
    let e = parts.got_nowhere("r").unwrap_err();
    assert!(e.to_string().contains("more than 4096 bytes"), "{e}");
    drop(parts);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

proptest::proptest! {
    #[test]
    fn any_note_of_an_attempt_is_survived(text in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let folder = tempfile::tempdir().unwrap();
        let parts = open(folder.path());
        std::fs::write(parts.folder.join(BEGUN), text).unwrap();
        let _ = parts.got_nowhere("r");
    }
}
