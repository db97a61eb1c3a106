//! Paths that a source file uses, read from its tokens.

use std::path::Path;

use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};

/// One path, resolved as far as its text tells: `crate::…` for ours.
pub(crate) struct Used {
    /// Its segments.
    pub(crate) path: Vec<String>,
    /// Where, from 1.
    pub(crate) line: usize,
}

/// Every path of more than one segment in `text`, the source of `file` (relative to
/// `src`), with `super::` and nested `use` lists resolved; `#[cfg(test)]` items left out.
pub(crate) fn paths_used(file: &Path, text: &str) -> Result<Vec<Used>, LexError> {
    let tokens: Vec<_> = text.parse::<TokenStream>()?.into_iter().collect();
    let mut reader = Reader {
        module: module_of(file),
        found: Vec::new(),
    };
    reader.block(&tokens);
    Ok(reader.found)
}

/// `detect/rule/spin.rs` is the module `detect::rule::spin`, `detect/mod.rs` is `detect`.
fn module_of(file: &Path) -> Vec<String> {
    let parts = file.with_extension("");
    let mut module: Vec<_> = parts
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if module
        .last()
        .is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main"))
    {
        module.pop();
    }
    module
}

struct Reader {
    module: Vec<String>,
    found: Vec<Used>,
}

impl Reader {
    /// Reads the tokens of a block, a file or a macro.
    fn block(&mut self, tokens: &[TokenTree]) {
        let mut at = 0;
        while at < tokens.len() {
            if is_cfg_test(&tokens[at..]) {
                at = end_of_item(tokens, at + 2);
                continue;
            }
            match &tokens[at] {
                TokenTree::Ident(_) => at = self.path(tokens, at, &[]),
                TokenTree::Group(group) => {
                    let inner: Vec<_> = group.stream().into_iter().collect();
                    self.block(&inner);
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// Reads a path that begins at `at` below `prefix`; returns where it ends.
    fn path(&mut self, tokens: &[TokenTree], mut at: usize, prefix: &[String]) -> usize {
        let mut path = prefix.to_vec();
        let line = tokens[at].span().start().line;
        loop {
            match tokens.get(at) {
                Some(TokenTree::Ident(name)) => path.push(name.to_string()),
                // `use a::{b, c::d}`
                Some(TokenTree::Group(list)) if list.delimiter() == Delimiter::Brace => {
                    let inner: Vec<_> = list.stream().into_iter().collect();
                    self.list(&inner, &path);
                    return at + 1;
                }
                // `use a::*`
                Some(TokenTree::Punct(p)) if p.as_char() == '*' => {}
                // `a::<T>`: the arguments are read on their own.
                _ => break,
            }
            at += 1;
            if !is_path_separator(&tokens[at..]) {
                break;
            }
            at += 2;
        }
        if path.len() > 1 {
            let path = self.resolve(path);
            self.found.push(Used { path, line });
        }
        at
    }

    /// Reads the members of a `use` list.
    fn list(&mut self, tokens: &[TokenTree], prefix: &[String]) {
        let mut at = 0;
        while at < tokens.len() {
            at = match &tokens[at] {
                TokenTree::Ident(_) => {
                    let mut end = self.path(tokens, at, prefix);
                    // `as name` belongs to the member.
                    while end < tokens.len() && !is_punct(&tokens[end], ',') {
                        end += 1;
                    }
                    end
                }
                _ => at + 1,
            };
        }
    }

    /// Replaces `self::` and `super::` by the module that they mean.
    fn resolve(&self, mut path: Vec<String>) -> Vec<String> {
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let mut module = self.module.clone();
        let mut up = path
            .iter()
            .take_while(|p| *p == "super" || *p == "self")
            .peekable();
        if up.peek().is_none() {
            return path;
        }
        let mut named = 0;
        for step in up {
            named += 1;
            if step == "super" {
                module.pop();
            }
        }
        std::iter::once("crate".to_owned())
            .chain(module)
            .chain(path.drain(named..))
            .collect()
    }
}

/// `#[cfg(test)]`, `#[cfg(all(test, …))]`.
fn is_cfg_test(tokens: &[TokenTree]) -> bool {
    let [hash, TokenTree::Group(attribute), ..] = tokens else {
        return false;
    };
    let text = attribute.stream().to_string().replace(' ', "");
    is_punct(hash, '#') && (text == "cfg(test)" || text.starts_with("cfg(all(test,"))
}

/// Where the item ends that begins at `at`: after its `;` or its braces.
fn end_of_item(tokens: &[TokenTree], at: usize) -> usize {
    let end = tokens[at.min(tokens.len())..].iter().position(|t| match t {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        other => is_punct(other, ';'),
    });
    end.map_or(tokens.len(), |offset| at + offset + 1)
}

fn is_path_separator(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [a, b, ..] if is_punct(a, ':') && is_punct(b, ':'))
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == c)
}
