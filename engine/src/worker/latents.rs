//! Latents in a file.

use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use safetensors::Dtype;

use crate::error::{Error, Result};
use crate::vae::{FAMILIES, Family};
use crate::weights::Weights;

/// Names under which latents are stored, the likeliest first: ours and diffusers', ComfyUI's.
const NAMES: [&str; 4] = ["latents", "samples", "latent_tensor", "z"];
/// ComfyUI's latents are as its decoder takes them (`process_out` of its latent formats is applied by the sampler).
const COMFYUI: &str = "latent_tensor";

/// What says whether they are as the decoder takes them.
const SCALING: &str = "scaling_applied";

/// True or false as JSON and Python write it.
fn told(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "True" | "1" => Some(true),
        "false" | "False" | "0" => Some(false),
        _ => None,
    }
}

/// The family that the agent means where it knows a decoder by its shape alone (`vae_family`); absent: it could not
/// tell.
fn family_of(word: &str) -> Option<&'static Family> {
    let named = |family: &&&Family| family.agent_names.contains(&word);
    FAMILIES.iter().find(named).copied()
}

/// Latents that were looked at, not read.
#[derive(Debug)]
pub(super) struct Latents {
    path: PathBuf,
    weights: std::sync::Arc<Weights>,
    name: String,
    /// As stored.
    shape: Vec<usize>,
    /// Others that could be latents by their dimensions, of which no name says so.
    others: Vec<String>,
}

impl Latents {
    /// Finds the latents in a safetensors file, without reading them.
    pub(super) fn look(path: &Path) -> Result<Self> {
        let wrong = |reason: String| Error::File {
            path: path.to_owned(),
            reason,
        };
        if path.is_dir() {
            return Err(wrong(
                "a folder, where a safetensors file is needed".to_owned(),
            ));
        }
        let weights = Weights::open(path)?;
        let fits = |name: &str| weights.shape(name).is_ok_and(|s| matches!(s.len(), 4 | 5));
        let ours: Vec<&str> = NAMES.into_iter().filter(|name| weights.has(name)).collect();
        let known: Vec<&str> = ours.iter().copied().filter(|name| fits(name)).collect();
        if known.len() > 1 {
            return Err(wrong(format!(
                "latents under several names are in it ({}), and nothing tells which are meant: save those alone in a file",
                known.join(", ")
            )));
        }
        let all: Vec<&str> = weights.names().filter(|name| fits(name)).collect();
        let name = match (known.first().or(ours.first()), &all[..]) {
            (Some(name), _) | (None, [name]) => (*name).to_owned(),
            (None, []) => {
                return Err(wrong(
                    "no tensor of four or five dimensions is in it: it holds no latents of a video"
                        .to_owned(),
                ));
            }
            (None, _) => {
                let names: Vec<&str> = weights.names().take(5).collect();
                return Err(wrong(format!(
                    "several tensors are in it ({} …), and none is named {}: it may be a model",
                    names.join(", "),
                    NAMES.join(", ")
                )));
            }
        };
        let others = all.into_iter().filter(|other| *other != name);
        let others: Vec<String> = others.map(str::to_owned).collect();
        let shape = weights.shape(&name)?.to_vec();
        if !fits(&name) || shape.contains(&0) {
            return Err(wrong(format!(
                "tensor {name} has the shape {shape:?}, where [batch, channels, frames, height, width] is needed"
            )));
        }
        let dtype = weights.dtype(&name)?;
        if !matches!(dtype, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16) {
            return Err(wrong(format!(
                "tensor {name} is stored as {dtype:?}, and latents as F64, F32, F16 or BF16 can be read: save them in float32"
            )));
        }
        Ok(Self {
            path: path.to_owned(),
            weights,
            name,
            shape,
            others,
        })
    }

    /// What is not as clear as it could be, a sentence each.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if !self.others.is_empty() {
            let some: Vec<&str> = self.others.iter().take(5).map(String::as_str).collect();
            let count = match self.others.len() {
                1 => "is 1 other".to_owned(),
                n => format!("are {n} others"),
            };
            remarks.push(format!(
                "of the tensors in the file {} is taken for its name; there {count} ({})",
                self.name,
                some.join(", ")
            ));
        }
        if let Some(text) = self.says(SCALING)
            && told(text).is_none()
        {
            remarks.push(format!(
                "the latents say {SCALING} = {text:?}, which is neither true nor false, and is not heeded"
            ));
        }
        remarks
    }

    /// What the file says under this name besides its tensors.
    pub(super) fn says(&self, name: &str) -> Option<&str> {
        self.weights.says(name)
    }

    /// Whether they are as the decoder takes them, as far as the file tells.
    pub(super) fn scaling_applied(&self) -> Option<bool> {
        let told = self.says(SCALING).and_then(told);
        told.or((self.name == COMFYUI).then_some(true))
    }

    /// Whether they are for the decoder of this class, as far as the file tells (`vae_class`: with its module, or
    /// without one). Other libraries than diffusers have names of their own, of which only the family is looked at.
    pub(super) fn made_for(&self, model: &Family) -> Result<()> {
        let class = model.class;
        let Some(told) = self.says("vae_class") else {
            return Ok(());
        };
        if let Some(family) = self.says("vae_family").and_then(family_of)
            && !class.contains(family.word)
        {
            return Err(Error::File {
                path: self.path.clone(),
                reason: format!(
                    "these latents were made for a decoder of {}, and the model is {class}: name the model that they were made for",
                    family.name
                ),
            });
        }
        let name = told.rsplit('.').next().unwrap_or(told);
        let of_diffusers = told.starts_with("diffusers.") || !told.contains('.');
        let another = FAMILIES
            .iter()
            .any(|family| name.contains(family.word) && !class.contains(family.word));
        if name == class || !(of_diffusers || another) {
            return Ok(());
        }
        Err(Error::File {
            path: self.path.clone(),
            reason: format!(
                "these latents were made for the decoder {name}, and the model is {class}: name the model that they were made for"
            ),
        })
    }

    /// The shape as (B, C, t, h, w), if it is for a decoder of so many channels and `item` (from 1) is one of the
    /// batch.
    pub(super) fn fits(&self, channels: usize, item: Option<usize>) -> Result<[usize; 5]> {
        let wrong = |reason: String| {
            Err(Error::File {
                path: self.path.clone(),
                reason,
            })
        };
        let shape = match self.shape[..] {
            [b, c, t, h, w] if c == channels => [b, c, t, h, w],
            // a video without a batch, or a batch of pictures
            [c, t, h, w] if c == channels => [1, c, t, h, w],
            [b, c, h, w] if c == channels => [b, c, 1, h, w],
            _ => {
                return wrong(format!(
                    "tensor {} has the shape {:?}, and the model takes latents of {channels} channels: they are of another model",
                    self.name, self.shape
                ));
            }
        };
        match (shape[0], item) {
            (1, None) => Ok(shape),
            (n, None) => wrong(format!("holds {n} videos: choose one with --item 1 to {n}")),
            (n, Some(item)) if item > n => wrong(format!(
                "holds {n} videos, and --item {item} is none of them"
            )),
            _ => Ok(shape),
        }
    }

    /// Reads them: (1, C, t, h, w) in single precision.
    pub(super) fn read(&self, channels: usize, item: Option<usize>) -> Result<Tensor> {
        let [_, c, t, h, w] = self.fits(channels, item)?;
        // of a batch that one alone
        let count = c * t * h * w;
        let first = item.unwrap_or(1).saturating_sub(1) * count;
        let wrong = |reason: String| Error::File {
            path: self.path.clone(),
            reason,
        };
        let read = self.weights.numbers(&self.name, first..first + count);
        let numbers = read.map_err(|e| match e {
            // they are no weights of a model
            Error::Weight { name, reason, .. } => wrong(format!("tensor {name}: {reason}")),
            other => other,
        })?;
        if let Some(at) = numbers.iter().position(|x| !x.is_finite()) {
            let what = if numbers[at].is_nan() {
                "NaN"
            } else {
                "an infinity"
            };
            // said of a number, not of the result: nothing was decoded
            return Err(wrong(format!(
                "{what} stands at number {} of tensor {}: the sampler that left these latents broke, often in half precision; make them anew, in bfloat16 or float32 if it comes again",
                first + at,
                self.name
            )));
        }
        Ok(Tensor::from_vec(numbers, (1, c, t, h, w), &Device::Cpu)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn file(folder: &Path, tensors: &[(&str, &[usize])]) -> PathBuf {
        let path = folder.join("l.safetensors");
        let all: HashMap<String, Tensor> = tensors
            .iter()
            .map(|(name, shape)| {
                let count: usize = shape.iter().product();
                let numbers: Vec<f32> = (0u16..).take(count).map(f32::from).collect();
                let tensor = Tensor::from_vec(numbers, *shape, &Device::Cpu).unwrap();
                ((*name).to_owned(), tensor)
            })
            .collect();
        candle_core::safetensors::save(&all, &path).unwrap();
        path
    }

    #[test]
    fn a_single_tensor_is_found_and_brought_into_shape() {
        let folder = tempfile::tempdir().unwrap();
        for (shape, item, want) in [
            (&[1, 4, 3, 2, 2][..], None, [1, 4, 3, 2, 2]),
            (&[4, 3, 2, 2], None, [1, 4, 3, 2, 2]),
            (&[2, 4, 2, 2], Some(2), [1, 4, 1, 2, 2]),
        ] {
            let path = file(folder.path(), &[("any", shape), ("seed", &[1])]);
            let latents = Latents::look(&path).unwrap().read(4, item).unwrap();
            assert_eq!(latents.dims(), want);
        }
        let path = file(folder.path(), &[("x", &[2, 4, 1, 1, 1])]);
        let second = Latents::look(&path).unwrap().read(4, Some(2)).unwrap();
        let numbers: Vec<f32> = second.flatten_all().unwrap().to_vec1().unwrap();
        assert_eq!(numbers, [4.0, 5.0, 6.0, 7.0]);
    }

    #[test]
    fn of_a_batch_only_the_item_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l.safetensors");
        let numbers = [1.0_f32, 2.0, 3.0, f32::NAN];
        let tensor = Tensor::from_vec(numbers.to_vec(), (2, 2, 1, 1, 1), &Device::Cpu).unwrap();
        candle_core::safetensors::save(&[("z".to_owned(), tensor)].into(), &path).unwrap();
        let found = Latents::look(&path).unwrap();
        // the second is damaged, which the first does not know
        let first = found.read(2, Some(1)).unwrap();
        let numbers: Vec<f32> = first.flatten_all().unwrap().to_vec1().unwrap();
        assert_eq!(numbers, [1.0, 2.0]);
        let e = found.read(2, Some(2)).unwrap_err().to_string();
        assert!(e.contains(": NaN stands at number 3 of tensor z: "), "{e}");
        assert!(e.contains("make them anew"), "{e}");
        assert!(!e.contains("weight") && !e.contains("download"), "{e}");
    }

    #[test]
    fn how_latents_are_stored_is_known_before_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l.safetensors");
        let save = |tensor: &Tensor| {
            let all = HashMap::from([("latents".to_owned(), tensor.clone())]);
            candle_core::safetensors::save(&all, &path).unwrap();
        };
        let numbers = Tensor::new(&[0.5_f64, -1.0 / 3.0], &Device::Cpu).unwrap();
        let numbers = numbers.reshape((1, 2, 1, 1, 1)).unwrap();
        save(&numbers);
        let read = Latents::look(&path).unwrap().read(2, None).unwrap();
        let read: Vec<f32> = read.flatten_all().unwrap().to_vec1().unwrap();
        assert_eq!(read, [0.5, -1.0 / 3.0]);
        for dtype in [candle_core::DType::I64, candle_core::DType::U8] {
            save(&numbers.to_dtype(dtype).unwrap());
            let e = Latents::look(&path).unwrap_err().to_string();
            assert!(e.contains("tensor latents is stored as "), "{e}");
            assert!(e.contains("save them in float32"), "{e}");
        }
    }

    #[test]
    fn of_several_candidates_none_is_taken_silently() {
        let folder = tempfile::tempdir().unwrap();
        let (video, other) = (&[1, 4, 3, 2, 2][..], &[1, 4, 1, 2, 2][..]);
        let path = file(folder.path(), &[("samples", video), ("latents", other)]);
        let error = Latents::look(&path).unwrap_err().to_string();
        assert!(
            error.contains("under several names are in it (latents, samples)"),
            "{error}"
        );
        let path = file(folder.path(), &[("z", video), ("noise", other)]);
        let found = Latents::look(&path).unwrap();
        assert_eq!((found.name.as_str(), &found.shape[..]), ("z", video));
        let said = found.remarks();
        assert!(
            said[0].contains("z is taken") && said[0].ends_with("; there is 1 other (noise)"),
            "{said:?}"
        );
        let two = [("noise", other), ("start", other), ("z", video)];
        let said = Latents::look(&file(folder.path(), &two)).unwrap().remarks();
        assert!(
            said[0].ends_with("; there are 2 others (noise, start)"),
            "{said:?}"
        );
        // a name of ours on something that holds no video is none
        let path = file(
            folder.path(),
            &[("latents", &[3]), ("samples", video), ("seed", &[1])],
        );
        let found = Latents::look(&path).unwrap();
        assert_eq!(found.name, "samples");
        assert_eq!(found.remarks(), Vec::<String>::new());
    }

    #[test]
    fn whether_the_scaling_is_applied_is_read_as_python_writes_it_or_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l.safetensors");
        for (text, want) in [("true", Some(true)), ("False", Some(false)), ("yes!", None)] {
            let tensor = Tensor::zeros((1, 16, 1, 1, 1), candle_core::DType::F32, &Device::Cpu);
            let about = HashMap::from([("scaling_applied".to_owned(), text.to_owned())]);
            safetensors::serialize_to_file([("latents", tensor.unwrap())], Some(about), &path)
                .unwrap();
            let found = Latents::look(&path).unwrap();
            assert_eq!(found.scaling_applied(), want, "{text}");
            assert_eq!(found.remarks().len(), usize::from(want.is_none()), "{text}");
        }
    }

    fn family_by(class: &str) -> &'static Family {
        let named = |family: &&&Family| family.class == class;
        FAMILIES.iter().find(named).copied().unwrap()
    }

    #[test]
    fn latents_of_another_family_than_the_shape_of_their_decoder_says_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l.safetensors");
        for (family, class, fits) in [
            ("wan", "AutoencoderKLWan", true),
            ("wan2.2", "AutoencoderKLHunyuanVideo", false),
            ("hunyuan", "AutoencoderKLWan", false),
            ("unknown", "AutoencoderKLWan", true),
        ] {
            let tensor = Tensor::zeros((1, 16, 1, 1, 1), candle_core::DType::F32, &Device::Cpu);
            let about = [("vae_class", "diffsynth.VideoVAE_"), ("vae_family", family)];
            let about = about.map(|(name, text)| (name.to_owned(), text.to_owned()));
            safetensors::serialize_to_file(
                [("latents", tensor.unwrap())],
                Some(about.into()),
                &path,
            )
            .unwrap();
            let end = Latents::look(&path).unwrap().made_for(family_by(class));
            assert_eq!(end.is_ok(), fits, "{family} {class}");
        }
    }

    #[test]
    fn latents_of_another_decoder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l.safetensors");
        let made_for = |told: &str, class: &str| {
            let tensor = Tensor::zeros((1, 16, 1, 1, 1), candle_core::DType::F32, &Device::Cpu);
            let told = HashMap::from([("vae_class".to_owned(), told.to_owned())]);
            safetensors::serialize_to_file([("latents", tensor.unwrap())], Some(told), &path)
                .unwrap();
            Latents::look(&path).unwrap().made_for(family_by(class))
        };
        let (hunyuan, wan) = ("AutoencoderKLHunyuanVideo", "AutoencoderKLWan");
        let long = "diffusers.models.autoencoders.autoencoder_kl_wan.AutoencoderKLWan";
        for (told, class, fits) in [
            (long, wan, true),
            (wan, wan, true),
            (long, hunyuan, false),
            (hunyuan, wan, false),
            ("AutoencoderKL", wan, false),
            ("comfy.ldm.wan.vae.WanVAE", wan, true),
            ("comfy.ldm.wan.vae.WanVAE", hunyuan, false),
            (
                "comfy.ldm.models.autoencoder.AutoencodingEngine",
                hunyuan,
                true,
            ),
        ] {
            let end = made_for(told, class);
            assert_eq!(end.is_ok(), fits, "{told} {class}");
            if let Err(e) = end {
                let name = told.rsplit('.').next().unwrap();
                let text = e.to_string();
                assert!(text.contains(name) && text.contains(class), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_latent_is_refused_with_a_cure() {
        let folder = tempfile::tempdir().unwrap();
        let say = |tensors: &[(&str, &[usize])], item| {
            let path = file(folder.path(), tensors);
            let read = Latents::look(&path).and_then(|found| found.read(4, item));
            let text = read.unwrap_err().to_string();
            text.strip_prefix(&format!("{}: ", path.display()))
                .unwrap_or(&text)
                .to_owned()
        };
        for (tensors, item, want) in [
            (
                &[("a", &[1, 4, 1, 1][..]), ("b", &[1, 4, 1, 1])][..],
                None,
                "several tensors",
            ),
            (&[("a", &[3])], None, "no tensor of four or five"),
            (&[("latents", &[3])], None, "has the shape [3]"),
            (
                &[("latents", &[1, 16, 3, 2, 2])],
                None,
                "takes latents of 4 channels",
            ),
            (
                &[("z", &[2, 4, 3, 2, 2])],
                None,
                "choose one with --item 1 to 2",
            ),
            (
                &[("z", &[2, 4, 3, 2, 2])],
                Some(3),
                "--item 3 is none of them",
            ),
        ] {
            let text = say(tensors, item);
            assert!(text.contains(want), "{text}");
        }
        let text = folder.path().join("t.safetensors");
        std::fs::write(&text, "no latents at all").unwrap();
        assert!(
            Latents::look(&text)
                .unwrap_err()
                .to_string()
                .contains("not a safetensors file")
        );
    }
}
