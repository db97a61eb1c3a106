//! What the vault kept of a Python generation that hung in its decode, decoded without Python:
//! the frames are those of the reference.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{BINARY, Home, Start, python, wait_until, workload};

const LIMIT: Duration = Duration::from_mins(3);

/// For the references below: frames as 8-bit RGB in a file.
const WRITE: &str = "
import runpy, sys, torch
def write(name, clip):
    frames = (clip.float().clamp(-1, 1) / 2 + 0.5) * 255
    open(name, 'wb').write(frames[0].permute(1, 2, 3, 0).round().byte().numpy().tobytes())
def whole(vae, z):
    vae.use_tiling = vae.use_framewise_decoding = False
    return vae.decode(z, return_dict=False)[0]
";

/// A workload that leaves its autoencoder in `vae`, its frames in `shown.rgb`, and what the
/// autoencoder makes of its last latents in one piece in `frames.rgb`.
const UNDISTURBED: &str = "
import diffusers
kind = getattr(diffusers, sys.argv[2])
real, busy = kind.decode, []
def decode(self, z, *a, **k):
    out = real(self, z, *a, **k)
    if not busy:
        busy.append(1)
        self.save_pretrained('vae')
        write('shown.rgb', out[0])
        was = self.use_tiling, getattr(self, 'use_framewise_decoding', None)
        write('frames.rgb', whole(self, z))
        self.use_tiling, self.use_framewise_decoding = was
        busy.clear()
    return out
kind.decode = decode
script = sys.argv[1]
sys.argv = [script] + sys.argv[3:]
sys.path.insert(0, script.rpartition('/')[0])
runpy.run_path(script, run_name='__main__')
";

/// A program of the reference in this home.
fn reference(home: &Home, program: &str, words: &[&OsStr]) -> Child {
    let mut command = Command::new(python());
    home.dress(&mut command);
    command
        .current_dir(home.dir())
        .args(["-c", &format!("{WRITE}{program}")])
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn succeeds(program: Child) {
    let output = program.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
}

/// Names of what the vault keeps of this kind.
fn kept(home: &Home, what: &str) -> Vec<String> {
    let files = std::fs::read_dir(home.path("data/framepack-tui/vault"));
    let names = files.into_iter().flatten().flatten();
    let names = names.map(|f| f.file_name().to_string_lossy().into_owned());
    names.filter(|n| n.starts_with(what)).collect()
}

/// Words of a short job of FramePack.
const TWO_SECTIONS: [&str; 7] = [
    "--float32",
    "--sections",
    "2",
    "--steps",
    "2",
    "--out",
    "out",
];

/// These words, and a decode that hangs.
fn hanging<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [words, &["--fault", "hang-idle"]].concat()
}

/// Runs a workload until the vault has so many of this kind, and ends it. `beside` runs in this
/// home meanwhile, and is over before: nothing may be left behind.
fn hangs(
    home: &Home,
    script: &Path,
    more: &[&str],
    (what, count): (&str, usize),
    beside: Option<Child>,
) {
    let run = Start::new(home)
        .command(&[python().as_os_str(), script.as_os_str()])
        .command(more)
        .start();
    let there = wait_until(LIMIT, || kept(home, what).len() >= count);
    beside.into_iter().for_each(succeeds);
    assert!(there, "{what}: {:?}", kept(home, ""));
    run.signal(Signal::TERM);
    run.finish(LIMIT).assert_exit(143);
}

/// `decode --from-vault` with these words, into this folder.
fn rescue(home: &Home, entry: Option<&str>, more: &[&OsStr], output: &Path) {
    let vae = home.path("vae");
    let mut words: Vec<&OsStr> = vec!["--from-vault".as_ref()];
    words.extend(entry.map(OsStr::new));
    words.extend([OsStr::new("--model"), vae.as_ref()]);
    words.extend([OsStr::new("-o"), output.as_ref()]);
    words.extend(["--device", "cpu"].map(OsStr::new));
    words.extend(more);
    let run = Start::new(home).engine("decode", &words).start();
    run.finish(LIMIT).assert_exit(0);
}

/// Whether the pictures are those of a file of raw RGB, but for roundings.
fn are_the_frames(output: &Path, reference: &Path, count: usize) {
    let ours = framepack_engine::video::read(
        output,
        framepack_engine::video::Limits::NONE,
        &mut || Ok(()),
    )
    .unwrap();
    let theirs = std::fs::read(reference).unwrap();
    assert_eq!((ours.count(), ours.bytes.len()), (count, theirs.len()));
    let pairs = || ours.bytes.iter().zip(&theirs);
    let worst = pairs().map(|(a, b)| a.abs_diff(*b)).max();
    assert!(worst <= Some(1), "off by {worst:?} of 255");
    let off = pairs().filter(|(a, b)| a != b).count();
    assert!(
        off * 100 <= theirs.len(),
        "{off} of {} differ",
        theirs.len()
    );
    let (least, most) = (theirs.iter().min(), theirs.iter().max());
    assert!(least < most, "one colour says nothing");
}

#[test]
fn a_rescued_latent_of_wan_gives_the_frames_of_the_reference() {
    let home = Home::new();
    let wan = workload("tiny_wan.py");
    let same = ["--float32", "--steps", "2", "--frames", "9", "--out", "out"];
    let mut words = vec![wan.as_os_str(), "AutoencoderKLWan".as_ref()];
    words.extend(same.map(OsStr::new));
    let program = reference(&home, UNDISTURBED, &words);
    let faulty = hanging(&same);
    hangs(&home, &wan, &faulty, ("latents.", 1), Some(program));
    let output = home.path("out/rescued");
    rescue(&home, None, &[], &output);
    are_the_frames(&output, &home.path("frames.rgb"), 9);
}

/// The decode of the second section hangs. In one piece the frames are those of diffusers in one
/// piece; with the tiles of the program, those that it would have shown.
#[test]
fn a_rescued_latent_of_framepack_gives_the_frames_of_the_reference() {
    let home = Home::new();
    let framepack = workload("tiny_framepack.py");
    let mut words = vec![framepack.as_os_str(), "AutoencoderKLHunyuanVideo".as_ref()];
    words.extend(TWO_SECTIONS.map(OsStr::new));
    let program = reference(&home, UNDISTURBED, &words);
    let faulty = hanging(&TWO_SECTIONS);
    hangs(&home, &framepack, &faulty, ("latents.", 2), Some(program));
    let output = home.path("out/rescued");
    rescue(&home, None, &[], &output);
    are_the_frames(&output, &home.path("frames.rgb"), 25);

    let profile = home.path("tiles.toml");
    std::fs::write(
        &profile,
        "schema = 1\n[profile]\nid = \"tiles\"\nversion = \"1.0.0\"\ntitle = \"t\"\n[workload.settings]\nvae_tile = 64\nvae_overlap = 16\nvae_chunk = 4\n",
    )
    .unwrap();
    let output = home.path("out/tiled");
    let more: [&OsStr; 2] = ["--profile".as_ref(), profile.as_ref()];
    rescue(&home, None, &more, &output);
    are_the_frames(&output, &home.path("shown.rgb"), 25);
}

/// The same autoencoder as the program has, and what it makes of the section.
const SECTION: &str = "
import types
from safetensors.torch import load_file
sys.path.insert(0, sys.argv[1])
import tiny_framepack
vae = tiny_framepack.build(types.SimpleNamespace(seed=0, heads=4, float32=True))[1]
vae.save_pretrained('vae')
latents = load_file(sys.argv[2])['latents']
with torch.inference_mode():
    write('frames.rgb', whole(vae, latents / vae.config.scaling_factor))
";

/// Finished sections are there where a decode hangs, too: each a clip of its own.
#[test]
fn a_kept_section_of_framepack_gives_the_frames_of_the_reference() {
    let home = Home::new();
    let app = workload("tiny_framepack_app.py");
    let faulty = hanging(&TWO_SECTIONS);
    hangs(&home, &app, &faulty, ("section.", 2), None);
    let name = first_section(&home);
    let file = home.path("data/framepack-tui/vault").join(&name);
    let folder: PathBuf = app.parent().unwrap().into();
    succeeds(reference(&home, SECTION, &[folder.as_ref(), file.as_ref()]));
    let output = home.path("out/section");
    rescue(&home, Some(&name), &[], &output);
    are_the_frames(&output, &home.path("frames.rgb"), 9);
}

/// Name of the first section, by what the list tells.
fn first_section(home: &Home) -> String {
    let mut command = Command::new(BINARY);
    home.dress(&mut command);
    let told = command.args(["vault", "list", "--json"]).output().unwrap();
    let text = String::from_utf8(told.stdout).unwrap();
    let entries = text.lines().map(|l| serde_json::from_str(l).unwrap());
    let mut found = entries
        .filter(|e: &serde_json::Value| e["what"] == "section" && e["section"] == 1)
        .map(|e| e["name"].as_str().unwrap().to_owned());
    let first = found.next().unwrap_or_else(|| panic!("{text}"));
    assert_eq!(found.next(), None, "{text}");
    first
}
