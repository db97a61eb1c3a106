//! What is chosen becomes a profile of the user's own, on a thread of its own: a disk
//! may block.

use std::io;

use tokio::sync::mpsc;

use crate::model::event::Level;
use crate::model::setting::size_text;
use crate::model::{Chosens, Event, Setting};
use crate::profile::Catalog;
use crate::profile::edit::{NewProfile, save_as};
use crate::profile::shelf::{ShelfEntry, shelf};
use crate::supervise::control::ToViewer;

use super::machine;
use super::planner::Planner;
use super::shell::Shell;

/// Its path, and what the user should know about it; or why it was not written.
type Done = Result<(String, Vec<String>), String>;

/// What became of it.
pub(super) struct Saved {
    id: String,
    done: Done,
    /// The profiles as they are now.
    catalog: Catalog,
}

/// Begins to write the profile; the answer goes to `to`. An error: no thread could be started.
pub(super) fn begin(
    planner: &Planner,
    to: mpsc::UnboundedSender<Saved>,
    id: &str,
    chosen: Chosens,
) -> io::Result<()> {
    let (planner, id) = (planner.clone(), id.to_owned());
    let save = move || {
        let done = planner.save(&id, &chosen);
        let catalog = Catalog::load();
        // nobody listens any more only where the run and its screens are over
        let _ = to.send(Saved { id, done, catalog });
    };
    let thread = std::thread::Builder::new().name("save profile".to_owned());
    thread.spawn(save).map(drop)
}

/// Why nothing is written, in words.
pub(super) fn not_begun(id: &str, why: &io::Error) -> String {
    format!("profile {id} was not saved: no thread could be started: {why}")
}

impl Shell {
    /// Begins to write; the answer comes through the inbox.
    pub(super) fn save_profile(&mut self, id: &str, chosen: &Chosens) {
        let to = self.saved_to.clone();
        if let Err(why) = begin(&self.planner, to, id, chosen.clone()) {
            self.post(Event::Notice {
                level: Level::Warn,
                text: not_begun(id, &why),
            });
        }
    }

    /// Tells what became of it, and shows the profiles anew.
    pub(super) fn saved(&mut self, saved: Saved) {
        let word = saved.word();
        let (id, done) = self.show_saved(saved);
        match done {
            Ok((path, notes)) => {
                self.post(Event::ProfileSaved { id, path });
                for text in notes {
                    self.post(Event::Notice {
                        level: Level::Info,
                        text,
                    });
                }
            }
            Err(_) => self.post(Event::Notice {
                level: Level::Warn,
                text: word,
            }),
        }
    }

    /// Says on the screen what became of it, and shows the profiles anew: all that can
    /// be done when the run is over.
    pub(super) fn show_saved(&mut self, saved: Saved) -> (String, Done) {
        let text = saved.word();
        self.outputs.say(text.clone());
        self.control.tell_all(ToViewer::Answer { text });
        self.control.tell_all(ToViewer::ProfilesChanged);
        self.planner.catalog = saved.catalog;
        self.outputs.show_profiles(&self.planner);
        (saved.id, saved.done)
    }
}

impl Saved {
    /// The profiles as they are now.
    pub(super) fn into_catalog(self) -> Catalog {
        self.catalog
    }

    /// One sentence about it.
    pub(super) fn word(&self) -> String {
        match &self.done {
            Ok((path, _)) => format!("profile {} saved as {path}", self.id),
            Err(why) => format!("profile {} was not saved: {why}", self.id),
        }
    }
}

impl Planner {
    /// The profiles with how they suit this run's machine.
    pub(super) fn shelf(&self) -> Vec<ShelfEntry> {
        let machine = machine::with(self.card.as_ref(), self.detected.as_str());
        shelf(&self.catalog, &machine)
    }

    /// Writes the profile in force, with what was chosen and `--cap`, under this id.
    fn save(&self, id: &str, chosen: &Chosens) -> Done {
        let profile = self.plan(chosen).map_err(|e| e.to_string())?.profile;
        let mut changes: Vec<(Setting, Option<String>)> = chosen
            .settings
            .iter()
            .map(|(setting, c)| (*setting, Some(c.value.clone())))
            .collect();
        if let (Some(cap), false) = (self.cap, chosen.settings.contains_key(&Setting::VramCap)) {
            changes.push((Setting::VramCap, Some(size_text(cap))));
        }
        let new = NewProfile {
            id: id.to_owned(),
            title: None,
        };
        let edited =
            save_as(&self.catalog, &profile.source, &new, &changes).map_err(|e| e.to_string())?;
        let path = self
            .catalog
            .save_own(id, &edited.text, false)
            .map_err(|e| e.to_string())?;
        Ok((path.display().to_string(), edited.notes))
    }
}
