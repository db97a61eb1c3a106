//! Bytes from the terminal to keys.
//!
//! Only the dozen keys that are bound have to be known. crossterm's own reader is
//! not used: it waits edge-triggered for keys and resizes together and drops one
//! when both come at once (the key then shows up with the next one), blocks in the
//! middle of a sequence, and spins on a terminal that has hung up.

/// A key that can be bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Char(char),
    Ctrl(char),
    Esc,
    Enter,
    Tab,
    BackTab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

impl Key {
    /// As it is written in footer and help.
    pub(super) fn name(self) -> String {
        match self {
            Self::Char(' ') => "space".to_owned(),
            Self::Char(c) => c.to_string(),
            Self::Ctrl(c) => format!("Ctrl-{}", c.to_ascii_uppercase()),
            Self::Esc => "Esc".to_owned(),
            Self::Enter => "Enter".to_owned(),
            Self::PageUp => "PgUp".to_owned(),
            Self::PageDown => "PgDn".to_owned(),
            Self::Tab => "tab".to_owned(),
            Self::BackTab => "shift-tab".to_owned(),
            Self::Backspace => "backspace".to_owned(),
            Self::Up => "up".to_owned(),
            Self::Down => "down".to_owned(),
            Self::Left => "left".to_owned(),
            Self::Right => "right".to_owned(),
            Self::Home => "Home".to_owned(),
            Self::End => "End".to_owned(),
        }
    }
}

const ESC: u8 = 0x1b;
/// More characters than this in one read were pasted, not typed, where a terminal has no
/// bracketed paste. A key that is held down gives the same character again and again.
const TYPED: usize = 3;
/// What a terminal writes before and after pasted text (DEC private mode 2004).
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// A sequence that is longer than this is none that we know.
const LONGEST: usize = 32;

/// Puts keys together from bytes as they come.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The beginning of a sequence; in pasted text, of its end.
    pending: Vec<u8>,
    /// The bytes are pasted text.
    pasting: bool,
}

impl Decoder {
    /// Keys that are complete with `bytes`, one read of the terminal. Of pasted
    /// text only the characters are kept where text is typed (`typing`), and
    /// nothing elsewhere: a text must not press keys.
    pub(super) fn feed(&mut self, bytes: &[u8], typing: bool) -> Vec<Key> {
        let mut typed = Vec::new();
        let mut pasted = Vec::new();
        for &byte in bytes {
            if self.pasting {
                pasted.extend(self.paste(byte));
                continue;
            }
            typed.extend(self.cut_short(byte));
            self.pending.push(byte);
            if self.pending == PASTE_BEGINS {
                self.pending.clear();
                self.pasting = true;
                continue;
            }
            match parse(&self.pending) {
                Parsed::More if self.pending.len() < LONGEST => {}
                Parsed::Key(key) => {
                    typed.push(key);
                    self.pending.clear();
                }
                Parsed::More | Parsed::Nothing => self.pending.clear(),
            }
        }
        if looks_pasted(&typed) {
            typed.retain(|k| matches!(k, Key::Ctrl(_)) || (typing && is_char(*k)));
        }
        // keys and pasted text hardly ever come in one read; a line that is typed into takes both
        typed.extend(pasted.into_iter().filter(|_| typing));
        typed
    }

    /// A byte of pasted text: its characters, without line breaks and control characters.
    fn paste(&mut self, byte: u8) -> Option<Key> {
        // an escape begins anew, whatever was begun
        if byte == ESC {
            self.pending.clear();
        }
        self.pending.push(byte);
        if PASTE_ENDS.starts_with(&self.pending) {
            if self.pending == PASTE_ENDS {
                self.pending.clear();
                self.pasting = false;
            }
            return None;
        }
        match parse(&self.pending) {
            Parsed::More if self.pending.len() < LONGEST => None,
            Parsed::Key(key) => {
                self.pending.clear();
                is_char(key).then_some(key)
            }
            Parsed::More | Parsed::Nothing => {
                self.pending.clear();
                None
            }
        }
    }

    /// Whether a paste has begun and not ended.
    pub(super) const fn pastes(&self) -> bool {
        self.pasting
    }

    /// Called when nothing of a paste has come for long: its end is lost.
    pub(super) fn give_up_paste(&mut self) {
        self.pasting = false;
        self.pending.clear();
    }

    /// A control character is no part of a sequence: Ctrl-C right after Esc, or after
    /// half a sequence, must arrive. The escape that was alone until then was the key.
    /// Enter, tab and backspace are left to the terminals that send them after an
    /// escape for Alt with that key.
    fn cut_short(&mut self, byte: u8) -> Option<Key> {
        let ctrl =
            matches!(byte, ESC | 0x01..=0x1a) && !matches!(byte, 0x08 | b'\t' | b'\n' | b'\r');
        if !ctrl {
            return None;
        }
        self.quiet()
    }

    /// Whether a sequence has begun and not ended.
    pub(super) const fn waits(&self) -> bool {
        !self.pending.is_empty() && !self.pasting
    }

    /// Called when nothing has come for a while: an escape that nothing followed
    /// was the key.
    pub(super) fn quiet(&mut self) -> Option<Key> {
        if self.pasting {
            return None;
        }
        let alone = self.pending == [ESC];
        self.pending.clear();
        alone.then_some(Key::Esc)
    }
}

const fn is_char(key: Key) -> bool {
    matches!(key, Key::Char(_))
}

/// Whether keys of one read are a text rather than presses.
fn looks_pasted(keys: &[Key]) -> bool {
    let mut chars = keys.iter().filter(|k| is_char(**k));
    let first = chars.next();
    let others = chars.clone().count();
    others >= TYPED && !chars.all(|k| Some(k) == first)
}

enum Parsed {
    Key(Key),
    /// A key that is not known.
    Nothing,
    /// The sequence goes on.
    More,
}

fn parse(bytes: &[u8]) -> Parsed {
    match bytes {
        [b'\r' | b'\n'] | [ESC, b'O', b'M'] => Parsed::Key(Key::Enter),
        [b'\t'] => Parsed::Key(Key::Tab),
        [0x08 | 0x7f] => Parsed::Key(Key::Backspace),
        [c @ 0x01..=0x1a] => Parsed::Key(Key::Ctrl(char::from(c - 1 + b'a'))),
        [c @ b' '..=b'~'] => Parsed::Key(Key::Char(char::from(*c))),
        // The end of the third are parameters and intermediates (ECMA-48, 5.4).
        [ESC] | [ESC, b'[' | b'O'] | [ESC, b'[', .., 0x20..=0x3f] => Parsed::More,
        [ESC, b'[', b'5', b'~'] => Parsed::Key(Key::PageUp),
        [ESC, b'[', b'6', b'~'] => Parsed::Key(Key::PageDown),
        [ESC, b'[' | b'O', b'F'] | [ESC, b'[', b'4' | b'8', b'~'] => Parsed::Key(Key::End),
        [ESC, b'[' | b'O', b'H'] | [ESC, b'[', b'1' | b'7', b'~'] => Parsed::Key(Key::Home),
        [ESC, b'[' | b'O', b'A'] => Parsed::Key(Key::Up),
        [ESC, b'[' | b'O', b'B'] => Parsed::Key(Key::Down),
        [ESC, b'[' | b'O', b'C'] => Parsed::Key(Key::Right),
        [ESC, b'[' | b'O', b'D'] => Parsed::Key(Key::Left),
        [ESC, b'[', b'Z'] => Parsed::Key(Key::BackTab),
        [0xc2..=0xf4, ..] => character(bytes),
        _ => Parsed::Nothing,
    }
}

/// A character outside ASCII, as far as it has come.
fn character(bytes: &[u8]) -> Parsed {
    match std::str::from_utf8(bytes) {
        Ok(text) => match text.chars().next() {
            Some(c) if !c.is_control() => Parsed::Key(Key::Char(c)),
            _ => Parsed::Nothing,
        },
        Err(e) if e.error_len().is_none() => Parsed::More,
        Err(_) => Parsed::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        Decoder::default().feed(bytes, false)
    }

    #[test]
    fn what_terminals_send() {
        assert_eq!(
            keys(b"k\r\x03"),
            [Key::Char('k'), Key::Enter, Key::Ctrl('c')]
        );
        assert_eq!(keys(b"\x1b[5~\x1b[6~"), [Key::PageUp, Key::PageDown]);
        assert_eq!(keys(b"\x1b[F\x1bOF\x1b[4~"), [Key::End; 3]);
        assert_eq!(
            keys("\x1b[1;5C\x1b[<0;3;4Mé?".as_bytes()),
            [Key::Char('é'), Key::Char('?')]
        );
        assert_eq!(
            keys(b"\t\x1b[Z\x7f\x1b[A\x1bOB\x1b[C\x1b[D\x1b[H"),
            [
                Key::Tab,
                Key::BackTab,
                Key::Backspace,
                Key::Up,
                Key::Down,
                Key::Right,
                Key::Left,
                Key::Home
            ]
        );
    }

    #[test]
    fn a_sequence_may_come_in_pieces() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(b"\x1b[", false), []);
        assert_eq!(decoder.feed(b"5~", false), [Key::PageUp]);
        assert_eq!(decoder.feed(b"\x1b", false), []);
        assert_eq!(decoder.quiet(), Some(Key::Esc));
        assert_eq!(decoder.quiet(), None);
    }

    #[test]
    fn ctrl_c_arrives_after_an_escape_or_half_a_sequence() {
        assert_eq!(keys(b"\x1b\x03"), [Key::Esc, Key::Ctrl('c')]);
        assert_eq!(keys(b"\x1b[1;\x03"), [Key::Ctrl('c')]);
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(b"\x1b", false), []);
        assert_eq!(decoder.feed(b"\x03", false), [Key::Esc, Key::Ctrl('c')]);
        // Alt with an arrow, as rxvt sends it, types no `[A` into a search
        assert_eq!(keys(b"\x1b\x1b[A"), [Key::Esc, Key::Up]);
        // Alt-Enter is no answer to a question
        assert_eq!(keys(b"\x1b\r"), []);
    }

    #[test]
    fn pasted_text_presses_no_keys() {
        assert_eq!(keys(b"rm -rf ky\ry"), []);
        assert_eq!(keys(b"sss"), [Key::Char('s'); 3]);
        let typed: String = Decoder::default()
            .feed(b"cuda\ry", true)
            .into_iter()
            .map(Key::name)
            .collect();
        assert_eq!(typed, "cuday", "the line break of a paste is not enter");
    }

    #[test]
    fn bracketed_paste_presses_no_keys_however_short_it_is() {
        for text in ["s", "sky", "ky\r", "\x03", "\x1b", "q1", "\x1b[A", "kyy"] {
            let paste = format!("\x1b[200~{text}\x1b[201~");
            assert_eq!(keys(paste.as_bytes()), [], "{text:?}");
            // in as many reads as there are bytes, and with a key after it
            let mut decoder = Decoder::default();
            let mut heard = Vec::new();
            for byte in paste.bytes().chain(*b"q") {
                heard.extend(decoder.feed(&[byte], false));
            }
            assert_eq!(heard, [Key::Char('q')], "{text:?}");
        }
        let mut decoder = Decoder::default();
        let typed = decoder.feed("\x1b[200~a é\r\nb\x1b[201~".as_bytes(), true);
        let text: String = typed.into_iter().map(Key::name).collect();
        assert_eq!(text, "aspaceéb", "characters where text is typed, no enter");
    }

    #[test]
    fn a_paste_whose_end_is_lost_is_given_up() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(b"\x1b[200~sky", false), []);
        assert_eq!(decoder.quiet(), None);
        assert!(decoder.pastes());
        assert_eq!(decoder.feed(b"sky", false), []);
        decoder.give_up_paste();
        assert_eq!(decoder.feed(b"q", false), [Key::Char('q')]);
    }

    #[test]
    fn a_key_that_is_held_down_is_no_paste() {
        assert_eq!(keys(b"pppppp"), [Key::Char('p'); 6]);
        assert_eq!(keys(b"\x1b[B\x1b[B\x1b[B\x1b[B\x1b[B"), [Key::Down; 5]);
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(reads in prop::collection::vec(any::<Vec<u8>>(), 0..8), typing in any::<bool>()) {
            let mut decoder = Decoder::default();
            for read in &reads {
                // one more: the escape that an earlier read ended with
                prop_assert!(decoder.feed(read, typing).len() <= read.len() + 1);
                prop_assert!(decoder.pending.len() < LONGEST);
            }
            decoder.give_up_paste();
            decoder.quiet();
            prop_assert_eq!(decoder.feed(b"q", false), [Key::Char('q')]);
        }
    }
}
