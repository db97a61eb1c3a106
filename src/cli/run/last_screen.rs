//! What is left of a supervisor whose run is over: the screens that still show it.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::model::{Command, Request};
use crate::run::Snapshot;
use crate::supervise::control::{Server, ToViewer};

use super::outputs::Outputs;
use super::planner::Planner;
use super::saving::{self, Saved};
use super::shell::{Inbox, Shell};

/// Nobody leaves a screen that was forgotten.
const LONGEST: Duration = Duration::from_hours(12);
/// How often the screens are asked whether they still stand.
const LOOK: Duration = Duration::from_millis(250);

/// Holds nothing of the run but its last snapshot, and what its profile was made of.
pub(super) struct LastScreen {
    outputs: Outputs,
    control: Server,
    planner: Planner,
    saved_to: mpsc::UnboundedSender<Saved>,
    last: Snapshot,
}

impl LastScreen {
    /// Takes what screens need; everything else of the run is dropped.
    pub(super) fn of(shell: Shell, last: Snapshot) -> Self {
        Self {
            outputs: shell.outputs,
            control: shell.control,
            planner: shell.planner,
            saved_to: shell.saved_to,
            last,
        }
    }

    /// Waits until no screen stands any more (`stays`), and closes them; whether the run had
    /// one of its own.
    pub(super) async fn show(mut self, inbox: &mut Inbox, stays: bool) -> bool {
        let until = Instant::now() + LONGEST;
        while stays
            && (self.outputs.screen_is_up() || self.control.viewers() > 0)
            && Instant::now() < until
        {
            tokio::select! {
                _ = inbox.signals.next() => break,
                Some(request) = inbox.commands.recv() => self.asked(request),
                Some(heard) = inbox.control.requests.recv() => self.asked(heard.request),
                Some(saved) = inbox.saved.recv() => self.saved(saved),
                () = tokio::time::sleep(LOOK) => {}
            }
        }
        let had_screen = self.outputs.had_screen();
        self.outputs.leave_screen();
        self.control.finish();
        had_screen
    }

    /// What was chosen in the run can still be kept; all else is over.
    fn asked(&self, request: Request) {
        let Command::SaveProfile { id } = request.command else {
            return;
        };
        let chosen = self.last.chosen.clone();
        let begun = saving::begin(&self.planner, self.saved_to.clone(), &id, chosen);
        if let Err(why) = begun {
            self.say(saving::not_begun(&id, &why));
        }
    }

    fn saved(&mut self, saved: Saved) {
        self.say(saved.word());
        self.control.tell_all(ToViewer::ProfilesChanged);
        self.planner.catalog = saved.into_catalog();
        self.outputs.show_profiles(&self.planner);
    }

    fn say(&self, text: String) {
        self.outputs.say(text.clone());
        self.control.tell_all(ToViewer::Answer { text });
    }
}
