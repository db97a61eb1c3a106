//! Whether a person sees what is announced.

use crate::model::Command;
use crate::model::event::RunStarted;

use super::front::Shown;

/// Follows the screens that are attached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Audience {
    /// Somebody watches, whoever attaches or leaves.
    always: bool,
    present: bool,
}

impl Audience {
    /// At the beginning; `watches`: the process is not ours, and nothing is announced.
    pub(super) const fn new(shown: &Shown, watches: bool, started: &RunStarted) -> Self {
        let viewers = matches!(shown, Shown::Viewers(_));
        Self {
            always: watches || started.interactive && !viewers,
            present: viewers,
        }
    }

    /// What changes with so many screens attached now.
    pub(super) fn changed(&mut self, screens: usize) -> Option<Command> {
        let present = screens > 0;
        if self.always || present == self.present {
            return None;
        }
        self.present = present;
        Some(if present {
            Command::ScreenAttached
        } else {
            Command::TerminalLost
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_screen_and_the_last_one_count() {
        let mut headless = Audience {
            always: false,
            present: false,
        };
        let changes = [0, 1, 2, 1, 0, 0, 3].map(|n| headless.changed(n));
        let (came, went) = (Some(Command::ScreenAttached), Some(Command::TerminalLost));
        assert_eq!(changes, [None, came.clone(), None, None, went, None, came]);
        let mut on_a_terminal = Audience {
            always: true,
            present: false,
        };
        assert_eq!([1, 0].map(|n| on_a_terminal.changed(n)), [None, None]);
    }
}
