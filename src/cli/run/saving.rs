//! What is chosen becomes a profile of the user's own, on a thread of its own: a disk
//! may block.

use crate::model::event::Level;
use crate::model::setting::size_text;
use crate::model::{Chosens, Event, Setting};
use crate::profile::edit::{NewProfile, save_as};
use crate::profile::shelf::{ShelfEntry, shelf};
use crate::profile::{Catalog, Machine};

use super::planner::Planner;
use super::shell::Shell;

/// What became of it.
pub(super) struct Saved {
    id: String,
    /// Where, and what the user should know about it.
    done: Result<(String, Vec<String>), String>,
    /// The profiles as they are now.
    catalog: Catalog,
}

impl Shell {
    /// Begins to write; the answer comes through the inbox.
    pub(super) fn save_profile(&mut self, id: &str, chosen: &Chosens) {
        let (id, chosen) = (id.to_owned(), chosen.clone());
        let (planner, to) = (self.planner.clone(), self.saved_to.clone());
        let name = id.clone();
        let thread = std::thread::Builder::new().name("save profile".to_owned());
        let spawned = thread.spawn(move || {
            let done = planner.save(&id, &chosen);
            let catalog = Catalog::load();
            // the loop is gone only when the run is over
            let _ = to.send(Saved { id, done, catalog });
        });
        if let Err(e) = spawned {
            self.post(Event::Notice {
                level: Level::Warn,
                text: format!("profile {name} was not saved: no thread could be started: {e}"),
            });
        }
    }

    /// Tells what became of it, and shows the profiles anew.
    pub(super) fn saved(&mut self, saved: Saved) {
        let word = saved.word();
        self.planner.catalog = saved.catalog;
        self.outputs.show_profiles(self.planner.shelf());
        self.outputs.say(word);
        match saved.done {
            Ok((path, notes)) => {
                self.post(Event::ProfileSaved { id: saved.id, path });
                for text in notes {
                    self.post(Event::Notice {
                        level: Level::Info,
                        text,
                    });
                }
            }
            Err(why) => self.post(Event::Notice {
                level: Level::Warn,
                text: format!("profile {} was not saved: {why}", saved.id),
            }),
        }
    }
}

impl Saved {
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
        let machine = Machine {
            cards: self.card.iter().map(super::machine::as_card).collect(),
            adapter: self.detected.to_string(),
        };
        shelf(&self.catalog, &machine)
    }

    /// The same with the profiles as they are now.
    pub(super) fn with(&mut self, saved: Saved) -> &Self {
        self.catalog = saved.catalog;
        self
    }

    /// Writes the profile in force, with what was chosen and `--cap`, under this id.
    fn save(&self, id: &str, chosen: &Chosens) -> Result<(String, Vec<String>), String> {
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
