//! Jobs of servers that were not done: FramePack's inputs, ComfyUI's queue.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// FramePack's inputs behind the picture, in the order of its page and of its API.
pub const INPUTS: [&str; 12] = [
    "prompt",
    "n_prompt",
    "seed",
    "total_second_length",
    "latent_window_size",
    "steps",
    "cfg",
    "gs",
    "rs",
    "gpu_memory_preservation",
    "use_teacache",
    "mp4_crf",
];

/// Why a job's file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The text ends too early.
    #[error("it is torn: {0}")]
    Torn(String),
    /// It is of a version that is not known here.
    #[error("it is of version {0}, and this program reads version {version}", version = super::VERSION)]
    Version(String),
    /// It is something else, or a part of it is wrong.
    #[error("it is no job: {0}")]
    Wrong(String),
}

/// How a job of FramePack stood when its file was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// The worker had not taken it.
    Queued,
    /// The worker was in it.
    Started,
    /// An exception ended it.
    Failed,
}

impl JobState {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Started => "started",
            Self::Failed => "failed",
        }
    }
}

/// A job that can be sent again.
#[derive(Debug, Clone, PartialEq)]
pub enum Job {
    /// One job of FramePack's page.
    FramePack(Box<FramePackJob>),
    /// Everything that waited and ran in a ComfyUI.
    ComfyUi(Box<ComfyQueue>),
    /// Everything that waited and ran in a FramePack-Studio. Its page loads it again, not we.
    Studio(Box<StudioQueue>),
}

/// One job of FramePack's page, `job.RUN.ID.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct FramePackJob {
    /// The run.
    pub run: Option<String>,
    /// The attempt that it was last seen in.
    #[serde(default, deserialize_with = "word")]
    pub attempt: Option<String>,
    /// The same inputs have the same one.
    pub id: String,
    /// How it stood.
    pub state: JobState,
    /// When that was, seconds since the epoch.
    pub time: Option<f64>,
    /// The exception that ended it.
    pub error: Option<String>,
    /// Name of the start picture in the vault: a PNG.
    pub image: String,
    /// The twelve inputs behind the picture, see [`INPUTS`].
    pub inputs: Map<String, Value>,
}

impl FramePackJob {
    /// Sections that it has: FramePack's own formula, at 30 frames a second and 4 frames
    /// a latent one. `None`: length or window are not numbers.
    pub fn sections(&self) -> Option<u32> {
        let seconds = self.inputs.get("total_second_length")?.as_f64()?;
        let window = self.inputs.get("latent_window_size")?.as_f64()?;
        let sections = (seconds * 30.0 / (window * 4.0)).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to lie in 0..=1e6"
        )]
        (0.0..=1e6)
            .contains(&sections)
            .then_some(sections.max(1.0) as u32)
    }

    /// The thirteen inputs as the API takes them, the picture by its path on the server.
    pub(super) fn data(&self, picture: &str) -> Vec<Value> {
        let file = serde_json::json!({"path": picture, "meta": {"_type": "gradio.FileData"}});
        let more = INPUTS
            .iter()
            .map(|n| self.inputs.get(*n).cloned().unwrap_or_default());
        std::iter::once(file).chain(more).collect()
    }
}

/// What waited and ran in a ComfyUI, `queue.RUN.ATTEMPT.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ComfyQueue {
    /// The run.
    pub run: Option<String>,
    /// The attempt.
    #[serde(default, deserialize_with = "word")]
    pub attempt: Option<String>,
    /// The server's process.
    pub pid: Option<u32>,
    /// When it was written, seconds since the epoch.
    pub time: Option<f64>,
    /// The graphs, front to back; the first ran.
    pub items: Vec<QueueItem>,
}

/// One graph of a ComfyUI's queue.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct QueueItem {
    /// The server's name for it.
    pub prompt_id: String,
    /// `running` or `queued`.
    pub state: String,
    /// What `POST /prompt` takes.
    pub body: Map<String, Value>,
}

/// What waited and ran in a FramePack-Studio, `queue.RUN.ATTEMPT.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StudioQueue {
    /// The run.
    pub run: Option<String>,
    /// The attempt.
    #[serde(default, deserialize_with = "word")]
    pub attempt: Option<String>,
    /// When it was written, seconds since the epoch.
    pub time: Option<f64>,
    /// Studio's own file, which its page loads.
    pub saved_in: Option<String>,
    /// The jobs, oldest first.
    pub items: Vec<StudioItem>,
}

/// One job of a FramePack-Studio's queue.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StudioItem {
    /// Studio's name for it.
    pub id: String,
    /// `running` or `queued`.
    pub state: String,
    /// Studio's name for the kind of model.
    #[serde(default)]
    pub kind: Option<String>,
}

impl Job {
    /// Reads a job's file.
    pub fn parse(text: &[u8]) -> Result<Self, JobError> {
        let wrong = |e: serde_json::Error| {
            if e.is_eof() {
                JobError::Torn(e.to_string())
            } else {
                JobError::Wrong(e.to_string())
            }
        };
        let head: Head = serde_json::from_slice(text).map_err(wrong)?;
        if head.version.as_deref() != Some(super::VERSION) {
            let told = head.version.unwrap_or_else(|| "none".to_owned());
            return Err(JobError::Version(told));
        }
        match head.program.as_str() {
            "framepack" => {
                let job: FramePackJob = serde_json::from_slice(text).map_err(wrong)?;
                sound(&job).map_err(JobError::Wrong)?;
                Ok(Self::FramePack(Box::new(job)))
            }
            "comfyui" => {
                let queue: ComfyQueue = serde_json::from_slice(text).map_err(wrong)?;
                let holds =
                    |item: &QueueItem| item.body.get("prompt").is_some_and(Value::is_object);
                if let Some(item) = queue.items.iter().find(|i| !holds(i)) {
                    let why = format!("item {} holds no graph", item.prompt_id);
                    return Err(JobError::Wrong(why));
                }
                Ok(Self::ComfyUi(Box::new(queue)))
            }
            "framepack-studio" => {
                let queue: StudioQueue = serde_json::from_slice(text).map_err(wrong)?;
                Ok(Self::Studio(Box::new(queue)))
            }
            other => Err(JobError::Wrong(format!("the program is {other:?}"))),
        }
    }

    /// The run that it belongs to.
    pub fn run(&self) -> Option<&str> {
        match self {
            Self::FramePack(job) => job.run.as_deref(),
            Self::ComfyUi(queue) => queue.run.as_deref(),
            Self::Studio(queue) => queue.run.as_deref(),
        }
    }

    /// The attempt that it was last seen in.
    pub fn attempt(&self) -> Option<&str> {
        match self {
            Self::FramePack(job) => job.attempt.as_deref(),
            Self::ComfyUi(queue) => queue.attempt.as_deref(),
            Self::Studio(queue) => queue.attempt.as_deref(),
        }
    }
}

/// All inputs are there and simple, and the picture lies in the vault itself.
fn sound(job: &FramePackJob) -> Result<(), String> {
    for name in INPUTS {
        match job.inputs.get(name) {
            None => return Err(format!("the input {name} is missing")),
            Some(Value::Array(_) | Value::Object(_)) => {
                return Err(format!("the input {name} is no simple value"));
            }
            Some(_) => {}
        }
    }
    let name = &job.image;
    if !is_picture(name) {
        return Err(format!(
            "{name:?} is not the name of a picture in the vault"
        ));
    }
    Ok(())
}

/// Whether a job's picture may have this name: it lies in the vault, beside its job.
pub(super) fn is_picture(name: &str) -> bool {
    let end = name.strip_prefix("job.").and_then(|n| n.rsplit_once('.'));
    end.is_some_and(|(_, end)| end == "png") && !name.contains(['/', '\0'])
}

#[derive(Deserialize)]
struct Head {
    #[serde(default, deserialize_with = "word")]
    version: Option<String>,
    program: String,
}

/// A number or a text, as text.
fn word<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Word {
        Number(i64),
        Text(String),
    }
    Ok(Option::<Word>::deserialize(from)?.map(|word| match word {
        Word::Number(n) => n.to_string(),
        Word::Text(text) => text,
    }))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A job as the agent writes it.
    pub(in crate::vault) fn framepack() -> Value {
        serde_json::json!({
            "version": 1, "program": "framepack", "run": "20260101-0001-00aa", "attempt": 1,
            "id": "0123456789abcdef", "state": "started", "time": 1_767_225_600.5, "error": null,
            "image": "job.20260101-0001-00aa.0123456789abcdef.png",
            "inputs": {
                "prompt": "a girl dances", "n_prompt": "", "seed": 31337,
                "total_second_length": 1.2, "latent_window_size": 3, "steps": 8, "cfg": 1.0,
                "gs": 10.0, "rs": 0.0, "gpu_memory_preservation": 6, "use_teacache": false,
                "mp4_crf": 16,
            },
        })
    }

    /// A queue as the agent writes it.
    pub(in crate::vault) fn comfyui() -> Value {
        let item = |id: &str, state: &str| {
            serde_json::json!({
                "prompt_id": id, "number": 0, "state": state,
                "body": {"prompt": {"1": {"class_type": "VAEDecode", "inputs": {}}},
                         "prompt_id": id, "client_id": "c", "extra_data": {"client_id": "c"}},
            })
        };
        serde_json::json!({
            "version": 1, "program": "comfyui", "run": "20260101-0001-00aa", "attempt": "2",
            "pid": 4711, "time": 1_767_225_600.5,
            "items": [item("id0", "running"), item("id1", "queued")],
        })
    }

    /// A queue of FramePack-Studio as the agent writes it.
    pub(in crate::vault) fn studio() -> Value {
        let item = |id: &str, state: &str| {
            serde_json::json!({
                "id": id, "state": state, "created": 1_767_225_600.5, "kind": "F1", "seconds": 5,
            })
        };
        serde_json::json!({
            "version": 1, "program": "framepack-studio", "run": "20260101-0001-00aa", "attempt": 1,
            "pid": 4711, "time": 1_767_225_600.5, "saved_in": "/home/u/studio/queue.json",
            "items": [item("id0", "running"), item("id1", "queued")],
        })
    }

    #[test]
    fn a_queue_of_framepack_studio_is_read() {
        let Ok(Job::Studio(queue)) = parse(&studio()) else {
            panic!("no queue")
        };
        assert_eq!(queue.attempt.as_deref(), Some("1"));
        assert_eq!(queue.saved_in.as_deref(), Some("/home/u/studio/queue.json"));
        let items: Vec<_> = queue
            .items
            .iter()
            .map(|i| (i.id.as_str(), i.state.as_str(), i.kind.as_deref()))
            .collect();
        assert_eq!(
            items,
            [
                ("id0", "running", Some("F1")),
                ("id1", "queued", Some("F1"))
            ]
        );
    }

    fn parse(value: &Value) -> Result<Job, JobError> {
        Job::parse(value.to_string().as_bytes())
    }

    #[test]
    fn the_thirteen_inputs_keep_their_order() {
        let Ok(Job::FramePack(job)) = parse(&framepack()) else {
            panic!("no job")
        };
        assert_eq!(job.attempt.as_deref(), Some("1"));
        assert_eq!(job.sections(), Some(3));
        let data = job.data("/tmp/gradio/x.png");
        assert_eq!(data.len(), 13);
        assert_eq!(data[0]["path"], "/tmp/gradio/x.png");
        assert_eq!(data[0]["meta"]["_type"], "gradio.FileData");
        assert_eq!(
            (&data[1], &data[3]),
            (&"a girl dances".into(), &31337.into())
        );
        assert_eq!((&data[11], &data[12]), (&false.into(), &16.into()));
    }

    #[test]
    fn a_queue_keeps_its_order() {
        let Ok(Job::ComfyUi(queue)) = parse(&comfyui()) else {
            panic!("no queue")
        };
        let ids: Vec<_> = queue.items.iter().map(|i| i.prompt_id.as_str()).collect();
        assert_eq!(ids, ["id0", "id1"]);
        assert_eq!(
            (queue.attempt.as_deref(), queue.pid),
            (Some("2"), Some(4711))
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let text = framepack().to_string();
        let torn = Job::parse(&text.as_bytes()[..text.len() - 9]);
        assert!(matches!(torn, Err(JobError::Torn(_))), "{torn:?}");
        let with = |name: &str, value: Value| {
            let mut job = framepack();
            job[name] = value;
            parse(&job).unwrap_err().to_string()
        };
        assert!(with("version", 2.into()).contains("version 2"));
        assert!(with("image", "../../etc/passwd.png".into()).contains("not the name"));
        assert!(with("program", "other".into()).contains("\"other\""));
        let mut job = framepack();
        job["inputs"].as_object_mut().unwrap().remove("seed");
        assert!(
            parse(&job)
                .unwrap_err()
                .to_string()
                .contains("seed is missing")
        );
        let mut queue = comfyui();
        queue["items"][1]["body"] = serde_json::json!({});
        assert!(
            parse(&queue)
                .unwrap_err()
                .to_string()
                .contains("id1 holds no graph")
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Job::parse(&bytes).is_err());
        }

        #[test]
        fn a_job_with_any_length_has_a_section_or_none(seconds in any::<f64>(), window in any::<f64>()) {
            let mut told = framepack();
            told["inputs"]["total_second_length"] = seconds.into();
            told["inputs"]["latent_window_size"] = window.into();
            if let Ok(Job::FramePack(job)) = parse(&told) {
                prop_assert!(job.sections() != Some(0));
            }
        }
    }
}
