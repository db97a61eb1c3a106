//! What a worker is asked to do: its words, and what can be told before anything is computed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::checkpoint::{Beginnings, CheckpointDir, Kept};
use super::disk::Disk;
use super::latents::Latents;
use super::sizes;
use crate::error::{Error, Result};
use crate::vae::{Config, Direction, Model, Ratio};
use crate::video::{self, About, Kind, Size};

/// Decode or encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Latents to a video.
    Decode,
    /// A video to latents.
    Encode,
    /// Only say whether the device can be used.
    Probe,
}

impl Task {
    const ALL: [Self; 3] = [Self::Decode, Self::Encode, Self::Probe];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Encode => "encode",
            Self::Probe => "probe",
        }
    }
}

/// Where it is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// On the card that this worker was built for.
    Card,
    /// On the processor.
    #[default]
    Cpu,
    /// On the card, if this program has one.
    Auto,
}

/// One job of a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// What.
    pub task: Task,
    /// Latents, or a video.
    pub input: PathBuf,
    /// Folder or file of the autoencoder.
    pub model: PathBuf,
    /// What is written.
    pub output: PathBuf,
    /// Where it is computed.
    pub place: Place,
    /// A file at `output` is replaced.
    pub force: bool,
    /// Frames a second of the video; absent: what the latents or the model say.
    pub fps: Option<f64>,
    /// Which video of a batch, from 1.
    pub item: Option<usize>,
    /// The latents are as the decoder takes them (`true`), or as a diffusion model leaves them; absent:
    /// what the file says, else the latter.
    pub scaling_applied: Option<bool>,
}

/// Words that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Usage(String);

/// How a worker is called.
pub const USAGE: &str = "decode LATENTS | encode VIDEO, --model DIR --output FILE [--device auto|cpu|cuda] [--fps N] [--item N] [--scaling-applied true|false] [--force]; or: probe [--device auto|cpu|cuda]";

impl Job {
    /// The words behind the program that mean this job.
    pub fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![self.task.word().into()];
        let mut option = |name: &str, value: OsString| words.extend([name.into(), value]);
        let device = match self.place {
            Place::Card => "cuda",
            Place::Cpu => "cpu",
            Place::Auto => "auto",
        };
        if self.task != Task::Probe {
            option("--model", self.model.clone().into());
            option("--output", self.output.clone().into());
        }
        option("--device", device.into());
        if let Some(fps) = self.fps {
            option("--fps", fps.to_string().into());
        }
        if let Some(item) = self.item {
            option("--item", item.to_string().into());
        }
        if let Some(applied) = self.scaling_applied {
            option("--scaling-applied", applied.to_string().into());
        }
        if self.force {
            words.push("--force".into());
        }
        if self.task != Task::Probe {
            words.push("--".into());
            words.push(self.input.clone().into());
        }
        words
    }

    /// Reads the words behind the program.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> std::result::Result<Self, Usage> {
        let mut words = words.into_iter().peekable();
        words.next_if(|word| word == "worker");
        let task = words.next().unwrap_or_default();
        let found = Task::ALL.into_iter().find(|known| task == known.word());
        let task = found.ok_or_else(|| {
            Usage(format!(
                "`{}` is none of decode, encode, probe",
                task.display()
            ))
        })?;
        let mut job = Self {
            task,
            input: PathBuf::new(),
            model: PathBuf::new(),
            output: PathBuf::new(),
            place: Place::Cpu,
            force: false,
            fps: None,
            item: None,
            scaling_applied: None,
        };
        let mut only_files = false;
        while let Some(word) = words.next() {
            let text = word.to_str().unwrap_or_default();
            if only_files || !text.starts_with('-') {
                if !job.input.as_os_str().is_empty() {
                    return Err(Usage(format!("`{}` is one file too many", word.display())));
                }
                job.input = word.into();
            } else if text == "--" {
                only_files = true;
            } else if text == "--force" {
                job.force = true;
            } else {
                let value = words
                    .next()
                    .ok_or_else(|| Usage(format!("{text} needs a value")))?;
                job.option(text, value)?;
            }
        }
        job.complete()
    }

    fn option(&mut self, name: &str, value: OsString) -> std::result::Result<(), Usage> {
        let text = value.to_str().unwrap_or_default();
        let wrong = |want: &str| Usage(format!("{name} takes {want}, not `{}`", value.display()));
        match name {
            "--model" => self.model = value.into(),
            "--output" => self.output = value.into(),
            "--device" => {
                self.place = match text {
                    "cpu" => Place::Cpu,
                    "cuda" => Place::Card,
                    "auto" => Place::Auto,
                    _ => return Err(wrong("auto, cpu or cuda")),
                }
            }
            "--fps" => {
                self.fps = Some(fps(text).ok_or_else(|| wrong("a number from 0.1 to 1000"))?);
            }
            "--item" => {
                let item = text.parse().ok().filter(|item| *item > 0);
                self.item = Some(item.ok_or_else(|| wrong("a number from 1"))?);
            }
            "--scaling-applied" => {
                self.scaling_applied = Some(text.parse().map_err(|_other| wrong("true or false"))?);
            }
            _ => return Err(Usage(format!("{name} is no option"))),
        }
        Ok(())
    }

    /// The same with the output as it is meant: `folder/` is `folder`.
    #[must_use]
    pub fn normal(mut self) -> Self {
        self.output = self.output.components().collect();
        self
    }

    fn complete(self) -> std::result::Result<Self, Usage> {
        let missing = |path: &Path| path.as_os_str().is_empty();
        if self.task == Task::Probe {
            return Ok(self);
        }
        for (path, what) in [
            (&self.input, "a file to read"),
            (&self.model, "--model"),
            (&self.output, "--output"),
        ] {
            if missing(path) {
                return Err(Usage(format!("{} needs {what}", self.task.word())));
            }
        }
        Ok(self.normal())
    }

    /// Looks at everything that can be wrong before anything is computed: the files' headers, whether they fit
    /// each other, the output and what it takes to write it. What a decode needs of the disk comes back.
    pub fn check(&self) -> Result<Option<Disk>> {
        if self.task == Task::Probe {
            return Ok(None);
        }
        self.check_place()?;
        self.check_output()?;
        let model = open_model(self)?;
        if self.task == Task::Decode {
            return self.check_latents(model.config()).map(Some);
        }
        if let Some(about) = video::look(&self.input)? {
            self.check_video(model.config(), &about)?;
        }
        Ok(None)
    }

    /// What is known of a decode before the latents are read.
    fn check_latents(&self, config: &Config) -> Result<Disk> {
        let latents = Latents::look(&self.input)?;
        latents.made_for(config.family())?;
        let [_, _, t, h, w] = latents.fits(config.latent_channels(), self.item)?;
        sizes::possible(config, [t, h, w], self.place).map_err(|reason| Error::File {
            path: self.input.clone(),
            reason,
        })?;
        let kind = Kind::of(&self.output)?;
        let space = config.ratio().space;
        let [height, width] = [h, w].map(|side| side * space);
        // what the latents say of it is looked at when they are read
        let fps = self.fps.unwrap_or(24.0);
        video::writable(kind, Size { width, height }, fps)?;
        Ok(Disk::of(&self.output, kind, config, [t, h, w]))
    }

    /// What is known of a video before it is read.
    fn check_video(&self, config: &Config, about: &About) -> Result<()> {
        let wrong = |reason: String| {
            Err(Error::File {
                path: self.input.clone(),
                reason,
            })
        };
        let frames = about.frames.unwrap_or(1);
        if let Some(reason) = sizes::limits().exceeded(frames, about.size) {
            return wrong(reason);
        }
        fitting(config.ratio(), frames, about.size)
            .and_then(|size| sizes::encodable(config, size, self.place))
            .or_else(wrong)
    }

    /// Whether the output may be written where it is named: nothing that is not ours is ever replaced.
    pub(super) fn check_place(&self) -> Result<()> {
        if self.output.as_os_str() == "-" {
            return usage(
                "nothing is written to standard output: name a file or a folder (./- is one of that name)",
            );
        }
        video::is_free_of(&self.output, &[&self.input, &self.model])?;
        video::is_not_of(&self.output, &self.model)?;
        let kind = match self.task {
            Task::Decode => Some(Kind::of(&self.output)?),
            _ => None,
        };
        if self.task == Task::Decode {
            CheckpointDir::check_place(&self.output)?;
        }
        if let Some(fps) = self.fps.filter(|fps| *fps > video::MOST_GIF_FPS)
            && kind == Some(Kind::Gif)
        {
            return usage(format!(
                "--fps {fps}: a gif shows at most {most} frames a second, as its delays are whole hundredths of a second and viewers take less than two of them for ten: give --fps {most}, or write an .mp4 or a folder of pictures",
                most = video::MOST_GIF_FPS
            ));
        }
        if self.force {
            video::replaceable(&self.output, kind == Some(Kind::Pictures))?;
        }
        Ok(())
    }

    /// After the run: removes what a killed worker has left beside the output that no other could go on from. What is
    /// not ours, or in use, stays.
    pub fn tidy(&self) {
        if self.task == Task::Decode {
            CheckpointDir::tidy(&self.output);
        }
    }

    /// Which runs have begun beside the output; for [`Job::kept`], before one more does.
    pub fn beginnings(&self) -> Beginnings {
        match self.task {
            Task::Decode => CheckpointDir::beginnings(&self.output),
            _ => Beginnings::default(),
        }
    }

    /// What the run that has begun since then left to go on from; `None`: nothing, or it came to its end.
    pub fn kept(&self, before: &Beginnings) -> Option<Kept> {
        match self.task {
            Task::Decode => CheckpointDir::left_since(&self.output, before),
            _ => None,
        }
    }

    fn check_output(&self) -> Result<()> {
        let wrong = |reason: String| {
            Err(Error::File {
                path: self.output.clone(),
                reason,
            })
        };
        // the worker looks whether it is the same video
        let ours = self.task == Task::Decode && CheckpointDir::is_finished(&self.output);
        if self.output.symlink_metadata().is_ok() && !self.force && !ours {
            return Err(Error::Exists(self.output.clone()));
        }
        if self.task == Task::Decode {
            CheckpointDir::check_free(&self.output)?;
        }
        let ends = self.output.extension().and_then(|end| end.to_str());
        if self.task == Task::Encode && ends != Some("safetensors") {
            return wrong("latents are written as .safetensors: name it so".to_owned());
        }
        video::can_be_written(&self.output)
    }
}

fn usage<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Usage(reason.into()))
}

/// Frames, height and width of a video that are encoded, where the model can take it: the last frames may be left out.
pub(super) fn fitting(
    ratio: Ratio,
    frames: usize,
    size: Size,
) -> std::result::Result<[usize; 3], String> {
    let Size { width, height } = size;
    let space = ratio.space;
    if !width.is_multiple_of(space) || !height.is_multiple_of(space) {
        let cure = if width.min(height) < space {
            "scale it to"
        } else {
            "scale or crop it to"
        };
        return Err(format!(
            "{width} x {height} pixels: this model takes sides that are multiples of {space}; {cure} {} x {}",
            (width / space).max(1) * space,
            (height / space).max(1) * space
        ));
    }
    let count = (frames.max(1) - 1) / ratio.time * ratio.time + 1;
    Ok([count, height, width])
}

/// Frames a second that a video can have.
pub(super) fn fps(text: &str) -> Option<f64> {
    text.parse().ok().filter(|fps| (0.1..=1000.0).contains(fps))
}

/// Channels of a picture.
const COLOURS: usize = 3;

/// Opens the model of a job; a folder that has the autoencoder in its folder `vae` will do. One whose videos are no
/// pictures is refused: it would be found out only when the first of them is there.
pub(super) fn open_model(job: &Job) -> Result<Model> {
    let path = job.model.as_path();
    let model = find_model(path)?;
    let half = match job.task {
        Task::Encode => Direction::Encode,
        Task::Decode | Task::Probe => Direction::Decode,
    };
    let channels = model.config().colours(half);
    if channels == COLOURS {
        return Ok(model);
    }
    Err(Error::File {
        path: model.weights().described_by().unwrap_or(path).to_owned(),
        reason: format!(
            "the model's videos have {channels} channels, and a picture has {COLOURS} (red, green, blue): take the \
             autoencoder of a model that makes pictures"
        ),
    })
}

fn find_model(path: &Path) -> Result<Model> {
    let below = path.join("vae");
    if !path.join("config.json").exists() && below.join("config.json").exists() {
        return Model::open(&below);
    }
    if path.is_dir() && !path.join("config.json").exists() {
        return Err(Error::File {
            path: path.to_owned(),
            reason: "there is no config.json in it: give the folder of the autoencoder (`vae`) as diffusers saves it"
                .to_owned(),
        });
    }
    Model::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> std::result::Result<Job, Usage> {
        Job::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn words_come_back() {
        for line in [
            "worker decode a.safetensors --model m --output o.mp4 --device cuda --fps 16 --item 2 --scaling-applied true --force",
            "encode v --model m --output o.safetensors",
            "probe --device cuda",
        ] {
            let job = parse(line).unwrap();
            assert_eq!(Job::parse(job.words()), Ok(job), "{line}");
        }
        let odd = Job {
            input: "--odd".into(),
            ..parse("decode a --model m --output o").unwrap()
        };
        assert_eq!(Job::parse(odd.words()), Ok(odd));
    }

    #[test]
    fn a_slash_behind_the_output_means_nothing() {
        let job = parse("decode a --model m --output ./new/dir/").unwrap();
        assert_eq!(job.output.as_os_str(), "./new/dir");
    }

    #[test]
    fn frames_a_second_are_judged() {
        for bad in ["0", "-3", "nan", "inf", "1e30", "", "x"] {
            assert_eq!(fps(bad), None, "{bad}");
        }
        assert_eq!(fps("23.976"), Some(23.976));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, want) in [
            ("", "`` is none of decode, encode, probe"),
            ("decode --model m --output o", "decode needs a file to read"),
            ("decode a --output o", "decode needs --model"),
            ("decode a b", "`b` is one file too many"),
            (
                "decode a --fps x",
                "--fps takes a number from 0.1 to 1000, not `x`",
            ),
            (
                "decode a --device tpu",
                "--device takes auto, cpu or cuda, not `tpu`",
            ),
            ("decode a --sped 1", "--sped is no option"),
            ("decode a --model", "--model needs a value"),
        ] {
            assert_eq!(parse(line).unwrap_err().to_string(), want, "{line}");
        }
    }
}
