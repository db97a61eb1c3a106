//! What a key makes of the start screen. Pure.

use crate::profile::Fit;
use crate::ui::lobby::{Lobby, RunState};
use crate::ui::tui::keymap::{self, Action, Binding, Context};
use crate::ui::tui::keys::Key;
use crate::ui::tui::naming;

use super::choices::{Choices, List, Over};

/// What has to be done after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Leave,
    Suspend,
    Redraw,
    /// Start what was typed.
    Launch,
    /// Show the run of this id.
    Follow(String),
    /// Look at the process of this id that began then.
    Look(u32, u64),
    Watch(u32, u64),
}

/// What the user has done to the start screen.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) choices: Choices,
    /// A word in the place of the footer.
    pub(super) toast: Option<String>,
}

/// Whether an action makes sense now; else why not.
pub(super) fn enabled(action: Action, lobby: &Lobby, c: &Choices) -> Result<(), String> {
    let why = match action {
        Action::LookAt | Action::WatchIt if lobby.found().is_empty() => "nothing was found running",
        Action::OpenRun if lobby.runs().is_empty() => "no run is recorded",
        Action::ChooseProfile => match c.shelf(lobby) {
            None if lobby.looks_for_cards() => "which profile fits is known once the card is",
            None => "there is no profile",
            Some(p) if p.broken.is_some() => "this profile cannot be used",
            Some(_) => return Ok(()),
        },
        Action::Open => {
            return match c.list {
                List::Found => enabled(Action::LookAt, lobby, c),
                List::Runs => enabled(Action::OpenRun, lobby, c),
                List::Profiles => enabled(Action::ChooseProfile, lobby, c),
            };
        }
        Action::Launch if c.prompt.is_empty() => "type a command first",
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

/// The name of a binding as things stand.
pub(super) fn name(b: &Binding, lobby: &Lobby, c: &Choices) -> &'static str {
    let supervised = || {
        let process = c.process(lobby)?;
        lobby.run_of(process)
    };
    match (b.action, c.list) {
        (Action::Interrupt, _) => "leave",
        (Action::Open, List::Found) if supervised().is_some() => "follow its run",
        (Action::Open, List::Found) => "look at it",
        (Action::Open, List::Runs) => match c.run(lobby).map(|r| &r.state) {
            Some(RunState::Running) => "follow it",
            _ => "open it",
        },
        (Action::Open, List::Profiles) => "choose it",
        _ => b.name,
    }
}

/// The commands of earlier runs as they can be typed, newest first, each once.
pub(super) fn earlier(lobby: &Lobby) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for run in lobby.runs().iter().filter(|r| !r.argv.is_empty()) {
        let line = shell_words::join(&run.argv);
        if !out.contains(&line) {
            out.push(line);
        }
    }
    out
}

/// Lines of a page in the list of keys.
const PAGE: usize = 10;

/// What the list of keys or the palette shows.
pub(super) fn listed(c: &Choices) -> Vec<&'static Binding> {
    match c.over {
        Over::Help => keymap::help_within(Context::Start, &c.typed),
        _ => keymap::commands_within(Context::Start, &c.typed),
    }
}

/// The marked line of the palette or the help.
pub(super) fn marked(list: &[&Binding], c: &Choices) -> Option<usize> {
    if c.by_hand {
        return Some(c.picked.min(list.len().checked_sub(1)?));
    }
    naming::preselected(list, &c.typed)
}

impl State {
    /// Takes another state of the machine.
    pub(super) fn news(&mut self, before: &Lobby, after: &Lobby) {
        let c = &mut self.choices;
        c.news(before, after);
        let chosen = after
            .profiles
            .iter()
            .find(|p| Some(&p.id) == c.profile.as_ref());
        if chosen.is_some_and(|p| p.fit == Fit::Other) && !c.unfit_is_meant {
            let id = c.profile.take().unwrap_or_default();
            self.toast = Some(format!("profile {id} does not fit any more: not chosen"));
        }
    }

    /// Takes a key.
    pub(super) fn press(&mut self, key: Key, lobby: &Lobby) -> Option<Effect> {
        self.toast = None;
        let over = self.choices.over;
        let binding = keymap::within(over.context()).find(|b| b.keys.contains(&key));
        let Some(binding) = binding else {
            if let (Key::Char(c), Over::Prompt) = (key, over) {
                self.choices.prompt.insert(c);
            } else if let (Key::Char(c), Over::Palette | Over::Help) = (key, over) {
                self.choices.typed.push(c);
                self.choices.picked = 0;
                self.choices.by_hand = false;
            }
            return None;
        };
        self.run(binding, &key.name(), lobby)
    }

    /// The line is open again as it was typed, with why it was not started.
    pub(super) fn refuse(&mut self, why: String) {
        self.open(Over::Prompt);
        self.choices.prompt.error = Some(why);
    }

    /// Runs a command, or says why not.
    fn run(&mut self, binding: &Binding, called: &str, lobby: &Lobby) -> Option<Effect> {
        if let Err(why) = enabled(binding.action, lobby, &self.choices) {
            self.toast = Some(format!("{called}: {why}"));
            return None;
        }
        if self.edit(binding.action, lobby) {
            return None;
        }
        match binding.action {
            Action::Run => self.run_picked(lobby),
            Action::Quit | Action::Interrupt => Some(Effect::Leave),
            Action::Suspend => Some(Effect::Suspend),
            Action::Redraw => Some(Effect::Redraw),
            Action::Launch => Some(Effect::Launch),
            Action::LookAt => self.look_at(lobby),
            Action::WatchIt => self.watch_it(lobby),
            Action::OpenRun => self.open_run(lobby),
            Action::ChooseProfile => self.choose_profile(lobby),
            Action::ConfirmProfile => {
                self.open(Over::Nothing);
                let id = self.choices.shelf(lobby)?.id.clone();
                self.take_profile(id, true);
                None
            }
            Action::Open => match self.choices.list {
                List::Found => self.look_at(lobby),
                List::Runs => self.open_run(lobby),
                List::Profiles => self.choose_profile(lobby),
            },
            action => {
                self.look(action, lobby);
                None
            }
        }
    }

    fn run_picked(&mut self, lobby: &Lobby) -> Option<Effect> {
        let list = listed(&self.choices);
        let Some(binding) = marked(&list, &self.choices).and_then(|at| list.get(at)) else {
            self.toast = Some(naming::why_nothing_runs(list.len()).to_owned());
            return None;
        };
        if let Err(why) = enabled(binding.action, lobby, &self.choices) {
            self.toast = Some(format!("{}: {why}", binding.name));
            return None;
        }
        self.open(Over::Nothing);
        self.run(binding, binding.name, lobby)
    }

    /// What only changes what is seen.
    fn look(&mut self, action: Action, lobby: &Lobby) {
        let c = &mut self.choices;
        match action {
            Action::Help => self.open(Over::Help),
            Action::Palette => self.open(Over::Palette),
            Action::Type => self.open(Over::Prompt),
            Action::Close => self.open(Over::Nothing),
            Action::Abandon => {
                c.prompt = super::prompt::Prompt::default();
                self.open(Over::Nothing);
            }
            Action::NextList => c.list = c.list.step(1),
            Action::PreviousList => c.list = c.list.step(List::ALL.len() - 1),
            Action::PickDown => self.step(true, lobby),
            Action::PickUp => self.step(false, lobby),
            Action::PickPageDown => (0..PAGE).for_each(|_| self.step(true, lobby)),
            Action::PickPageUp => (0..PAGE).for_each(|_| self.step(false, lobby)),
            Action::Narrow if c.typed.is_empty() => self.open(Over::Nothing),
            Action::Narrow => {
                c.typed.clear();
                c.picked = 0;
            }
            _ => {}
        }
    }

    /// One line on or back, in whatever has lines now.
    fn step(&mut self, down: bool, lobby: &Lobby) {
        let c = &mut self.choices;
        let length = match (c.over, c.list) {
            (Over::Palette | Over::Help, _) => listed(c).len(),
            (_, List::Found) => lobby.found().len(),
            (_, List::Runs) => lobby.runs().len(),
            (_, List::Profiles) => lobby.profiles.len(),
        };
        let last = length.saturating_sub(1);
        if matches!(c.over, Over::Palette | Over::Help) {
            let at = marked(&listed(c), c);
            c.by_hand = true;
            // nothing was marked: the first line is
            let Some(at) = at else {
                c.picked = 0;
                return;
            };
            c.picked = at;
        } else if c.list == List::Profiles {
            c.profile_marked = true;
        }
        let at = match c.over {
            Over::Palette | Over::Help => &mut c.picked,
            Over::Nothing | Over::Prompt | Over::Unfit => &mut c.marked[c.list as usize],
        };
        *at = (*at).min(last);
        *at = if down {
            (*at + 1).min(last)
        } else {
            at.saturating_sub(1)
        };
    }

    /// What changes a line that is being typed; `false`: the action is none of these.
    fn edit(&mut self, action: Action, lobby: &Lobby) -> bool {
        let c = &mut self.choices;
        if action == Action::Erase && matches!(c.over, Over::Palette | Over::Help) {
            c.typed.pop();
            c.picked = 0;
            c.by_hand = false;
            return true;
        }
        let p = &mut c.prompt;
        match action {
            Action::Erase => p.erase(),
            Action::EraseWord => p.erase_word(),
            Action::EraseLine => p.erase_line(),
            Action::CursorLeft => p.left(),
            Action::CursorRight => p.right(),
            Action::CursorHome => p.home(),
            Action::CursorEnd => p.end(),
            Action::Older => p.older(&earlier(lobby)),
            Action::Newer => p.newer(&earlier(lobby)),
            _ => return false,
        }
        true
    }

    fn open(&mut self, over: Over) {
        self.choices.over = over;
        self.choices.typed.clear();
        self.choices.picked = 0;
        self.choices.by_hand = false;
    }

    /// The process, or the run that supervises it.
    fn look_at(&self, lobby: &Lobby) -> Option<Effect> {
        let process = self.choices.process(lobby)?;
        Some(match lobby.run_of(process) {
            Some(run) => Effect::Follow(run.id.clone()),
            None => Effect::Look(process.pid, process.start),
        })
    }

    fn watch_it(&self, lobby: &Lobby) -> Option<Effect> {
        let process = self.choices.process(lobby)?;
        Some(match lobby.run_of(process) {
            Some(run) => Effect::Follow(run.id.clone()),
            None => Effect::Watch(process.pid, process.start),
        })
    }

    fn open_run(&self, lobby: &Lobby) -> Option<Effect> {
        let run = self.choices.run(lobby)?;
        Some(Effect::Follow(run.id.clone()))
    }

    /// Chooses the marked profile for the next command, or none. One that does not fit the
    /// machine asks first.
    fn choose_profile(&mut self, lobby: &Lobby) -> Option<Effect> {
        let entry = self.choices.shelf(lobby)?;
        let id = entry.id.clone();
        if self.choices.profile.as_ref() == Some(&id) {
            self.choices.profile = None;
            self.choices.unfit_is_meant = false;
            self.toast = Some("the next command runs with the best match".to_owned());
        } else if entry.fit == Fit::Other {
            // the question is about this one, whatever becomes of the list meanwhile
            self.choices.profile_marked = true;
            self.open(Over::Unfit);
        } else {
            self.take_profile(id, false);
        }
        None
    }

    fn take_profile(&mut self, id: String, unfit_is_meant: bool) {
        self.toast = Some(format!("the next command runs with profile {id}"));
        self.choices.profile = Some(id);
        self.choices.unfit_is_meant = unfit_is_meant;
    }
}
