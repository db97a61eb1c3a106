//! Arguments of `decode`, `encode` and `worker`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cli::args::ShowArgs;
use crate::model::Bytes;

#[derive(Debug, clap::Args)]
#[command(after_long_help = DECODE_HELP)]
pub(in crate::cli) struct DecodeArgs {
    /// Latents: a safetensors file
    #[arg(required_unless_present = "from_vault", conflicts_with = "from_vault")]
    pub(super) latents: Option<PathBuf>,
    /// Take what the vault kept of a dead run: an entry as for `vault show`, else the
    /// newest latents
    #[arg(long, value_name = "ENTRY", num_args = 0..=1, default_missing_value = "")]
    pub(super) from_vault: Option<String>,
    /// Folder of the autoencoder (`vae`) as diffusers saves it, or a checkpoint of one file;
    /// from the vault without it the one that the dead run had loaded
    #[arg(long, value_name = "DIR|FILE", required_unless_present = "from_vault")]
    pub(super) model: Option<PathBuf>,
    /// The video: .mp4 (through ffmpeg), .gif, or a name without an ending for a folder of
    /// png pictures; not in the model's folder
    #[arg(long, short, value_name = "FILE|DIR")]
    pub(super) output: PathBuf,
    /// Frames a second (of a gif 50 at most); without it what the latents say, else 24, of WAN 16
    #[arg(long, value_name = "N", value_parser = fps)]
    pub(super) fps: Option<f64>,
    /// Which video of a batch, from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) item: Option<u32>,
    /// Whether the latents are as the decoder takes them (true), or as a diffusion model
    /// leaves them (false); without it what the file says, else false
    #[arg(long, value_name = "true|false")]
    pub(super) scaling_applied: Option<bool>,
    #[command(flatten)]
    pub(super) how: HowArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = ENCODE_HELP)]
pub(in crate::cli) struct EncodeArgs {
    /// The video: a folder of png pictures, a gif, or what ffmpeg reads (no HDR). Its sides must
    /// be multiples of 8 (of WAN 2.2 of 16) pixels
    pub(super) video: PathBuf,
    /// Folder of the autoencoder (`vae`) as diffusers saves it, or a checkpoint of one file
    #[arg(long, value_name = "DIR|FILE")]
    pub(super) model: PathBuf,
    /// The latents: a .safetensors file; not in the model's folder
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: PathBuf,
    /// Frames a second, kept beside the latents; without it what the video says
    #[arg(long, value_name = "N", value_parser = fps)]
    pub(super) fps: Option<f64>,
    #[command(flatten)]
    pub(super) how: HowArgs,
}

/// How either is run.
#[derive(Debug, clap::Args)]
pub(super) struct HowArgs {
    /// Replace what is there: a file, or (`decode`) a folder that holds pictures of a video alone
    #[arg(long, short)]
    pub(super) force: bool,
    /// Where it is computed; auto: on the card if framepack-tui-cuda is there and the card
    /// answers, else on the processor
    #[arg(long, value_name = "auto|cpu|cuda", default_value = "auto")]
    pub(super) device: Device,
    /// Profile: an id, or a file. Without it the best matching one is taken and named
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) profile: Option<String>,
    /// VRAM cap, such as 20GiB; wins over the profile's. Concerns the card alone
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    pub(super) cap: Option<Bytes>,
    /// Card to supervise, as for `run`
    #[arg(long, value_name = "N|PCI")]
    pub(super) gpu: Option<String>,
    #[command(flatten)]
    pub(super) show: ShowArgs,
}

/// Where it is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Device {
    /// On the card where there is one that can be used.
    Auto,
    /// On the processor.
    Cpu,
    /// On the card.
    Cuda,
}

#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(in crate::cli) struct WorkerArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) words: Vec<OsString>,
}

fn fps(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(fps) if (0.1..=1000.0).contains(&fps) => Ok(fps),
        _ => Err("a number from 0.1 to 1000".to_owned()),
    }
}

const DECODE_HELP: &str = "\
Runs as any other program does: watched, recorded, ended when it hangs, and started again
on a fallback. Finished frames are kept in OUT.parts, uncompressed, until the video is whole:
OUT's disk needs 3 bytes for each of their pixels, and room for the video. After a kill or on
a full disk the same command goes on after them, to the same bits. An OUT that a killed run
had finished is told as the result; any other that is there is not touched without --force.

OUT is never in the model's folder (the one with its config.json), nor one of its files, nor
what the latents are or lie in, nor the current folder or one above it.

Exit codes: those of `run`; 64 also: the output is there (--force replaces it), or cannot be
one; 65: latents, model or vault entry are damaged or do not fit each other, --item is more
than there are, OUT has another ending, or its folder is missing; 66: not found; 69: no ffmpeg
that writes mp4, or no card that can be used; 73: the disk has no room for the frames.

Examples: framepack-tui decode latents.safetensors --model HunyuanVideo/vae -o out.mp4
          framepack-tui decode --from-vault --model HunyuanVideo/vae -o rescued.gif";

const ENCODE_HELP: &str = "\
Writes the mean of the distribution that the encoder gives, as `decode` takes it. Frames
beyond a multiple of 4 plus 1 are left out. Each frame is taken once, however long it is
shown; a rotation that the file names is made; more than 8 bits a colour are reduced to 8,
and transparency is left out. All frames are held in memory; a killed encode begins anew.

The latents are never written in the model's folder (the one with its config.json), nor in
the place of one of its files or of the video.

Exit codes: those of `decode`.

Example: framepack-tui encode clip.gif --model Wan2.1-T2V/vae -o latents.safetensors";
