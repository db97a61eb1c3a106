//! Typed access to a parsed TOML document that notes every problem and goes on.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::model::Bytes;

use super::place::{At, Place, Source};
use super::problem::{Problem, suggest};

/// A table of the document, with its name for messages and the keys it may have.
#[derive(Clone, Copy)]
pub(super) struct Table<'t, 'i> {
    /// `detect.phase`; empty: the top of the file.
    pub name: &'t str,
    pub entries: &'t DeTable<'i>,
}

type Value<'i> = Spanned<DeValue<'i>>;

/// Reads one file and gathers its problems.
pub(super) struct Reader {
    source: Arc<Source>,
    pub problems: Vec<Problem>,
}

impl Reader {
    pub(super) fn new(source: Arc<Source>) -> Self {
        Self {
            source,
            problems: Vec::new(),
        }
    }

    pub(super) fn place(&self, span: Range<usize>) -> Place {
        Place {
            source: Arc::clone(&self.source),
            span,
        }
    }

    pub(super) fn at<T>(&self, span: Range<usize>, value: T) -> At<T> {
        At {
            value,
            place: self.place(span),
        }
    }

    /// Notes an error at a part of the file.
    pub(super) fn error(
        &mut self,
        code: &'static str,
        span: Range<usize>,
        message: String,
        label: &str,
        fix: String,
    ) {
        let place = self.place(span);
        self.problems.push(
            Problem::error(code, message)
                .at(&place)
                .label(label)
                .fix(fix),
        );
    }

    /// Every key that is not in `known` is an error.
    pub(super) fn only(&mut self, table: Table<'_, '_>, known: &[&str]) {
        for key in table.entries.keys() {
            let word = key.get_ref().as_ref();
            if !known.contains(&word) {
                let place = if table.name.is_empty() {
                    String::from("at the top of the file")
                } else {
                    format!("in [{}]", table.name)
                };
                self.error(
                    "P102",
                    key.span(),
                    format!("unknown key `{word}` {place}"),
                    "unknown key",
                    suggest(word, known),
                );
            }
        }
    }

    /// A key that must be there.
    pub(super) fn missing(&mut self, table: &str, key: &str, span: Range<usize>, example: &str) {
        self.error(
            "P106",
            span,
            format!("`{key}` is missing in [{table}]"),
            "in this table",
            format!("add `{key} = {example}`"),
        );
    }

    fn wrong_type(&mut self, name: &str, value: &Value<'_>, wanted: &str, example: &str) {
        let found = kind(value.get_ref());
        self.error(
            "P103",
            value.span(),
            format!("`{name}` must be {wanted}, not {found}"),
            &format!("this is {found}"),
            format!("write it as {example}"),
        );
    }

    pub(super) fn table<'t, 'i>(
        &mut self,
        parent: Table<'t, 'i>,
        key: &str,
        name: &'t str,
        known: Option<&[&str]>,
    ) -> Option<Table<'t, 'i>> {
        let value = parent.entries.get(key)?;
        let DeValue::Table(entries) = value.get_ref() else {
            self.wrong_type(name, value, "a table", &format!("`[{name}]`"));
            return None;
        };
        let table = Table { name, entries };
        if let Some(known) = known {
            self.only(table, known);
        }
        Some(table)
    }

    pub(super) fn string(&mut self, table: Table<'_, '_>, key: &str) -> Option<At<String>> {
        let value = table.entries.get(key)?;
        self.text(&dotted(table.name, key), value)
    }

    /// The value as a string.
    pub(super) fn text(&mut self, name: &str, value: &Value<'_>) -> Option<At<String>> {
        if let DeValue::String(s) = value.get_ref() {
            Some(self.at(value.span(), s.as_ref().to_owned()))
        } else {
            let example = scalar(value.get_ref())
                .map_or_else(|| String::from("`\"…\"`"), |s| format!("`\"{s}\"`"));
            self.wrong_type(name, value, "a string", &example);
            None
        }
    }

    pub(super) fn plain(&mut self, table: Table<'_, '_>, key: &str) -> Option<String> {
        self.string(table, key).map(|s| s.value)
    }

    pub(super) fn bool(&mut self, table: Table<'_, '_>, key: &str) -> Option<At<bool>> {
        let value = table.entries.get(key)?;
        if let DeValue::Boolean(b) = value.get_ref() {
            return Some(self.at(value.span(), *b));
        }
        self.wrong_type(
            &dotted(table.name, key),
            value,
            "true or false",
            "`true` or `false`",
        );
        None
    }

    pub(super) fn uint(&mut self, table: Table<'_, '_>, key: &str) -> Option<At<u64>> {
        let value = table.entries.get(key)?;
        let number = match value.get_ref() {
            DeValue::Integer(i) => u64::from_str_radix(i.as_str(), i.radix()).ok(),
            _ => None,
        };
        if number.is_none() {
            self.wrong_type(
                &dotted(table.name, key),
                value,
                "a whole number from 0",
                "`3`",
            );
        }
        number.map(|n| self.at(value.span(), n))
    }

    pub(super) fn strings(&mut self, table: Table<'_, '_>, key: &str) -> Option<Vec<At<String>>> {
        let value = table.entries.get(key)?;
        let name = dotted(table.name, key);
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong_type(&name, value, "a list of strings", "`[\"…\"]`");
            return None;
        };
        Some(
            items
                .iter()
                .filter_map(|item| self.text(&name, item))
                .collect(),
        )
    }

    /// A string, number or boolean as text, for settings whose type is the adapter's business.
    pub(super) fn scalars(&mut self, table: Table<'_, '_>) -> BTreeMap<String, At<String>> {
        let mut out = BTreeMap::new();
        for (key, value) in table.entries {
            let name = key.get_ref().as_ref();
            if let Some(text) = scalar(value.get_ref()) {
                out.insert(name.to_owned(), self.at(value.span(), text));
            } else {
                self.wrong_type(
                    &dotted(table.name, name),
                    value,
                    "a string, a number or a boolean",
                    "`256`",
                );
            }
        }
        out
    }

    /// One of a closed list of words.
    pub(super) fn word<T: Copy>(
        &mut self,
        what: &str,
        word: &At<String>,
        list: &[(&'static str, T)],
    ) -> Option<At<T>> {
        if let Some((_, v)) = list.iter().find(|(w, _)| *w == word.value) {
            return Some(word.with(*v));
        }
        let words: Vec<&str> = list.iter().map(|(w, _)| *w).collect();
        self.error(
            "P104",
            word.place.span.clone(),
            format!("`{}` is not a {what}", word.value),
            "unknown word",
            suggest(&word.value, &words),
        );
        None
    }

    /// A key that holds a word of a closed list.
    pub(super) fn word_at<T: Copy>(
        &mut self,
        table: Table<'_, '_>,
        key: &str,
        list: &[(&'static str, T)],
    ) -> Option<At<T>> {
        let text = self.string(table, key)?;
        self.word(&format!("value of `{key}`"), &text, list)
    }

    pub(super) fn size(&mut self, table: Table<'_, '_>, key: &str) -> Option<At<Bytes>> {
        let text = self.with_unit(table, key, "`\"20 GiB\"`")?;
        if let Ok(size) = text.value.parse::<Bytes>() {
            return Some(text.with(size));
        }
        self.error(
            "P105",
            text.place.span.clone(),
            format!("`{}` is not a size", text.value),
            "not a size",
            String::from("write a number with a unit, such as `\"20 GiB\"` or `\"512 MiB\"`"),
        );
        None
    }

    /// A quantity as a string; a bare number lacks its unit.
    pub(super) fn with_unit(
        &mut self,
        table: Table<'_, '_>,
        key: &str,
        example: &str,
    ) -> Option<At<String>> {
        let value = table.entries.get(key)?;
        let name = dotted(table.name, key);
        if let DeValue::String(_) = value.get_ref() {
            return self.text(&name, value);
        }
        self.wrong_type(&name, value, "a string with a unit", example);
        None
    }

    pub(super) fn duration(&mut self, table: Table<'_, '_>, key: &str) -> Option<At<Duration>> {
        let text = self.with_unit(table, key, "`\"90s\"`")?;
        self.time(&text)
    }

    /// A duration of a string such as `90s` or `1h 30m`.
    pub(super) fn time(&mut self, text: &At<String>) -> Option<At<Duration>> {
        if let Ok(d) = humantime::parse_duration(&text.value) {
            return Some(text.with(d));
        }
        self.error(
            "P105",
            text.place.span.clone(),
            format!("`{}` is not a duration", text.value),
            "not a duration",
            String::from(
                "write a number with a unit, such as `\"90s\"`, `\"10m\"` or `\"1h 30m\"`",
            ),
        );
        None
    }
}

/// `table.key`.
pub(super) fn dotted(table: &str, key: &str) -> String {
    if table.is_empty() {
        key.to_owned()
    } else {
        format!("{table}.{key}")
    }
}

/// The text of a value that is neither a list nor a table nor a date.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(s) => s.as_ref().to_owned(),
        DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix())
            .map_or_else(|_too_large| i.to_string(), |n| n.to_string()),
        DeValue::Float(f) => f.as_str().to_owned(),
        DeValue::Boolean(b) => b.to_string(),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => return None,
    })
}

const fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
