//! Where in which file something was written.

use std::ops::Range;
use std::sync::Arc;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

/// Who a profile file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// It came with the program.
    Shipped,
    /// The user wrote or copied it.
    User,
}

/// The text of a profile, with the name under which messages show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Path as the user gave it, or `profiles/NAME.toml` for a shipped one.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// Whose file it is.
    pub owner: Owner,
}

impl SourceCode for Source {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.as_str().read_span(span, before, after)?;
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            inner.data(),
            *inner.span(),
            inner.line(),
            inner.column(),
            inner.line_count(),
        )))
    }
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub source: Arc<Source>,
    /// Byte offsets into its text.
    pub span: Range<usize>,
}

impl Place {
    /// Line of the first byte, from 1.
    pub fn line(&self) -> usize {
        let end = self.span.start.min(self.source.text.len());
        let before = self.source.text.get(..end).unwrap_or_default();
        before.matches('\n').count() + 1
    }
}

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub place: Place,
}

impl<T> At<T> {
    /// The same place with another value.
    pub fn with<U>(&self, value: U) -> At<U> {
        At {
            value,
            place: self.place.clone(),
        }
    }
}

impl<T> std::ops::Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
