//! Error reports (Xid) as NVML tells them, for those who may not read the kernel log.
//!
//! They become lines in the queue of the kernel log, in the driver's own form. Where
//! the log is readable as well, each comes twice; whoever counts them sees one.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::event::EventData;

use super::super::attention::Attention;
use super::super::kmsg::Lines;
use super::super::source::{Answer, Pace, Slot, SourceError};
use super::{card, power};
use crate::model::GpuId;

/// One wait; the end of the run is seen after it at the latest.
const WAIT_MS: u32 = 500;
/// What does not work is tried again after this time.
const AGAIN: Duration = Duration::from_mins(1);

/// Starts the thread. It listens while a process is supervised that may use a card of
/// NVIDIA, and only where one is awake: an open handle wakes a laptop's card and keeps it
/// awake. `root` has `sys` in it.
pub(crate) fn spawn(
    root: PathBuf,
    attention: Arc<Attention>,
    lines: Arc<Lines>,
    period: Duration,
    pace: Arc<Pace>,
) -> Arc<Slot<()>> {
    let slot = Arc::new(Slot::new("nvml events".to_owned()));
    let listener = Listener {
        root,
        cards: None,
        slot: Arc::clone(&slot),
        attention,
        lines,
        pace,
    };
    let mut listener = listener;
    let body = move || listener.run(period);
    if let Err(error) = thread::Builder::new()
        .name("nvml events".to_owned())
        .spawn(body)
    {
        let why = format!("no thread could be started: {error}");
        slot.finish(Instant::now(), Err(SourceError::Failed(why)));
    }
    slot
}

struct Listener {
    root: PathBuf,
    /// Cards on the bus, looked for once.
    cards: Option<Vec<power::Card>>,
    slot: Arc<Slot<()>>,
    attention: Arc<Attention>,
    lines: Arc<Lines>,
    pace: Arc<Pace>,
}

impl Listener {
    fn run(&mut self, period: Duration) {
        let mut not_before = None;
        loop {
            let seen = self.pace.round();
            let due = not_before.is_none_or(|at| Instant::now() >= at);
            if due && self.attention.nvidia_supervised() && !self.all_asleep() {
                self.slot.begin(Instant::now());
                if let Err(error) = self.listen() {
                    not_before = Some(Instant::now() + AGAIN);
                    self.slot.finish(Instant::now(), Err(error));
                }
            }
            if !self.pace.wait(period, seen) {
                break;
            }
        }
    }

    fn all_asleep(&mut self) -> bool {
        let cards = self.cards.get_or_insert_with(|| power::cards(&self.root));
        power::all_asleep(cards)
    }

    /// Whether somebody still wants to hear.
    fn goes_on(&self) -> bool {
        self.attention.nvidia_supervised() && self.pace.wait(Duration::ZERO, self.pace.round())
    }

    /// Hears until nobody wants to any more, or nothing more can be heard.
    fn listen(&self) -> Result<(), SourceError> {
        let nvml = Nvml::init().map_err(|e| super::absent(&e))?;
        let mut set = nvml.create_event_set().map_err(|e| in_words(&e))?;
        let mut heard = 0;
        for index in 0..nvml.device_count().map_err(|e| in_words(&e))? {
            let Ok(device) = nvml.device_by_index(index) else {
                continue;
            };
            let xid = EventTypes::CRITICAL_XID_ERROR;
            if device
                .supported_event_types()
                .is_ok_and(|t| t.contains(xid))
            {
                set = device
                    .register_events(xid, set)
                    .map_err(|e| in_words(&e.error))?;
                heard += 1;
            }
        }
        if heard == 0 {
            return Err(in_words(&NvmlError::NotSupported));
        }
        while self.goes_on() {
            self.slot.begin(Instant::now());
            match set.wait(WAIT_MS) {
                Ok(event) => self.lines.push(told(&event)),
                Err(NvmlError::Timeout) => {}
                Err(error) => return Err(in_words(&error)),
            }
            self.slot.finish(Instant::now(), Ok(Answer::good(())));
        }
        Ok(())
    }
}

fn told(event: &EventData<'_>) -> String {
    line(
        card::id(&event.device).ok().as_ref(),
        event.event_data.as_ref(),
    )
}

/// As NVIDIA's driver writes it to the kernel log, with our mark.
fn line(gpu: Option<&GpuId>, xid: Option<&XidError>) -> String {
    // the driver leaves the function out
    let address = gpu.map_or("?", |g| g.0.rsplit_once('.').map_or(&*g.0, |(a, _)| a));
    match xid {
        Some(XidError::Value(code)) => {
            format!("NVRM: Xid (PCI:{address}): {code} (told by NVML)")
        }
        _ => format!("NVRM: Xid (PCI:{address}): number unknown (told by NVML)"),
    }
}

/// What is in the way; what no second try will change is *absent*.
fn in_words(error: &NvmlError) -> SourceError {
    match error {
        NvmlError::NotSupported
        | NvmlError::FailedToLoadSymbol(_)
        | NvmlError::FunctionNotFound => {
            SourceError::Absent("no card tells error reports (Xid)".to_owned())
        }
        NvmlError::NoPermission => {
            SourceError::Absent("error reports (Xid) are not told to this user".to_owned())
        }
        other => SourceError::Failed(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SourceState;
    use crate::telemetry::testing::Tree;

    #[test]
    fn a_report_has_the_form_of_the_drivers_own_line() {
        let gpu = GpuId("0000:41:00.0".to_owned());
        assert_eq!(
            line(Some(&gpu), Some(&XidError::Value(79))),
            "NVRM: Xid (PCI:0000:41:00): 79 (told by NVML)"
        );
        assert_eq!(
            line(None, Some(&XidError::Unknown)),
            "NVRM: Xid (PCI:?): number unknown (told by NVML)"
        );
    }

    #[test]
    fn nobody_listens_until_a_process_is_supervised() {
        let attention = Arc::new(Attention::default());
        let (lines, pace) = (Arc::new(Lines::default()), Arc::new(Pace::default()));
        let period = Duration::from_millis(5);
        let tree = Tree::new();
        power::tests::laptop(&tree, "auto\n", "suspended\n");
        let root = tree.root().to_owned();
        let slot = spawn(
            root,
            Arc::clone(&attention),
            lines,
            period,
            Arc::clone(&pace),
        );
        assert_eq!(
            slot.view(Instant::now()).status.state,
            SourceState::Starting
        );
        attention.set_supervised(true, false);
        thread::sleep(Duration::from_millis(50));
        assert!(!slot.answered(), "the card sleeps");
        attention.set_supervised(true, true);
        power::tests::laptop(&tree, "auto\n", "active\n");
        thread::sleep(Duration::from_millis(50));
        assert!(!slot.answered(), "a card of AMD is supervised");
        attention.set_supervised(true, false);
        let begin = Instant::now();
        while !slot.answered() {
            assert!(begin.elapsed() < Duration::from_secs(30));
            thread::sleep(Duration::from_millis(2));
        }
        let status = slot.view(Instant::now()).status;
        // without a driver: why; with one: it hears
        assert!(status.state == SourceState::Ok || status.why.is_some());
        pace.stop();
    }
}
