//! The screen without a terminal: the real encoder, its bytes counted and thrown away.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;

use framepack_tui::run::Snapshot;
use framepack_tui::ui::tui::{ViewOptions, draw};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

/// Takes everything and counts it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counted(Rc<Cell<u64>>);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.set(self.0.get() + bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A terminal of a size.
pub(crate) struct Sink {
    terminal: Terminal<CrosstermBackend<Counted>>,
    counted: Counted,
}

impl Sink {
    /// An empty one.
    pub(crate) fn new(width: u16, height: u16) -> io::Result<Self> {
        let counted = Counted::default();
        let options = TerminalOptions {
            viewport: Viewport::Fixed(Rect::new(0, 0, width, height)),
        };
        Ok(Self {
            terminal: Terminal::with_options(CrosstermBackend::new(counted.clone()), options)?,
            counted,
        })
    }

    /// Draws a frame; gives the bytes that it took.
    pub(crate) fn draw(&mut self, snapshot: &Snapshot, options: &ViewOptions) -> io::Result<u64> {
        let before = self.counted.0.get();
        self.terminal.draw(|frame| draw(frame, snapshot, options))?;
        Ok(self.counted.0.get() - before)
    }
}
