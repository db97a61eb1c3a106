//! What people and signals ask of the run.

use crate::model::{Command, Event, Request};
use crate::supervise::Signals;

use super::attach::{Asked, for_attached};
use super::shell::Shell;

impl Shell {
    pub(super) fn command(&mut self, command: Command, asked: Asked, signals: &mut Signals) {
        let command = match self.attached {
            Some(_) => for_attached(command, asked),
            None => command,
        };
        signals.note(&command);
        if matches!(command, Command::Stop | Command::Kill | Command::Terminate) {
            self.ended_by = Some(asked);
        }
        if command == Command::TerminalLost {
            self.outputs.leave_screen();
        }
        // what a key asks for is promised on the screen before it is checked here: a
        // refusal must take the promise back where the log is not in sight
        self.answering = Some(asked);
        self.post(Event::Command(command));
        self.answering = None;
    }

    /// Obeys a person, unless what the person saw is no longer so.
    pub(super) fn request(&mut self, request: Request, asked: Asked, signals: &mut Signals) {
        if let Some(why) = self.state.stale(&request, self.chose == Some(asked)) {
            return self.answer(asked, why);
        }
        if matches!(
            request.command,
            Command::Set { .. } | Command::UseProfile { .. } | Command::TakeRung { .. }
        ) {
            self.chose = Some(asked);
        }
        self.command(request.command, asked, signals);
    }

    /// Tells whoever asked, on the screen where it was asked.
    pub(super) fn answer(&self, asked: Asked, text: String) {
        match asked {
            Asked::User => self.outputs.say(text),
            Asked::Viewer(viewer) => self.control.answer(viewer, text),
            Asked::Signal => {}
        }
    }

    /// A screen was attached, or left.
    pub(super) fn screens_changed(&mut self, signals: &mut Signals) {
        if let Some(command) = self.audience.changed(self.control.viewers()) {
            self.command(command, Asked::Signal, signals);
        }
    }
}
