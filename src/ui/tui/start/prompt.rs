//! A line that is typed, with its cursor and the commands of earlier runs.

/// Longest line, in characters.
const LONGEST: usize = 4000;

/// The line. The cursor stands between characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prompt {
    text: Vec<char>,
    cursor: usize,
    /// Which of the earlier commands is shown; absent: what was typed.
    older: Option<usize>,
    /// What was typed before an earlier command was shown.
    draft: Vec<char>,
    /// What is wrong with the line, until it changes.
    pub(super) error: Option<String>,
}

impl Prompt {
    /// The line.
    pub(super) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// The part before the cursor and the one after it.
    pub(super) fn halves(&self) -> (String, String) {
        let (before, after) = self.text.split_at(self.cursor.min(self.text.len()));
        (before.iter().collect(), after.iter().collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.iter().all(|c| c.is_whitespace())
    }

    pub(super) fn insert(&mut self, c: char) {
        if self.text.len() < LONGEST {
            self.text.insert(self.cursor, c);
            self.cursor += 1;
        }
        self.changed();
    }

    pub(super) fn erase(&mut self) {
        if let Some(before) = self.cursor.checked_sub(1) {
            self.text.remove(before);
            self.cursor = before;
        }
        self.changed();
    }

    /// The word before the cursor, with the blanks behind it.
    pub(super) fn erase_word(&mut self) {
        let before = &self.text[..self.cursor];
        let word_ends = before
            .iter()
            .rposition(|c| *c != ' ')
            .map_or(0, |at| at + 1);
        let begin = before[..word_ends]
            .iter()
            .rposition(|c| *c == ' ')
            .map_or(0, |at| at + 1);
        self.text.drain(begin..self.cursor);
        self.cursor = begin;
        self.changed();
    }

    pub(super) fn erase_line(&mut self) {
        self.text.drain(..self.cursor);
        self.cursor = 0;
        self.changed();
    }

    pub(super) fn left(&mut self) {
        self.cursor = self.cursor.saturating_sub(1);
    }

    pub(super) fn right(&mut self) {
        self.cursor = (self.cursor + 1).min(self.text.len());
    }

    pub(super) const fn home(&mut self) {
        self.cursor = 0;
    }

    pub(super) fn end(&mut self) {
        self.cursor = self.text.len();
    }

    /// The command before the one that is shown; `earlier`: newest first.
    pub(super) fn older(&mut self, earlier: &[String]) {
        let next = self.older.map_or(0, |at| at + 1);
        if let Some(line) = earlier.get(next) {
            if self.older.is_none() {
                self.draft = std::mem::take(&mut self.text);
            }
            self.older = Some(next);
            self.show(line.chars().collect());
        }
    }

    /// The one after it, in the end what was typed.
    pub(super) fn newer(&mut self, earlier: &[String]) {
        let Some(at) = self.older else { return };
        self.older = at.checked_sub(1);
        let line = match self.older.and_then(|at| earlier.get(at)) {
            Some(line) => line.chars().collect(),
            None => std::mem::take(&mut self.draft),
        };
        self.show(line);
    }

    fn show(&mut self, mut line: Vec<char>) {
        line.truncate(LONGEST);
        self.cursor = line.len();
        self.text = line;
        self.error = None;
    }

    fn changed(&mut self) {
        self.error = None;
        self.older = None;
        self.draft.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn typed(text: &str) -> Prompt {
        let mut p = Prompt::default();
        text.chars().for_each(|c| p.insert(c));
        p
    }

    #[test]
    fn editing_in_the_middle() {
        let mut p = typed("python dmo.py");
        for _ in 0..5 {
            p.left();
        }
        p.insert('e');
        assert_eq!(p.text(), "python demo.py");
        assert_eq!(p.halves(), ("python de".to_owned(), "mo.py".to_owned()));
        p.erase_word();
        assert_eq!(p.text(), "python mo.py");
        p.end();
        p.erase();
        assert_eq!(p.text(), "python mo.p");
        p.erase_line();
        assert!(p.is_empty());
        p.erase();
        p.erase_word();
        assert!(p.is_empty());
    }

    #[test]
    fn earlier_commands_and_back_to_what_was_typed() {
        let earlier = ["newest".to_owned(), "oldest".to_owned()];
        let mut p = typed("mine");
        p.error = Some("bad".to_owned());
        p.older(&earlier);
        assert_eq!((p.text().as_str(), &p.error), ("newest", &None));
        p.older(&earlier);
        p.older(&earlier);
        assert_eq!(p.text(), "oldest");
        p.newer(&earlier);
        p.newer(&earlier);
        assert_eq!(p.text(), "mine");
        p.newer(&earlier);
        assert_eq!(p.text(), "mine");
        p.older(&[]);
        assert_eq!(p.text(), "mine");
    }

    proptest! {
        #[test]
        fn the_cursor_stays_in_the_line(keys in prop::collection::vec(0u8..11, 0..60)) {
            let earlier = ["日本語 one".to_owned(), String::new()];
            let mut p = Prompt::default();
            for key in keys {
                match key {
                    0 => p.insert('ü'),
                    1 => p.insert(' '),
                    2 => p.erase(),
                    3 => p.erase_word(),
                    4 => p.erase_line(),
                    5 => p.left(),
                    6 => p.right(),
                    7 => p.home(),
                    8 => p.end(),
                    9 => p.older(&earlier),
                    _ => p.newer(&earlier),
                }
                prop_assert!(p.cursor <= p.text.len());
                let (before, after) = p.halves();
                prop_assert_eq!(before + &after, p.text());
            }
        }
    }
}
