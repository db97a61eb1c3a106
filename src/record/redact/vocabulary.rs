//! Words that an exported bundle may hold without being asked for more: those of our own
//! sentences, fields and closed lists (gathered by `build.rs`), names of cards and libraries,
//! and numbers as our sentences write them. Anything else came from outside.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

/// Words that come from drivers, libraries and the kernel, and name nobody.
const FOREIGN: &str = "amd radeon instinct ryzen epyc nvidia geforce quadro tesla intel arc rx rtx \
    gtx xtx xt gre gt pro max plus ai super ti gfx sm navi strix halo point phoenix graphics mi \
    hbm gddr nvl pcie sxm h a l mhz w gib mib kib gb mb kb ms us ns s h d min rocm hip cuda torch \
    python pt main th kfd dri render card renderd dev proc sys futex wait queue poll epoll select \
    nanosleep clock read write ioctl do pipe unix stream skb sock recvmsg folio common io schedule \
    drm sched fence dma amdgpu ring comp gfx sdma vcn timeout reset begin source succeeded oom \
    killed out memory conv fwd bwd wrw gemm hip implicit group xdlops asm direct naive winograd \
    fft rxs nchw nhwc fp bf float int uint bool complex tile dec enc py spy gdb eperm enoent esrch eio eacces enodev \
    einval enomem ebusy eagain etimedout enospc anon inode bpf eventfd timerfd signalfd bash dash sh main aten native \
    runtime value type key index attribute assertion keyboard interrupt system exit module not \
    a an as at be by go he if in is it its me my no on or so to up us we id ok vs fs \
    found import os zero division error exception warning accelerator of git rc post dev cu";

static WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let own = include_str!(concat!(env!("OUT_DIR"), "/vocabulary.txt"));
    own.lines().chain(FOREIGN.split_whitespace()).collect()
});

/// Longest word, digits of one number and of one chunk.
const LONGEST: usize = 24;
const DIGITS: usize = 6;
const DIGITS_OF_CHUNK: usize = 9;

/// Forms that no word describes: addresses on the bus, times, run ids, versions.
static FORMS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let forms = [
        r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]",
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)",
        r"20\d{6}-\d{4}(?:\d\d)?-[0-9a-f]{4}",
        r"gfx[0-9a-f]{3,5}(?::(?:sramecc|xnack)[+-])*",
        r"\d{1,3}(?:\.\d{1,4}){1,2}(?:[.+-]?(?:rc|a|b|dev|post)\d{0,8})?(?:\+(?:rocm|cu|cpu)[0-9.]{0,6})?",
        r"(?:127\.0\.0\.1|0\.0\.0\.0|localhost|\[::1?\]):\d{1,5}",
        r"/dev/(?:kfd|null|dri/(?:card|renderD)\d{1,3}|nvidia\d{1,2}|nvidiactl|nvidia-uvm)",
    ];
    Regex::new(&format!("^(?:{})$", forms.join("|"))).ok()
});

/// Numbers that one may call or that name a machine.
static DOTTED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:\d{1,3}\.){3}\d|%[0-9A-Fa-f]{2}").ok());

/// What a chunk of a text, a run without blanks, is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunk {
    Known,
    Number,
    Foreign,
}

fn has_form(chunk: &str) -> bool {
    FORMS.as_ref().is_some_and(|r| r.is_match(chunk))
}

fn of_chunk(chunk: &str) -> Chunk {
    let bare = chunk.trim_matches(|c: char| {
        matches!(
            c,
            ',' | ';' | ':' | '.' | '!' | '?' | '(' | ')' | '`' | '\'' | '"'
        )
    });
    if has_form(bare) || has_form(chunk) {
        return Chunk::Known;
    }
    let odd = |c: char| c.is_control() || c == '\\' || !c.is_ascii() && c.is_alphanumeric();
    let digits = chunk.bytes().filter(u8::is_ascii_digit).count();
    if chunk.contains(odd)
        || digits > DIGITS_OF_CHUNK
        || DOTTED.as_ref().is_none_or(|r| r.is_match(chunk))
    {
        return Chunk::Foreign;
    }
    let mut pieces = chunk
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|p| !p.is_empty());
    if !pieces.clone().all(is_piece) {
        Chunk::Foreign
    } else if digits > 0 && pieces.all(|p| p.bytes().all(|b| b.is_ascii_digit())) {
        Chunk::Number
    } else {
        Chunk::Known
    }
}

/// A word of ours, a number, or one beside the other: `gfx1100`, `conv3d`, `24GiB`.
fn is_piece(piece: &str) -> bool {
    let bytes = piece.as_bytes();
    let (mut from, mut numbers) = (0, 0);
    while from < bytes.len() {
        let digit = bytes[from].is_ascii_digit();
        let length = bytes[from..]
            .iter()
            .take_while(|b| b.is_ascii_digit() == digit)
            .count();
        let run = &piece[from..from + length];
        if digit {
            numbers += 1;
            if length > DIGITS || numbers > 2 {
                return false;
            }
        } else if !is_word(run) {
            return false;
        }
        from += length;
    }
    true
}

/// A word of ours, also several that are written as one: `ConvHipGemm`.
fn is_word(run: &str) -> bool {
    let known = |w: &str| w.len() <= LONGEST && WORDS.contains(w.to_ascii_lowercase().as_str());
    if known(run) {
        return true;
    }
    let humps = run.as_bytes().windows(2).enumerate();
    let ends = humps.filter(|(_, w)| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase());
    let mut from = 0;
    for end in ends.map(|(at, _)| at + 1).chain([run.len()]) {
        // two letters of a random text are a word of some list
        if end - from < 3 || !known(&run[from..end]) {
            return false;
        }
        from = end;
    }
    true
}

/// Whether nothing in `text` came from outside.
pub(super) fn is_known(text: &str) -> bool {
    !text.contains(|c: char| c.is_control()) && {
        let mut chunks = text.split(' ').filter(|c| !c.is_empty()).map(of_chunk);
        let numbers = chunks.clone().filter(|c| *c == Chunk::Number).count();
        numbers <= 2 && chunks.all(|c| c != Chunk::Foreign)
    }
}

/// A sentence of ours, with `<text>` where it holds words from outside: whatever stands in
/// double quotes, words that are none of ours, and the numbers beside them.
pub(super) fn sentence(text: &str) -> Option<String> {
    let quoted = match (text.find('"'), text.rfind('"')) {
        (Some(first), Some(last)) if first < last => Some(first + 1..last),
        (Some(first), _) => Some(first + 1..text.len()),
        _ => None,
    };
    let Some(quoted) = quoted else {
        return words_of(text);
    };
    let before = words_of(&text[..quoted.start]);
    let after = words_of(&text[quoted.end..]);
    let (head, tail) = (&text[..quoted.start], &text[quoted.end..]);
    let [head, tail] = [
        before.as_deref().unwrap_or(head),
        after.as_deref().unwrap_or(tail),
    ];
    Some(format!("{head}<text>{tail}"))
}

fn words_of(text: &str) -> Option<String> {
    let chunks: Vec<&str> = text.split(' ').collect();
    let mut kinds: Vec<Chunk> = chunks.iter().map(|c| of_chunk(c)).collect();
    if kinds.iter().all(|k| *k == Chunk::Known) {
        return None;
    }
    // groups of digits are a number that somebody may call, or pay with
    let mut from = 0;
    while from < kinds.len() {
        let run = kinds[from..]
            .iter()
            .take_while(|k| **k == Chunk::Number)
            .count();
        if run > 2 {
            kinds[from..from + run].fill(Chunk::Foreign);
        }
        from += run.max(1);
    }
    for at in 0..kinds.len() {
        let beside = |n: Option<usize>| n.and_then(|n| kinds.get(n)) == Some(&Chunk::Foreign);
        if kinds[at] == Chunk::Number && (beside(at.checked_sub(1)) || beside(Some(at + 1))) {
            kinds[at] = Chunk::Foreign;
        }
    }
    if !kinds.contains(&Chunk::Foreign) {
        return None;
    }
    let mut out: Vec<&str> = Vec::new();
    for (chunk, kind) in chunks.iter().zip(&kinds) {
        match kind {
            Chunk::Foreign if out.last() == Some(&"<text>") => {}
            Chunk::Foreign => out.push("<text>"),
            _ => out.push(chunk),
        }
    }
    Some(out.join(" "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn our_own_sentences_pass_and_what_they_quote_does_not() {
        for text in [
            "no output for 2 min and the process tree does nothing",
            "torch 2.4.1+rocm6.1, read by sysfs 0000:0c:00.0",
            "silence limit in vae_decode",
            "2026-11-27T22:31:00+01:00",
        ] {
            assert_eq!(sentence(text), None, "{text}");
        }
        for (text, want) in [
            (
                "the program's own words: \"pin 4711 said \"Marlene\" now\"",
                "the program's own words: \"<text>\"",
            ),
            (
                "the command `xyzzy-plugh` could not be started",
                "the command <text> could not be started",
            ),
            (
                "the job failed: 4111 1111 1111 1111",
                "the job failed: <text>",
            ),
            (
                "wrote zorglub 4711 at 203.0.113.7",
                "wrote <text> at <text>",
            ),
        ] {
            assert_eq!(sentence(text).as_deref(), Some(want));
        }
    }

    #[test]
    fn words_of_cards_and_libraries_are_known() {
        for text in [
            "AMD Radeon RX 7900 XTX",
            "NVIDIA GeForce RTX 4090",
            "gfx1100",
            "sm_90",
            "0000:0c:00.0",
            "20261127-2231-7f3a",
            "2.9.0+rocm7.1",
            "futex_wait_queue",
            "vram_spill",
            "ConvHipImplicitGemmGroupFwdXdlops",
            "OutOfMemoryError",
            "MIOPEN_FIND_MODE",
            "FAST",
            "bfloat16",
        ] {
            assert!(is_known(text), "{text}");
        }
        for text in [
            "hunter2",
            "hf_PlantedInEnvironment99",
            "correct horse battery staple",
            "QWxhZGRpbjpvcGVuIHNlc2FtZQ",
            "68756e74657232",
            "%68%75%6e%74",
            "h\0u\0n\0t",
            "\\u0068\\u0075",
            "203.0.113.77",
            "4111-1111-1111-1111",
            "a8Zk31Qm9x",
            "marlene@example.org",
            "/home/marlene/app",
            "C:\\Users\\Marlene",
        ] {
            assert!(!is_known(text), "{text}");
        }
    }

    proptest! {
        /// Whatever is random enough to be a secret is no word of ours.
        #[test]
        fn nothing_random_is_known(text in "[A-Za-z0-9]{4}[0-9][A-Z][a-z][0-9][A-Za-z0-9]{6,24}") {
            prop_assert!(!is_known(&text));
        }
    }
}
