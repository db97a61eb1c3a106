//! Pictures and videos of other forms than those that are written here.

use std::fs;
use std::path::Path;

use ::png::{BitDepth, ColorType, Encoder};

use super::tests::script;
use super::*;

/// Colours, and how clear each is.
type Palette = Option<(&'static [u8], &'static [u8])>;

/// Writes a picture of 2 x 1 pixels.
fn picture(path: &Path, (color, depth): (ColorType, BitDepth), data: &[u8], palette: Palette) {
    let file = fs::File::create(path).unwrap();
    let mut encoder = Encoder::new(file, 2, 1);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if let Some((colors, alphas)) = palette {
        encoder.set_palette(colors);
        encoder.set_trns(alphas);
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(data).unwrap();
    writer.finish().unwrap();
}

fn took(folder: &Path) -> (Vec<u8>, Vec<String>) {
    let frames = read(folder, Limits::NONE, &mut || Ok(())).unwrap();
    (frames.bytes, frames.problems)
}

/// Of two colours.
const COLORS: &[u8] = &[1, 2, 3, 250, 251, 252];

#[test]
fn every_form_of_png_becomes_eight_bits_of_red_green_and_blue() {
    use BitDepth::{Eight, One, Sixteen};
    use ColorType::{Grayscale, GrayscaleAlpha, Indexed, Rgb, Rgba};
    // both pixels, whether some of it is transparent
    let cases: [(_, &[u8], Palette, [u8; 6], bool); 9] = [
        (
            (Rgb, Eight),
            &[1, 2, 3, 4, 5, 6],
            None,
            [1, 2, 3, 4, 5, 6],
            false,
        ),
        (
            (Rgb, Sixteen),
            &[1, 0, 2, 0, 3, 9, 4, 0, 255, 255, 6, 0],
            None,
            [1, 2, 3, 4, 255, 6],
            false,
        ),
        (
            (Grayscale, Eight),
            &[7, 200],
            None,
            [7, 7, 7, 200, 200, 200],
            false,
        ),
        (
            (Grayscale, One),
            &[0b0100_0000],
            None,
            [0, 0, 0, 255, 255, 255],
            false,
        ),
        (
            (GrayscaleAlpha, Eight),
            &[7, 255, 9, 0],
            None,
            [7, 7, 7, 9, 9, 9],
            true,
        ),
        (
            (Rgba, Eight),
            &[1, 2, 3, 255, 4, 5, 6, 255],
            None,
            [1, 2, 3, 4, 5, 6],
            false,
        ),
        (
            (Rgba, Eight),
            &[1, 2, 3, 254, 4, 5, 6, 255],
            None,
            [1, 2, 3, 4, 5, 6],
            true,
        ),
        (
            (Indexed, Eight),
            &[1, 0],
            Some((COLORS, &[])),
            [250, 251, 252, 1, 2, 3],
            false,
        ),
        (
            (Indexed, Eight),
            &[1, 0],
            Some((COLORS, &[0, 255])),
            [250, 251, 252, 1, 2, 3],
            true,
        ),
    ];
    for (form, data, palette, want, clear) in cases {
        let folder = tempfile::tempdir().unwrap();
        picture(&folder.path().join("a.png"), form, data, palette);
        let (bytes, problems) = took(folder.path());
        assert_eq!(bytes, want, "{form:?}");
        let told = problems.join("; ");
        assert_eq!(
            told.contains("a.png: transparency is left out"),
            clear,
            "{form:?}: {told}"
        );
        assert_eq!(problems.len(), usize::from(clear), "{told}");
    }
}

#[test]
fn of_an_animated_png_in_a_folder_one_picture_is_taken_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.png", "b.png"] {
        let file = fs::File::create(folder.path().join(name)).unwrap();
        let mut encoder = Encoder::new(file, 1, 1);
        encoder.set_color(ColorType::Rgb);
        encoder.set_animated(3, 0).unwrap();
        let mut writer = encoder.write_header().unwrap();
        for n in 1..=3 {
            writer.write_image_data(&[n, n, n]).unwrap();
        }
        writer.finish().unwrap();
    }
    let (bytes, problems) = took(folder.path());
    assert_eq!(bytes, [1; 6]);
    let [problem] = &problems[..] else {
        panic!("{problems:?}");
    };
    assert!(
        problem.contains("a.png and 1 more: of an animated png"),
        "{problem}"
    );
}

/// A program in the place of ffmpeg that tells this of a file and gives a picture of one pixel.
fn told(line: &str) -> (Result<Option<About>>, Result<Frames>) {
    let folder = tempfile::tempdir().unwrap();
    let video = folder.path().join("v.mkv");
    fs::write(&video, "video").unwrap();
    let text = format!(
        "case \"$*\" in *-version*) exit;; *'-pix_fmt rgb24'*ppm*) printf 'P6\\n1 1\\n255\\nrgb';; *) printf \"Input #0, x:\\n  {line}\\n\" >&2; exit 1;; esac"
    );
    let path = script(folder.path(), &text);
    program::with(&path, || {
        let read = read(&video, Limits::NONE, &mut || Ok(()));
        (look(&video), read)
    })
}

#[test]
fn what_is_no_video_that_can_be_taken_is_refused_before_it_is_read() {
    for (line, want) in [
        (
            "Stream #0:0: Audio: mp3, 44100 Hz",
            "there is no video in it",
        ),
        (
            "Stream #0:0: Video: png, rgb24, 9x9 (attached pic)",
            "there is no video in it",
        ),
        (
            "Stream #0:0: Video: hevc, yuv420p10le(tv, bt2020nc/bt2020/smpte2084), 9x9",
            "it is HDR (PQ, smpte2084)",
        ),
        (
            "Stream #0:0: Video: hevc, yuv420p10le(tv, bt2020nc/bt2020/arib-std-b67), 9x9",
            "it is HDR (HLG, arib-std-b67)",
        ),
    ] {
        let (before, then) = told(line);
        for e in [before.unwrap_err(), then.unwrap_err()] {
            assert!(matches!(e, Error::File { .. }), "{e}");
            assert!(e.to_string().contains(want), "{e}");
        }
    }
}

#[test]
fn what_is_not_as_one_would_think_is_told() {
    for (about, want) in [
        ("yuv420p10le(tv, bt709), 9x9 [SAR 1:1 DAR 1:1]", None),
        ("yuv420p, 9x9 [SAR 0:1 DAR 1:1]", None),
        ("yuv420p, 9x9 [SAR 2:1 DAR 2:1]", Some("not square (2:1)")),
        ("yuva420p(tv), 9x9", Some("has transparency")),
        ("rgba64le(pc), 9x9", Some("has transparency")),
    ] {
        let line = format!("Stream #0:0: Video: hevc (Main 10), {about}, 24 fps, 24 tbr");
        let (before, frames) = told(&line);
        assert_eq!(before.unwrap(), None, "{about}");
        let problems = frames.unwrap().problems;
        match want {
            None => assert_eq!(problems, Vec::<String>::new(), "{about}"),
            Some(want) => {
                assert_eq!(problems.len(), 1, "{problems:?}");
                assert!(problems[0].contains(want), "{problems:?}");
            }
        }
    }
}
