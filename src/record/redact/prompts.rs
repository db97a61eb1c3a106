//! Prompts, found again by their words: in a path that was made of them, in another
//! case, cut off, or with other signs between them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::{cut, vocabulary};

/// Words in a row by which a prompt is known.
const GRAM: usize = 3;
/// Letters that they have at least: `a b c` says nothing.
const LETTERS: usize = 7;
/// Bounds: prompts, and words of one.
const PROMPTS: usize = 512;
const WORDS: usize = 4096;
/// Words of prompts that are looked at for one scrap.
const CANDIDATES: usize = 256;
/// Words at the edge of a line by which a prompt is known that was broken there.
const EDGE: usize = 2;

/// Words of a text with their places.
fn words(text: &str) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    let mut begin = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (begin, c.is_alphanumeric()) {
            (None, true) => begin = Some(at),
            (Some(from), false) => {
                found.push((from..at, text[from..at].to_lowercase()));
                begin = None;
            }
            _ => {}
        }
    }
    found
}

/// The prompts that are known.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    known: Vec<Vec<String>>,
    /// Where each run of words stands: prompt and first word.
    grams: HashMap<Vec<String>, (usize, usize)>,
    /// Prompts with fewer words than a run.
    short: HashMap<Vec<String>, usize>,
    /// Where each word stands: prompt and place.
    places: BTreeMap<String, Vec<(usize, usize)>>,
    /// The first words of each prompt, and the last.
    heads: HashSet<Vec<String>>,
    tails: HashSet<Vec<String>>,
}

impl Prompts {
    /// Keeps a prompt. Texts without a word are none.
    pub(super) fn learn(&mut self, text: &str) {
        let all: Vec<String> = words(text).into_iter().take(WORDS).map(|w| w.1).collect();
        let letters = |w: &[String]| w.iter().map(|w| w.chars().count()).sum::<usize>();
        let says = all.iter().any(|w| w.chars().any(char::is_alphabetic));
        if !says || letters(&all) < 3 || self.known.len() >= PROMPTS || self.known.contains(&all) {
            return;
        }
        let n = self.known.len();
        if all.len() < GRAM {
            self.short.insert(all.clone(), n);
        }
        for (at, gram) in all.windows(GRAM).enumerate() {
            // the whole of a short prompt says enough
            if letters(gram) >= LETTERS || all.len() == GRAM {
                self.grams.entry(gram.to_vec()).or_insert((n, at));
            }
        }
        for (at, word) in all.iter().enumerate() {
            let places = self.places.entry(word.clone()).or_default();
            if places.len() < CANDIDATES {
                places.push((n, at));
            }
        }
        if all.len() > EDGE {
            let (head, tail) = (&all[..EDGE], &all[all.len() - EDGE..]);
            for (edge, of) in [(head, &mut self.heads), (tail, &mut self.tails)] {
                if letters(edge) >= cut::SHORTEST {
                    of.insert(edge.to_vec());
                }
            }
        }
        self.known.push(all);
    }

    /// Keeps each line of a prompt of several: a console prints them one by one. A single
    /// word may be one of ours.
    pub(super) fn learn_lines(&mut self, text: &str) {
        for line in text.lines().filter(|line| line.len() < text.len()) {
            if words(line).len() > 1 || !vocabulary::is_known(line) {
                self.learn(line);
            }
        }
    }

    /// Where words of a prompt stand in `text`.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        if self.known.is_empty() {
            return Vec::new();
        }
        let words = words(text);
        let mut found = Vec::new();
        let mut at = 0;
        while at < words.len() {
            match self.longest(&words[at..]) {
                0 => at += 1,
                n => {
                    found.push(words[at].0.start..words[at + n - 1].0.end);
                    at += n;
                }
            }
        }
        found.extend(self.edges(&words));
        found.extend(cut::ellipses(text).filter_map(|end| self.scrap(&words, end)));
        found
    }

    /// The ends of prompts that were broken over two lines: at the end of a line, and at
    /// the beginning of the next.
    fn edges(&self, words: &[(Range<usize>, String)]) -> Vec<Range<usize>> {
        let Some(last) = words.len().checked_sub(EDGE) else {
            return Vec::new();
        };
        let sides = [(&words[..EDGE], &self.tails), (&words[last..], &self.heads)];
        let held = sides.into_iter().filter(|(side, of)| {
            let side: Vec<String> = side.iter().map(|w| w.1.clone()).collect();
            of.contains(&side)
        });
        held.map(|(side, _)| side[0].0.start..side[EDGE - 1].0.end)
            .collect()
    }

    /// What stands before an ellipsis, where it is words of a prompt; the last may be the
    /// beginning of one.
    fn scrap(&self, words: &[(Range<usize>, String)], end: usize) -> Option<Range<usize>> {
        let last = words.binary_search_by_key(&end, |w| w.0.end).ok()?;
        let cut = &words[last].1;
        let alike = self.places.range(cut.clone()..);
        let places = alike
            .take_while(|(word, _)| word.starts_with(cut.as_str()))
            .flat_map(|(_, places)| places)
            .take(CANDIDATES);
        let same = |&(n, at): &(usize, usize)| {
            let before = self.known[n][..at].iter().rev();
            let before = before.zip(words[..last].iter().rev());
            1 + before.take_while(|(p, w)| **p == w.1).count()
        };
        let first = last + 1 - places.map(same).max()?;
        let letters = words[first..=last].iter().map(|w| w.1.chars().count());
        (letters.sum::<usize>() >= cut::SHORTEST).then(|| words[first].0.start..end)
    }

    /// How many of the first words are a prompt's.
    fn longest(&self, words: &[(Range<usize>, String)]) -> usize {
        let of = |n: usize| -> Option<Vec<String>> {
            Some(words.get(..n)?.iter().map(|w| w.1.clone()).collect())
        };
        if let Some(&(n, first)) = of(GRAM).and_then(|g| self.grams.get(&g)) {
            let prompt = &self.known[n][first..];
            let same = prompt.iter().zip(words).take_while(|(p, w)| **p == w.1);
            let same = same.count();
            // a name is cut off within a word
            let cut = matches!((prompt.get(same), words.get(same)), (Some(p), Some(w)) if p.starts_with(&w.1));
            return same + usize::from(cut);
        }
        (1..GRAM)
            .rev()
            .find(|n| of(*n).is_some_and(|w| self.short.contains_key(&w)))
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(known: &[&str], text: &str) -> String {
        let mut prompts = Prompts::default();
        for prompt in known {
            prompts.learn(prompt);
        }
        let mut left = text.to_owned();
        let mut parts = prompts.find(text);
        parts.sort_by_key(|part| part.start);
        parts.dedup_by(|b, a| b.start < a.end);
        for part in parts.into_iter().rev() {
            left.replace_range(part, "#");
        }
        left
    }

    #[test]
    fn a_prompt_is_known_by_its_words() {
        let prompt = "A red fox, dancing on the moon's edge";
        assert_eq!(
            without(&[prompt], "x: a red fox dancing on the moon's edge!"),
            "x: #!"
        );
        assert_eq!(
            without(&[prompt], "out/A_red_fox_dancing_on_the_mo.png"),
            "out/#.png"
        );
        assert_eq!(without(&[prompt], "the FOX-dancing-on then"), "the # then");
        assert_eq!(
            without(&[prompt], "a fox and the moon"),
            "a fox and the moon"
        );
        for (text, want) in [
            ("x: a red fo\u{2026} y", "x: #\u{2026} y"),
            ("dancin... moon...", "#... moon..."),
            ("A  red\n fox, dancing\ton", "#"),
            ("s edge", "s edge"),
        ] {
            assert_eq!(without(&[prompt], text), want);
        }
        assert_eq!(
            without(&["a woman bathing in milk"], "in milk, 3 of 4"),
            "#, 3 of 4"
        );
        assert_eq!(
            without(&["a woman bathing in milk"], "title: A woman"),
            "title: #"
        );
        assert_eq!(
            without(&["kitten"], "/out/kitten.mp4 kittens"),
            "/out/#.mp4 kittens"
        );
        assert_eq!(
            without(&["8188", "a", "-"], "port 8188 a -"),
            "port 8188 a -"
        );
    }
}
