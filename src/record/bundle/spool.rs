//! What goes through the filters, on disk until its lengths are known.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use serde_json::Value;

use crate::record::redact::{Mask, Redactor};

use super::Member;

/// What each part of a bundle goes through.
pub(super) struct Filter {
    /// Free text is replaced first; absent: it goes out.
    pub(super) mask: Option<Mask>,
    /// What looks private, in whatever is left.
    pub(super) redactor: Redactor,
}

impl Filter {
    pub(super) fn json(&mut self, value: &Value) -> Value {
        match &mut self.mask {
            Some(mask) => self.redactor.json(&mask.json(value)),
            None => self.redactor.json(value),
        }
    }

    pub(super) fn sentence(&mut self, text: &str) -> String {
        let masked = self.mask.as_mut().map(|mask| mask.sentence(text));
        self.redactor.text(masked.as_deref().unwrap_or(text))
    }

    pub(super) fn file_name(&mut self, name: &str) -> String {
        let masked = self.mask.as_mut().map(|mask| mask.file_name(name));
        self.redactor.text(masked.as_deref().unwrap_or(name))
    }
}

/// Members on disk, one after the other, until their lengths are known.
pub(super) struct Spool {
    pub(super) file: BufWriter<File>,
    pub(super) members: Vec<(String, u64)>,
}

impl Spool {
    pub(super) fn new(file: File) -> Self {
        Self {
            file: BufWriter::new(file),
            members: Vec::new(),
        }
    }

    pub(super) fn begin(&mut self, name: String) {
        self.members.push((name, 0));
    }

    pub(super) fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        if let Some(last) = self.members.last_mut() {
            last.1 += bytes.len() as u64;
        }
        Ok(())
    }

    pub(super) fn members(&self) -> Vec<Member> {
        let each = self.members.iter();
        each.map(|(name, bytes)| Member {
            name: name.clone(),
            bytes: *bytes,
        })
        .collect()
    }
}
