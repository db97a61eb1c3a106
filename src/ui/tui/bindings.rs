//! The table of keys and commands.

use crate::model::Setting as S;

use super::argument::{
    Argument, CAP, CHUNK, FILE, FIND, PRECISION, PRESERVED, SPAN, TILE, TIME, WORD,
};
use super::keymap::{Action as A, Binding, Context as C};
use super::keys::Key::{
    self, BackTab, Backspace, Char, Ctrl, Down, End, Enter, Esc, Home, Left, PageDown, PageUp,
    Right, Tab, Up,
};

const fn bind(
    context: C,
    keys: &'static [Key],
    action: A,
    name: &'static str,
    help: &'static str,
) -> Binding {
    Binding {
        context,
        keys,
        action,
        name,
        help,
        argument: None,
    }
}

/// A command that is told something besides its name.
const fn told(argument: Argument, mut binding: Binding) -> Binding {
    binding.argument = Some(argument);
    binding
}

/// Every key, most important first. Enter is never the destructive answer to a
/// question, and what acts on the run has one key on every screen; where a screen
/// needs a key of another for itself (`e`), it offers that command under a new one.
#[rustfmt::skip]
pub(super) const BINDINGS: &[Binding] = &[
    bind(C::Everywhere, &[Char('?')], A::Help, "help", "every key and command; type to narrow the list"),
    bind(C::Everywhere, &[Char('h')], A::Hold, "hold", "hold an announced kill; again: let it go ahead"),
    bind(C::Everywhere, &[Char('w')], A::Wait, "wait 60 s", "wait 60 s more before acting"),
    bind(C::Everywhere, &[Char('f')], A::FalseAlarm, "false alarm", "the verdict is wrong: spare the run, raise the limit"),
    bind(C::Dashboard, &[Char('e')], A::Evidence, "evidence", "take evidence now; does not disturb the run"),
    told(WORD, bind(C::Log, &[Char('/')], A::Search, "search", "search the log; one more / begins a regular expression")),
    bind(C::Everywhere, &[Char('s')], A::Stop, "stop", "stop the run gracefully"),
    bind(C::Everywhere, &[Char('k')], A::Kill, "kill", "kill at once; asks first"),
    bind(C::Everywhere, &[Char('q')], A::Quit, "quit", "quit; asks what becomes of the run"),
    bind(C::Everywhere, &[Char(':')], A::Palette, "command", "find a command by its words and run it"),
    bind(C::Dashboard, &[Char(' ')], A::PauseCharts, "pause", "hold the charts; readings and judgement go on"),
    bind(C::Dashboard, &[Char('z')], A::Zoom, "zoom", "charts as large as the screen; again: back"),
    bind(C::Dashboard, &[Char('+'), Char('=')], A::Shorter, "shorter", "charts over a shorter time, down to 30 s"),
    bind(C::Dashboard, &[Char('-')], A::Longer, "longer", "charts over a longer time, up to all that is kept"),
    told(SPAN, bind(C::Dashboard, &[Char('0')], A::AutoRange, "range", "charts over the shortest time that shows everything")),
    bind(C::Dashboard, &[Left], A::Earlier, "cursor", "time cursor back; its exact values are read out"),
    bind(C::Dashboard, &[Right], A::Later, "cursor later", "time cursor forward; at the end it vanishes"),
    bind(C::Dashboard, &[Esc], A::Back, "back", "one level back: cursor, zoom, pause"),
    bind(C::Log, &[Char('n')], A::NextHit, "next match", "next match, newer"),
    bind(C::Log, &[Char('N')], A::PreviousHit, "previous match", "previous match, older"),
    bind(C::Log, &[Char(' ')], A::Freeze, "pause", "stop following; again: follow"),
    bind(C::Log, &[Char('y')], A::CopyLine, "copy line", "copy the line that you stand on"),
    bind(C::Log, &[Char('m')], A::Mark, "mark", "mark this line, the begin of a range; again: no mark"),
    bind(C::Log, &[Char('Y')], A::CopyRange, "copy range", "copy from the mark to here, with times and streams"),
    told(FILE, bind(C::Log, &[Char('x')], A::Export, "export", "write the whole log to a file, with times and streams")),
    bind(C::Log, &[Char('o')], A::ShowStdout, "stdout", "show or hide standard output (O)"),
    bind(C::Log, &[Char('e')], A::ShowStderr, "stderr", "show or hide standard error (E)"),
    bind(C::Log, &[Char('.'), Char('·')], A::ShowOwn, "own", "show or hide the words of this program"),
    bind(C::Log, &[Char('W')], A::Wrap, "wrap", "wrap long lines, or cut them"),
    bind(C::Log, &[Char('E')], A::Evidence, "evidence", "take evidence now; does not disturb the run"),
    bind(C::Everywhere, &[PageUp], A::LogUp, "log up", "scroll the log back; it stops following"),
    bind(C::Everywhere, &[PageDown], A::LogDown, "log down", "scroll the log forward"),
    bind(C::Log, &[Up], A::LineUp, "line up", "one line back"),
    bind(C::Log, &[Down], A::LineDown, "line down", "one line forward"),
    bind(C::Log, &[Char('g'), Home], A::LogTop, "top", "begin of the log"),
    bind(C::Everywhere, &[End, Char('G')], A::LogEnd, "follow", "end of the log; it follows again"),
    bind(C::Everywhere, &[Char('1')], A::ShowDashboard, "dashboard", "the dashboard"),
    bind(C::Everywhere, &[Char('5')], A::ShowLog, "log screen", "the log, full size, with search and filter"),
    bind(C::Everywhere, &[Tab], A::NextScreen, "next screen", "the next screen"),
    bind(C::Everywhere, &[BackTab], A::PreviousScreen, "previous screen", "the previous screen"),
    bind(C::Everywhere, &[Ctrl('c')], A::Interrupt, "stop", "stop gracefully; second: kill now; third: leave"),
    bind(C::Everywhere, &[Ctrl('z')], A::Suspend, "suspend", "suspend this screen and the watching, not the program"),
    told(CAP, bind(C::Command, &[], A::Set(S::VramCap), "cap", "VRAM cap: moves the warn line at once")),
    told(FIND, bind(C::Command, &[], A::Set(S::FindMode), "find", "find mode of MIOpen from the next attempt on")),
    told(CHUNK, bind(C::Command, &[], A::Set(S::ChunkSize), "chunk", "chunk size of the VAE from the next attempt on")),
    told(TILE, bind(C::Command, &[], A::Set(S::TileSize), "tile", "tile size of the VAE from the next attempt on")),
    told(PRECISION, bind(C::Command, &[], A::Set(S::Precision), "precision", "precision of the VAE from the next attempt on")),
    told(PRESERVED, bind(C::Command, &[], A::Set(S::PreservedMemory), "preserved", "VRAM kept free, from the next attempt on")),
    told(TIME, bind(C::Command, &[], A::Goto, "goto", "log and charts to a time of the run")),
    bind(C::Everywhere, &[Ctrl('l')], A::Redraw, "redraw", "draw everything again"),
    bind(C::Help, &[Enter], A::Run, "run it", "run the marked command"),
    bind(C::Help, &[Down, Tab], A::PickDown, "next", "the next command"),
    bind(C::Help, &[Up, BackTab], A::PickUp, "previous", "the command before"),
    bind(C::Help, &[PageDown], A::PickPageDown, "more", "ten commands on"),
    bind(C::Help, &[PageUp], A::PickPageUp, "before", "ten commands back"),
    bind(C::Help, &[Esc], A::Narrow, "back", "show every command again; then close"),
    bind(C::Help, &[Backspace], A::Erase, "erase", "take the last character back"),
    bind(C::Help, &[Ctrl('c')], A::Interrupt, "stop", "stop gracefully"),
    bind(C::Palette, &[Enter], A::Run, "run it", "run the marked command"),
    bind(C::Palette, &[Down, Tab], A::PickDown, "next", "the next command"),
    bind(C::Palette, &[Up, BackTab], A::PickUp, "previous", "the command before"),
    bind(C::Palette, &[PageDown], A::PickPageDown, "more", "ten commands on"),
    bind(C::Palette, &[PageUp], A::PickPageUp, "before", "ten commands back"),
    bind(C::Palette, &[Esc], A::Close, "close", "back without doing anything"),
    bind(C::Palette, &[Backspace], A::Erase, "erase", "take the last character back"),
    bind(C::Palette, &[Ctrl('c')], A::Interrupt, "stop", "stop gracefully"),
    bind(C::Search, &[Enter], A::Close, "keep", "go on with n and N"),
    bind(C::Search, &[Esc], A::DropSearch, "leave", "back to where the search began"),
    bind(C::Search, &[Backspace], A::Erase, "erase", "take the last character back"),
    bind(C::Search, &[Ctrl('c')], A::Interrupt, "stop", "stop gracefully"),
    bind(C::Quit, &[Char('1'), Char('s')], A::QuitStop, "stop the run", "end the run gracefully, then leave"),
    bind(C::Quit, &[Char('2'), Char('l')], A::QuitLeave, "leave it headless", "leave the screen; the run goes on and is watched"),
    bind(C::Quit, &[Char('3'), Esc, Enter, Char('q')], A::Close, "cancel", "back to the run"),
    bind(C::Quit, &[Ctrl('c')], A::Interrupt, "stop", "stop gracefully"),
    bind(C::Stop, &[Char('y')], A::QuitStop, "stop it", "end the run gracefully"),
    bind(C::Stop, &[Char('n'), Esc, Enter, Char('q')], A::Close, "cancel", "back to the run"),
    bind(C::Stop, &[Ctrl('c')], A::Interrupt, "stop", "stop gracefully"),
    bind(C::Kill, &[Char('y')], A::ConfirmKill, "kill it", "SIGKILL to every process of the run"),
    bind(C::Kill, &[Char('n'), Esc, Enter, Char('q')], A::Close, "cancel", "back to the run"),
    bind(C::Kill, &[Ctrl('c')], A::Interrupt, "stop", "stop gracefully"),
];
