use std::process::Command;

use super::tests::{DIGEST, open, open_of, pipe, state, stopped};
use super::*;

/// What is told of the frames that are there, without their folder, and how many are left from the first on.
fn told(parts: &mut CheckpointDir) -> (Vec<String>, usize) {
    parts.check(&mut || Ok(())).unwrap();
    let there = parts.frames_there().unwrap();
    let folder = format!("{}/", parts.folder.display());
    let all = parts.unfit().unwrap().into_iter();
    let all = all.map(|text| text.strip_prefix(&folder).unwrap().to_owned());
    let all = all.collect();
    // what was in the way is gone
    assert_eq!(parts.frames_there().unwrap(), there);
    assert!(parts.unfit().unwrap().is_empty());
    (all, there)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn each_byte_of_frames_counts_and_what_is_damaged_is_told_and_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open(folder.path());
    parts.keep(0, &[1; 6], &state(1)).unwrap();
    parts.keep(1, &[2; 24], &state(5)).unwrap();
    assert_eq!(told(&mut parts), (Vec::new(), 5));
    let path = parts.part(1, &[2; 24]).path;
    for at in 0..24 {
        let mut bytes = [2; 24];
        bytes[at] ^= 64;
        fs::write(&path, bytes).unwrap();
        let want = format!(
            "{}: damaged: its frames are not those that were written",
            name(&path)
        );
        assert_eq!(told(&mut parts), (vec![want], 1));
        assert_eq!(stopped(&mut parts), 0);
        assert!(!path.exists());
    }
    // before it is told it counts as little
    fs::write(&path, [3; 24]).unwrap();
    parts.check(&mut || Ok(())).unwrap();
    assert_eq!(stopped(&mut parts), 0);
    // decoded again it is there again
    parts.unfit().unwrap();
    parts.keep(1, &[2; 24], &state(5)).unwrap();
    assert_eq!(
        (told(&mut parts), stopped(&mut parts)),
        ((Vec::new(), 5), 5)
    );
}

#[test]
fn frames_after_the_last_state_are_told_only_if_they_are_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open(folder.path());
    parts.keep(0, &[1; 30], &state(5)).unwrap();
    // nothing can be renamed to it
    fs::create_dir_all(parts.folder.join("state-000006.bin/x")).unwrap();
    parts.keep(5, &[2; 6], &state(6)).unwrap();
    assert_eq!(
        (told(&mut parts), stopped(&mut parts)),
        ((Vec::new(), 6), 5)
    );
    let path = parts.part(5, &[2; 6]).path;
    fs::write(&path, [3; 6]).unwrap();
    let (all, there) = told(&mut parts);
    assert_eq!((all.len(), there, stopped(&mut parts)), (1, 5, 5));
    assert!(all[0].starts_with(&name(&path)), "{all:?}");
}

#[test]
fn what_is_short_or_foreign_under_the_name_of_frames_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open(folder.path());
    parts.keep(0, &[1; 12], &state(2)).unwrap();
    let path = parts.part(0, &[1; 12]).path;
    for bytes in [0, 11, 13] {
        fs::write(&path, vec![1; bytes]).unwrap();
        let want = format!("{}: {bytes} bytes, where its frames take 12", name(&path));
        assert_eq!(told(&mut parts), (vec![want], 0));
        assert!(!path.exists());
    }
    pipe(&path);
    let want = format!("{}: not a regular file", name(&path));
    assert_eq!(told(&mut parts), (vec![want], 0));
    // whole frames, but not these: of another place, and of another decode
    parts.keep(0, &[1; 12], &state(2)).unwrap();
    let moved = parts
        .folder
        .join(name(&path).replace("-000000-", "-000002-"));
    fs::rename(&path, &moved).unwrap();
    let want = |path| {
        format!(
            "{}: damaged: its frames are not those that were written",
            name(path)
        )
    };
    assert_eq!(told(&mut parts), (vec![want(&moved)], 0));
    let other = CheckpointDir::open(
        &folder.path().join("p.mp4"),
        "fedcba9876543210",
        tests::SIZE,
        tests::TOTAL,
    )
    .unwrap();
    let other = other.part(0, &[1; 12]).path;
    let other = parts.folder.join(name(&other));
    fs::write(&other, [1; 12]).unwrap();
    assert_eq!(told(&mut parts), (vec![want(&other)], 0));
    // of an earlier format, beyond the video, and of nobody
    let beyond = format!("frames-{}-000001-{DIGEST}.rgb", tests::TOTAL);
    let mut foreign = [
        "frames-000000-000002.rgb".to_owned(),
        beyond,
        "frames-old.rgb".to_owned(),
    ];
    foreign.sort();
    for name in &foreign {
        fs::write(parts.folder.join(name), [1; 12]).unwrap();
    }
    let want = foreign
        .iter()
        .map(|name| format!("{name}: named as no frames of this video are"));
    assert_eq!(told(&mut parts), (want.collect(), 0));
    // the first two are ours, and go with what is ours
    parts.remove();
    let left = names(&parts.folder).unwrap().into_iter();
    let left: Vec<String> = left.map(|(name, _)| name).collect();
    assert_eq!(left, ["frames-old.rgb"]);
}

#[test]
fn no_video_is_made_of_frames_that_are_damaged_or_gone_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open_of(folder.path(), 5);
    parts.keep(0, &[1; 6], &state(1)).unwrap();
    parts.keep(1, &[2; 24], &state(5)).unwrap();
    let path = parts.part(1, &[2; 24]).path;
    let says = |parts: &CheckpointDir| {
        let all = parts.frames().and_then(Iterator::collect::<Result<Vec<_>>>);
        all.map(|all| all.concat()).map_err(|e| e.to_string())
    };
    assert_eq!(says(&parts).unwrap().len(), 30);
    for (bytes, reason) in [
        (24, "damaged: its frames are not"),
        (23, "23 bytes, where its frames take 24"),
    ] {
        fs::write(&path, vec![9; bytes]).unwrap();
        let e = says(&parts).unwrap_err();
        let want = format!("{}: {reason}", path.display());
        assert!(e.starts_with(&want), "{e}");
    }
    fs::remove_file(&path).unwrap();
    let e = says(&parts).unwrap_err();
    assert!(e.contains(DIGEST) && e.contains("frame 1 is gone"), "{e}");
}

#[test]
fn the_folder_is_walked_once_for_a_chunk_and_once_for_all_frames() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open_of(folder.path(), 5);
    let listed = |work: &mut dyn FnMut()| {
        let before = folder::LISTED.get();
        work();
        folder::LISTED.get() - before
    };
    assert_eq!(
        listed(&mut || assert_eq!(parts.keep(0, &[1; 6], &state(1)).unwrap(), None)),
        1
    );
    assert_eq!(
        listed(&mut || assert_eq!(parts.keep(1, &[2; 24], &state(5)).unwrap(), None)),
        1
    );
    assert_eq!(listed(&mut || assert!(parts.gaps().unwrap().is_empty())), 1);
    assert_eq!(
        listed(&mut || assert_eq!(parts.frames().unwrap().count(), 2)),
        1
    );
}

#[test]
fn what_is_missing_is_known_wherever_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open_of(folder.path(), 20);
    let keep = |parts: &mut CheckpointDir, first: usize, count: usize| {
        let bytes = vec![7; 6 * count];
        parts.keep(first, &bytes, &state(first + count)).unwrap();
    };
    let gaps = |parts: &CheckpointDir| {
        let gaps = parts.gaps().unwrap().into_iter();
        gaps.map(|gap| (gap.start, gap.end)).collect::<Vec<_>>()
    };
    assert_eq!(gaps(&parts), [(0, 20)]);
    keep(&mut parts, 2, 3);
    keep(&mut parts, 4, 4);
    keep(&mut parts, 12, 2);
    assert_eq!(gaps(&parts), [(0, 2), (8, 12), (14, 20)]);
    assert_eq!(frames_in(&parts.gaps().unwrap()), 12);
    assert_eq!(parts.frames_there().unwrap(), 0);
    // the newest state that is not after what is missing
    assert_eq!(
        [1, 14, 20].map(|at| parts.state_before(at).unwrap()),
        [0, 14, 14]
    );
    keep(&mut parts, 0, 2);
    keep(&mut parts, 8, 4);
    // of states only older ones give way
    assert_eq!([13, 14].map(|at| parts.state_before(at).unwrap()), [12, 14]);
    assert_eq!(gaps(&parts), [(14, 20)]);
    keep(&mut parts, 14, 6);
    let all = parts.frames().unwrap().map(Result::unwrap);
    assert_eq!(all.map(|bytes| bytes.len()).sum::<usize>(), 120);
}

#[test]
fn frames_that_are_there_are_not_written_again() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open_of(folder.path(), 5);
    parts.keep(0, &[1; 6], &state(1)).unwrap();
    let path = parts.part(0, &[1; 6]).path;
    let number = |path: &Path| path.metadata().unwrap().ino();
    let (before, link) = (number(&path), folder.path().join("link"));
    // so that its number is not given to the next
    fs::hard_link(&path, link).unwrap();
    parts.keep(0, &[1; 6], &state(1)).unwrap();
    assert_eq!(number(&path), before);
    // but where they were found damaged
    fs::write(&path, [2; 6]).unwrap();
    parts.check(&mut || Ok(())).unwrap();
    parts.unfit().unwrap();
    parts.keep(0, &[1; 6], &state(1)).unwrap();
    assert_ne!(number(&path), before);
}

#[test]
fn of_frames_with_other_bits_the_newer_ones_stay() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open_of(folder.path(), 1);
    for bytes in [[7; 6], [3; 6], [5; 6]] {
        parts.keep(0, &bytes, &state(1)).unwrap();
        let all: Vec<Vec<u8>> = parts.frames().unwrap().map(Result::unwrap).collect();
        assert_eq!(all, [bytes]);
        assert_eq!(frames::bytes(&parts.folder), 6);
    }
}

#[test]
fn a_user_who_ends_it_does_not_wait_until_all_frames_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = open(folder.path());
    parts.keep(0, &[1; 6], &state(1)).unwrap();
    let e = parts.check(&mut || Err(Error::Stopped)).unwrap_err();
    assert!(matches!(e, Error::Stopped), "{e}");
    assert_eq!(
        (told(&mut parts), stopped(&mut parts)),
        ((Vec::new(), 1), 1)
    );
}

/// In a process of its own, as the limit is one of a process.
#[test]
fn a_limit_on_the_size_of_files_is_said_and_costs_no_state() {
    const LIMITED: &str = "FPT_TEST_LIMITED";
    if std::env::var_os(LIMITED).is_none() {
        let mut limited = Command::new("sh");
        // 8 times 512 bytes; the signal would end it
        let words = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
        limited.args(["-c", words]).env(LIMITED, "1");
        limited.arg(std::env::current_exe().unwrap()).arg("--exact");
        let (_, module) = module_path!().split_once("::").unwrap();
        let this = "a_limit_on_the_size_of_files_is_said_and_costs_no_state";
        let output = limited.arg(format!("{module}::{this}")).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // with the room of the state all would fit, if room were what is missing
    let mut parts = open_of(folder.path(), 691);
    parts.keep(0, &[1; 6], &state(1)).unwrap();
    let e = parts.keep(1, &[2; 690 * 6], &state(691)).unwrap_err();
    assert!(e.is_full(), "{e}");
    let e = e.with_cure(|e| parts.cure(e)).to_string();
    let kept = format!(
        "File too large (os error 27): 1 of 691 frames are kept in {}",
        parts.root.display()
    );
    assert!(
        e.contains(&kept)
            && e.contains("raise the limit on the size of files")
            && !e.contains("free"),
        "{e}"
    );
    assert_eq!(stopped(&mut parts), 1);
}
