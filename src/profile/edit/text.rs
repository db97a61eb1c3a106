//! Changing single values of a TOML text and nothing else of it.
//!
//! What exists is replaced or taken out by its place in the text, so that comments,
//! order and spacing stay as they are; only what is new goes through `toml_edit`'s
//! own writer.

use std::collections::BTreeSet;
use std::ops::Range;

use toml_edit::{Document, DocumentMut, Formatted, Item, Key, Table, TableLike, Value};

/// Why a text could not be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextError {
    /// It is not TOML, or the path leads through something that is no table.
    NotTable(String),
    /// Taking the value out would take comments with it.
    Comments,
}

type Result<T> = std::result::Result<T, TextError>;

fn parse(text: &str) -> Result<Document<&str>> {
    Document::parse(text).map_err(|e| TextError::NotTable(e.message().to_owned()))
}

/// The value of a path, one level deeper where it is written as `{ value, why }`.
fn find<'d>(doc: &'d Document<&str>, path: &[&str]) -> Option<&'d Value> {
    let mut item = doc.as_item();
    for key in path {
        item = item.as_table_like()?.get(key)?;
    }
    match item.as_table_like() {
        Some(table) => table.get("value")?.as_value(),
        None => item.as_value(),
    }
}

/// The text of a string, number or boolean; absent: not there, or something else.
pub(super) fn get(text: &str, path: &[&str]) -> Option<String> {
    let doc = parse(text).ok()?;
    let value = find(&doc, path)?;
    Some(match value {
        Value::String(s) => s.value().clone(),
        Value::Integer(i) => i.value().to_string(),
        Value::Boolean(b) => b.value().to_string(),
        _ => return None,
    })
}

/// Whether the value is written with its reason, as `{ value, why }`.
pub(super) fn has_why(text: &str, path: &[&str]) -> bool {
    let full: Vec<&str> = path.iter().copied().chain(["why"]).collect();
    get(text, &full).is_some()
}

/// `text` with this value at `path`: in place of the old one, else as the last key
/// of its table, which is made where it is missing.
pub(super) fn set(text: &str, path: &[&str], value: Value) -> Result<String> {
    let doc = parse(text)?;
    let old = find(&doc, path).and_then(Value::span);
    if let Some(span) = old {
        let literal = value.to_string();
        return Ok(format!(
            "{}{}{}",
            &text[..span.start],
            literal.trim(),
            &text[span.end..]
        ));
    }
    let mut doc = doc.into_mut();
    insert(&mut doc, path, value)?;
    Ok(doc.to_string())
}

fn insert(doc: &mut DocumentMut, path: &[&str], value: Value) -> Result<()> {
    let Some((name, tables)) = path.split_last() else {
        return Ok(());
    };
    let before_ladder = doc
        .get("ladder")
        .and_then(Item::as_array_of_tables)
        .and_then(|rungs| rungs.get(0)?.position())
        .map(|p| p - 1);
    let mut table: &mut dyn TableLike = doc.as_table_mut();
    let mut made_in_root = true;
    for (depth, key) in tables.iter().enumerate() {
        if table.get(key).is_none() {
            let mut fresh = Table::new();
            fresh.set_implicit(depth + 1 < tables.len());
            if made_in_root {
                fresh.set_position(before_ladder);
            }
            table.insert(key, Item::Table(fresh));
        } else {
            made_in_root = false;
        }
        table = table
            .get_mut(key)
            .and_then(Item::as_table_like_mut)
            .ok_or_else(|| TextError::NotTable(format!("`{key}` is not a table")))?;
    }
    let width = table
        .iter()
        .filter(|(_, item)| item.is_value())
        .filter_map(|(k, _)| table.key(k))
        .map(key_width)
        .max();
    let pad = width.unwrap_or(0).saturating_sub(name.len()).max(1);
    table.insert(name, Item::Value(value));
    if let Some(mut key) = table.key_mut(name) {
        key.leaf_decor_mut().set_suffix(" ".repeat(pad));
    }
    Ok(())
}

/// Columns from the start of a key to its `=`.
fn key_width(key: &Key) -> usize {
    let space = key.leaf_decor().suffix().and_then(|s| s.as_str());
    key.display_repr().len() + space.map_or(1, str::len)
}

/// `text` without the value at `path`; the same text where there is none. Comments
/// above it and behind it stay.
pub(super) fn remove(text: &str, path: &[&str]) -> Result<String> {
    let doc = parse(text)?;
    let Some((name, tables)) = path.split_last() else {
        return Ok(text.to_owned());
    };
    let mut parent = doc.as_item();
    for key in tables {
        match parent.as_table_like().and_then(|t| t.get(key)) {
            Some(item) => parent = item,
            None => return Ok(text.to_owned()),
        }
    }
    if parent.is_inline_table() {
        return remove_inline(text, path);
    }
    let Some((key, item)) = parent.as_table_like().and_then(|t| t.get_key_value(name)) else {
        return Ok(text.to_owned());
    };
    let mut ranges = Vec::new();
    spans(key, item, &mut ranges);
    if ranges.iter().any(|r| hides_comment(&text[r.clone()])) {
        return Err(TextError::Comments);
    }
    ranges.sort_by_key(|r| std::cmp::Reverse(r.start));
    let mut out = text.to_owned();
    for range in ranges {
        erase(&mut out, range);
    }
    Ok(out)
}

/// A part over several lines may have comments between them.
fn hides_comment(part: &str) -> bool {
    part.contains('\n') && part.contains('#')
}

fn remove_inline(text: &str, path: &[&str]) -> Result<String> {
    let mut doc = parse(text)?.into_mut();
    let (Some((name, tables)), before) = (path.split_last(), doc.to_string()) else {
        return Ok(text.to_owned());
    };
    let mut item = doc.as_item_mut();
    for key in tables {
        match item.as_table_like_mut().and_then(|t| t.get_mut(key)) {
            Some(next) => item = next,
            None => return Ok(text.to_owned()),
        }
    }
    if let Some(table) = item.as_inline_table_mut() {
        table.remove(name);
    }
    let after = doc.to_string();
    if after.matches('#').count() < before.matches('#').count() {
        return Err(TextError::Comments);
    }
    Ok(after)
}

/// What an entry takes up: `key = value`, or each line of a table with a header.
fn spans(key: &Key, item: &Item, out: &mut Vec<Range<usize>>) {
    match item {
        Item::Value(value) => {
            if let (Some(k), Some(v)) = (key.span(), value.span()) {
                out.push(k.start..v.end);
            }
        }
        Item::Table(table) => {
            if let Some(header) = table.span().filter(|_| !table.is_dotted()) {
                out.push(header.start..header.start);
            }
            for (name, item) in table {
                if let Some(key) = table.key(name) {
                    spans(key, item, out);
                }
            }
        }
        Item::None | Item::ArrayOfTables(_) => {}
    }
}

/// Takes the whole lines of a range out; a comment behind it keeps its line.
fn erase(text: &mut String, range: Range<usize>) {
    let start = line_start(text, range.start);
    let line_end = text[range.end..]
        .find('\n')
        .map_or(text.len(), |i| range.end + i + 1);
    let rest = &text[range.end..line_end];
    let comment = rest.find('#').map(|i| rest[i..].to_owned());
    text.replace_range(start..line_end, comment.as_deref().unwrap_or_default());
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |i| i + 1)
}

/// `text` with every line of this table made a comment, below a line that says why.
pub(super) fn comment_out(text: &str, table: &str, why: &str) -> Result<String> {
    let doc = parse(text)?;
    let Some((key, item)) = doc.as_table().get_key_value(table) else {
        return Ok(text.to_owned());
    };
    let mut ranges = Vec::new();
    spans(key, item, &mut ranges);
    let mut lines: BTreeSet<usize> = BTreeSet::new();
    for range in ranges {
        let first = line_start(text, range.start);
        lines.insert(first);
        let inner = text[range.clone()].match_indices('\n');
        lines.extend(inner.map(|(i, _)| range.start + i + 1));
    }
    let mut out = String::with_capacity(text.len() + 2 * lines.len());
    let mut at = 0;
    for (i, line) in lines.into_iter().enumerate() {
        out += &text[at..line];
        if i == 0 {
            out.extend(["# ", why, "\n"]);
        }
        out += "# ";
        at = line;
    }
    out += &text[at..];
    Ok(out)
}

/// A string, or an integer where the words are one.
pub(super) fn scalar(words: &str, number: bool) -> Value {
    match words.parse::<i64>() {
        Ok(n) if number => Value::Integer(Formatted::new(n)),
        _ => Value::String(Formatted::new(words.to_owned())),
    }
}
