use super::*;

const SIZE: Size = Size {
    width: 2,
    height: 1,
};

const DIGEST: &str = "0123456789abcdef";

fn state(frames: usize) -> Carry {
    // the numbers are private to the decoders: written as a decoder writes them
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let number =
        |n: usize| candle_core::Tensor::new(&[u32::try_from(n).unwrap()], &Device::Cpu).unwrap();
    let all = [("given", frames), ("next", frames)];
    let all = all.map(|(name, n)| (name.to_owned(), number(n)));
    candle_core::safetensors::save(&all.into(), &path).unwrap();
    Carry::load(&path, &Device::Cpu).unwrap()
}

fn open(folder: &Path) -> Parts {
    Parts::open(&folder.join("o.mp4"), DIGEST, SIZE).unwrap()
}

#[test]
fn whole_frames_and_their_state_are_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open(folder.path());
    assert_eq!(parts.resume(&Device::Cpu).unwrap().0, 0);
    parts.keep(0, &[1; 6], &state(1), 9).unwrap();
    parts.keep(1, &[2; 24], &state(5), 9).unwrap();
    drop(parts);
    let parts = open(folder.path());
    let (frames, carry) = parts.resume(&Device::Cpu).unwrap();
    assert_eq!((frames, carry.unwrap().frames()), (5, 5));
    // cut short, as by a full disk: only what lies before it counts
    let path = folder
        .path()
        .join("o.mp4.parts/0123456789abcdef/frames-000001-000004.rgb");
    std::fs::write(&path, [2; 23]).unwrap();
    assert_eq!(parts.resume(&Device::Cpu).unwrap().0, 0);
    std::fs::write(&path, [2; 24]).unwrap();
    std::fs::write(
        folder
            .path()
            .join("o.mp4.parts/0123456789abcdef/state-000005.bin"),
        "rubbish",
    )
    .unwrap();
    assert_eq!(parts.resume(&Device::Cpu).unwrap().0, 0);
    assert_eq!(parts.frames_there().unwrap(), 5);
    // a number that no decode reaches: nobody counts beyond it
    let far = format!("frames-{}-000001.rgb", usize::MAX);
    std::fs::write(parts.folder.join(far), [3; 6]).unwrap();
    assert_eq!(parts.frames_there().unwrap(), 5);
    let all: Vec<Vec<u8>> = parts.frames().unwrap().map(Result::unwrap).collect();
    assert_eq!(all.concat(), [vec![1; 6], vec![2; 24]].concat());
    parts.remove();
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_state_that_cannot_be_written_ends_no_decode_and_the_old_one_counts() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open(folder.path());
    assert_eq!(parts.keep(0, &[1; 6], &state(1), 9).unwrap(), None);
    // something in its place: nothing can be renamed to it
    fs::create_dir_all(parts.folder.join("state-000005.bin/x")).unwrap();
    let told = parts.keep(1, &[2; 24], &state(5), 9).unwrap().unwrap();
    assert!(
        told.contains("state-000005.bin") && told.contains("goes on without"),
        "{told}"
    );
    assert!(!parts.folder.join(PART).exists());
    assert_eq!(parts.resume(&Device::Cpu).unwrap().0, 1);
    // said once, and not tried again
    assert_eq!(parts.keep(5, &[3; 6], &state(6), 9).unwrap(), None);
    assert_eq!(parts.frames_there().unwrap(), 6);
    assert_eq!(parts.resume(&Device::Cpu).unwrap().0, 1);
}

#[test]
fn on_a_full_disk_a_state_makes_room_for_frames_and_nothing_else_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open(folder.path());
    parts.keep(0, &[1; 6], &state(1), 9).unwrap();
    let full = |parts: &Parts| {
        std::os::unix::fs::symlink("/dev/full", parts.folder.join(PART)).unwrap();
    };
    // the state is smaller than what is needed: it stays, and the error names the file
    let large = vec![2; 6 * 10_000];
    full(&parts);
    let e = parts.keep(1, &large, &state(5), 90_000).unwrap_err();
    assert!(e.is_full() && e.to_string().contains("o.mp4.parts"), "{e}");
    assert_eq!(parts.resume(&Device::Cpu).unwrap().0, 1);
    // larger than these frames, but not than all that are to come: without it a later run would begin anew
    full(&parts);
    let e = parts.keep(1, &[2; 24], &state(5), 90_000).unwrap_err();
    assert!(e.is_full(), "{e}");
    assert_eq!(parts.resume(&Device::Cpu).unwrap().0, 1);
    let cure = parts.cure(90_000);
    assert!(cure.starts_with("1 of 90000 frames are kept in "), "{cure}");
    assert!(
        cure.contains("make 1 MiB free there") && cure.contains("goes on after them"),
        "{cure}"
    );
    full(&parts);
    let told = parts.keep(1, &[2; 24], &state(5), 9).unwrap().unwrap();
    assert!(told.contains("goes on without"), "{told}");
    assert_eq!(parts.frames_there().unwrap(), 5);
    assert!(parts.states().unwrap().is_empty());
    assert!(parts.cure(9).contains("give the same command again"));
    let cure = parts.cure(5);
    assert!(cure.contains("writes it without decoding again"), "{cure}");
}

#[test]
fn a_pipe_in_the_place_of_the_lock_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("o.mp4");
    let root = Parts::root(&output);
    fs::create_dir(&root).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(root.join(LOCK))
        .status();
    assert!(made.unwrap().success());
    let e = Parts::open(&output, DIGEST, SIZE).unwrap_err();
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
    assert!(!parts.has_finished(&output, 24.0) && !Parts::is_finished(&output));
    std::fs::rename(&whole, &output).unwrap();
    assert!(parts.has_finished(&output, 24.0) && Parts::is_finished(&output));
    // asked for at another speed it is another video
    assert!(!parts.has_finished(&output, 12.0));
    // the same file with something else in it is the user's
    std::fs::write(&output, "mine!").unwrap();
    assert!(!parts.has_finished(&output, 24.0) && !Parts::is_finished(&output));
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
    parts.keep(0, &[1; 6], &state(1), 9).unwrap();
    fs::write(parts.whole(), "half a video").unwrap();
    fs::write(parts.folder.join(".tmpAb12Cd"), "half a state").unwrap();
    parts.remove();
    for name in mine {
        assert_eq!(fs::read(root.join(name)).unwrap(), b"mine", "{name}");
    }
    let left = names(&root.join(DIGEST)).unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(Parts::check_place(&folder.path().join("o.mp4")).is_ok());
    fs::write(folder.path().join("q.parts"), "mine").unwrap();
    assert!(Parts::check_place(&folder.path().join("q")).is_err());
}

#[test]
fn one_output_is_written_by_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let _first = open(folder.path());
    let second = Parts::open(&folder.path().join("o.mp4"), "other", SIZE).unwrap_err();
    assert!(matches!(second, Error::InTheWay { .. }), "{second:?}");
    assert!(
        second.to_string().contains("another process is decoding"),
        "{second}"
    );
}

/// What a kill leaves: the folder of an open decode, put beside it and its lock let go.
fn killed(folder: &Path, output: &Path, fill: impl FnOnce(&mut Parts)) {
    let other = folder.join("elsewhere.mp4");
    let mut parts = Parts::open(&other, DIGEST, SIZE).unwrap();
    fill(&mut parts);
    fs::rename(Parts::root(&other), Parts::root(output)).unwrap();
}

#[test]
fn what_a_kill_leaves_goes_unless_a_decode_goes_on_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("o.mp4");
    let root = Parts::root(&output);
    let begun = |parts: &mut Parts| {
        parts.begin(&serde_json::json!({})).unwrap();
        fs::write(parts.folder.join(PART), "half a file").unwrap();
    };
    killed(folder.path(), &output, begun);
    assert!(root.join(DIGEST).join(PART).is_file() && root.join(LOCK).is_file());
    Parts::tidy(&output);
    assert!(!root.exists());
    Parts::tidy(&output);
    assert!(!root.exists(), "nothing is made where nothing is");

    killed(folder.path(), &output, |parts| {
        begun(parts);
        parts.keep(0, &[1; 6], &state(1), 9).unwrap();
        // of other settings, without a frame
        let other = parts.root.join("fedcba9876543210");
        fs::create_dir(&other).unwrap();
        fs::write(other.join(WAY), "{}").unwrap();
    });
    Parts::tidy(&output);
    assert!(!root.join("fedcba9876543210").exists());
    let parts = open(folder.path());
    assert_eq!(parts.resume(&Device::Cpu).unwrap().0, 1);

    // it is in use
    let before = names(&root.join(DIGEST)).unwrap();
    let whole = folder.path().join("whole");
    fs::write(&whole, "video").unwrap();
    parts.finishing(&whole, 24.0).unwrap();
    fs::rename(&whole, &output).unwrap();
    Parts::tidy(&output);
    assert_eq!(names(&root.join(DIGEST)).unwrap().len(), before.len() + 1);
    // the output is there: nothing is left to go on with
    drop(parts);
    Parts::tidy(&output);
    assert!(!root.exists());
}

#[test]
fn what_is_not_ours_is_no_work_of_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("o.mp4");
    let root = Parts::root(&output);
    fs::create_dir(&root).unwrap();
    Parts::tidy(&output);
    assert!(root.is_dir(), "a folder of the user's");
    fs::remove_dir(&root).unwrap();
    killed(folder.path(), &output, |parts| {
        parts.begin(&serde_json::json!({})).unwrap();
        fs::write(parts.root.join("notes.txt"), "mine").unwrap();
        fs::write(parts.folder.join("mine.txt"), "mine").unwrap();
    });
    Parts::tidy(&output);
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
