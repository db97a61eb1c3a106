//! What runs of the same kind have learned, kept between them: one small JSON file a
//! fingerprint. A file that cannot be read costs what was learned, nothing else.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::model::{Baselines, Fingerprint, GpuSample, Plan};
use crate::profile::catalog::private_folder;
use crate::record::Store;

/// Version of the files; others are not read.
const FORMAT: &str = "framepack-tui baselines 1";
/// Beside the folder of the runs.
const FOLDER: &str = "baselines";
/// No file is longer.
const LONGEST: u64 = 4 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct File {
    format: String,
    /// In clear: a file of another one is not taken for this.
    fingerprint: Fingerprint,
    baselines: Baselines,
}

/// Where the baselines of one kind of run lie.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Learned {
    /// The folder with our name, in which that of the runs lies too.
    ours: PathBuf,
    fingerprint: Fingerprint,
}

impl Learned {
    /// Beside the folder of the runs; what is known goes into the plan.
    pub(in crate::cli) fn recall(store: &Store, fingerprint: Fingerprint, plan: &mut Plan) -> Self {
        let learned = Self::beside(store.root(), fingerprint);
        plan.baselines = learned.load();
        learned
    }

    fn beside(runs: &Path, fingerprint: Fingerprint) -> Self {
        Self {
            ours: runs.parent().unwrap_or(runs).to_owned(),
            fingerprint,
        }
    }

    /// The folder above ours, and the way from there: where another user may write, nothing
    /// is learned.
    fn way(&self) -> Option<(&Path, PathBuf)> {
        let below = Path::new(self.ours.file_name()?).join(FOLDER);
        Some((self.ours.parent()?, below))
    }

    fn path(&self) -> PathBuf {
        let name = format!("{}.json", self.fingerprint.key());
        self.ours.join(FOLDER).join(name)
    }

    /// What was learned; nothing where there is no file, or none that can be read.
    fn load(&self) -> Baselines {
        let way = self.way();
        let private = way.map(|(base, below)| private_folder::check(base, &below));
        if !matches!(private, Some(Ok(true))) {
            return Baselines::default();
        }
        let mut text = Vec::new();
        let read = fs::File::open(self.path()).and_then(|f| f.take(LONGEST).read_to_end(&mut text));
        if read.is_err() {
            return Baselines::default();
        }
        serde_json::from_slice::<File>(&text)
            .ok()
            .filter(|f| f.format == FORMAT && f.fingerprint == self.fingerprint)
            .map(|f| f.baselines)
            .unwrap_or_default()
    }

    /// Keeps it. The file is whole at any moment.
    pub(in crate::cli) fn save(&self, baselines: &Baselines) -> io::Result<()> {
        if baselines.is_empty() {
            return Ok(());
        }
        let (base, below) = self.way().ok_or(io::ErrorKind::NotFound)?;
        private_folder::make(base, &below)?;
        let text = serde_json::to_vec(&File {
            format: FORMAT.to_owned(),
            fingerprint: self.fingerprint.clone(),
            baselines: baselines.clone(),
        })?;
        let path = self.path();
        let fresh = path.with_extension(format!("{}.new", std::process::id()));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&fresh)?;
        file.write_all(&text)?;
        fs::rename(&fresh, &path)
    }
}

/// What runs must have in common to learn from each other.
pub(in crate::cli) fn fingerprint(
    profile: &str,
    adapter: &str,
    card: Option<&GpuSample>,
    argv: &[String],
) -> Fingerprint {
    let card = card.map(|c| c.arch.clone().unwrap_or_else(|| c.name.clone()));
    Fingerprint {
        profile: profile.to_owned(),
        card: card.unwrap_or_default(),
        adapter: adapter.to_owned(),
        shape: argv.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Phase;
    use std::time::Duration;

    #[test]
    fn what_was_learned_comes_back_and_a_broken_file_is_nothing() {
        let tmp = tempfile::tempdir().unwrap();
        let runs = tmp.path().join("runs");
        let of = |argv: &str| {
            let argv = [argv.to_owned()];
            Learned::beside(&runs, fingerprint("p", "comfyui", None, &argv))
        };
        let learned = of("main.py");
        assert!(learned.load().is_empty());
        learned.save(&Baselines::default()).unwrap();
        assert!(!learned.path().exists(), "nothing is not kept");

        let mut b = Baselines::default();
        let phase = b.phases.entry(Phase::VaeDecode).or_default();
        phase.stay.add(Duration::from_secs(31));
        phase.silence.add(Duration::from_millis(1500));
        learned.save(&b).unwrap();
        assert_eq!(learned.load(), b);
        assert!(of("other.py").load().is_empty());

        fs::copy(learned.path(), of("other.py").path()).unwrap();
        assert!(of("other.py").load().is_empty(), "another fingerprint");
        fs::write(learned.path(), b"{\"format\":").unwrap();
        assert!(learned.load().is_empty());
    }
}
