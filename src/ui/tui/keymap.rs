//! One registry of commands: the footer, the help, the palette and what a key does
//! all come from [`BINDINGS`].

use crate::model::{Health, Setting};
use crate::run::Snapshot;
use crate::run::snapshot::{AgentState, Freshness, Stage};
use crate::ui::slot::Reach;

use super::argument::{Argument, Value};
use super::bindings::BINDINGS;
use super::choices::{Choices, Overlay, Screen};
use super::keys::Key;
use super::log_choices::LogView;
use super::naming::likeness;
use super::profile_choices::{ProfilePane, ends_something};
use super::profile_keys;

/// Where a key is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Context {
    /// On every screen that nothing lies over.
    Everywhere,
    Dashboard,
    Diagnose,
    Profiles,
    Log,
    /// On every screen, but without a key: only by its words.
    Command,
    Help,
    Palette,
    Search,
    Quit,
    Stop,
    Kill,
    AfterStep,
    Value,
    Apply,
    Save,
    Rungs,
    TakeRung,
    Cites,
    /// The start screen, which knows no run.
    Start,
    /// The line that a command is typed into there.
    Prompt,
    /// Whether a profile that does not fit is meant.
    Unfit,
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Action {
    Help,
    Palette,
    Hold,
    Wait,
    FalseAlarm,
    /// The queue that was lost with a server.
    Resend,
    /// The end of the job after its step.
    StopAfterStep,
    Evidence,
    Stop,
    Kill,
    Quit,
    Interrupt,
    Suspend,
    Redraw,
    ShowDashboard,
    ShowDiagnose,
    ShowProfiles,
    ShowLog,
    NextScreen,
    PreviousScreen,
    LogUp,
    LogDown,
    LogEnd,
    LogTop,
    LineUp,
    LineDown,
    PauseCharts,
    Zoom,
    Shorter,
    Longer,
    AutoRange,
    Earlier,
    Later,
    Back,
    Freeze,
    ShowStdout,
    ShowStderr,
    ShowOwn,
    Wrap,
    Search,
    NextHit,
    PreviousHit,
    DropSearch,
    Goto,
    /// Switch a setting from the next attempt on.
    Set(Setting),
    CopyLine,
    /// The line that reproduces the open Find.
    CopyFind,
    CopyRange,
    Mark,
    Export,
    PickUp,
    PickDown,
    PickPageUp,
    PickPageDown,
    Run,
    Narrow,
    Erase,
    QuitStop,
    QuitLeave,
    ConfirmKill,
    ConfirmAfterStep,
    ConfirmProfile,
    Close,
    PaneLeft,
    PaneRight,
    RowUp,
    RowDown,
    ToList,
    Choose,
    TakeValue,
    ApplyNow,
    ConfirmApply,
    SaveAs,
    SaveIt,
    Rungs,
    PickRung,
    ConfirmRung,
    RuleUp,
    RuleDown,
    OpenCites,
    ToCite,
    NextMark,
    PreviousMark,
    CursorFirst,
    CopyVerdict,
    ExportBundle,
    LeaveDiagnose,
    Type,
    Open,
    LookAt,
    WatchIt,
    OpenRun,
    ChooseProfile,
    NextList,
    PreviousList,
    Launch,
    Abandon,
    Older,
    Newer,
    CursorLeft,
    CursorRight,
    CursorHome,
    CursorEnd,
    EraseWord,
    EraseLine,
}

/// A key with what it does.
pub(super) struct Binding {
    pub(super) context: Context,
    pub(super) keys: &'static [Key],
    pub(super) action: Action,
    /// For the footer; the more important ones stand first in [`BINDINGS`].
    pub(super) name: &'static str,
    /// For the help.
    pub(super) help: &'static str,
    /// What may follow the name in the palette.
    pub(super) argument: Option<Argument>,
}

/// The contexts whose keys count.
const fn contexts(screen: Screen, overlay: Overlay) -> [Option<Context>; 2] {
    match (overlay, screen) {
        (Overlay::None, Screen::Dashboard) => [Some(Context::Dashboard), Some(Context::Everywhere)],
        (Overlay::None, Screen::Diagnose) => [Some(Context::Diagnose), Some(Context::Everywhere)],
        (Overlay::None, Screen::Profiles) => [Some(Context::Profiles), Some(Context::Everywhere)],
        (Overlay::None, Screen::Log) => [Some(Context::Log), Some(Context::Everywhere)],
        (Overlay::Help, _) => [Some(Context::Help), None],
        (Overlay::Palette, _) => [Some(Context::Palette), None],
        (Overlay::Search, _) => [Some(Context::Search), None],
        (Overlay::Quit, _) => [Some(Context::Quit), None],
        (Overlay::Stop, _) => [Some(Context::Stop), None],
        (Overlay::Kill, _) => [Some(Context::Kill), None],
        (Overlay::AfterStep, _) => [Some(Context::AfterStep), None],
        (Overlay::Value, _) => [Some(Context::Value), None],
        (Overlay::Apply, _) => [Some(Context::Apply), None],
        (Overlay::Save, _) => [Some(Context::Save), None],
        (Overlay::Rungs, _) => [Some(Context::Rungs), None],
        (Overlay::TakeRung, _) => [Some(Context::TakeRung), None],
        (Overlay::Cites, _) => [Some(Context::Cites), None],
    }
}

/// The bindings that count, in order.
pub(super) fn of(screen: Screen, overlay: Overlay) -> impl Iterator<Item = &'static Binding> {
    let contexts = contexts(screen, overlay);
    BINDINGS
        .iter()
        .filter(move |b| contexts.contains(&Some(b.context)))
}

/// The keys of the diagnosis that a narrow footer keeps, behind those of an announced
/// kill; those of every screen are told on the others.
const DIAGNOSING: [Action; 6] = [
    Action::LeaveDiagnose,
    Action::NextMark,
    Action::PreviousMark,
    Action::Earlier,
    Action::OpenCites,
    Action::Quit,
];

/// The same for the footer, what must not be cut first.
pub(super) fn footer(screen: Screen, overlay: Overlay) -> impl Iterator<Item = &'static Binding> {
    let urgent = |a| {
        use Action::{FalseAlarm, Help, Hold, Wait};
        matches!(a, Help | Hold | Wait | FalseAlarm)
    };
    let mut list: Vec<_> = of(screen, overlay).collect();
    if (screen, overlay) == (Screen::Diagnose, Overlay::None) {
        list.sort_by_key(|b| {
            let own = DIAGNOSING.iter().position(|a| *a == b.action);
            (!urgent(b.action), own.unwrap_or(DIAGNOSING.len()))
        });
    }
    list.into_iter()
}

/// The bindings of one context, in order.
pub(super) fn within(context: Context) -> impl Iterator<Item = &'static Binding> {
    BINDINGS.iter().filter(move |b| b.context == context)
}

/// The keys of one context whose words `typed` is among.
pub(super) fn help_within(context: Context, typed: &str) -> Vec<&'static Binding> {
    within(context).filter(|b| has_words(b, typed)).collect()
}

/// The commands of one context that `typed` may name, the likeliest first.
pub(super) fn commands_within(context: Context, typed: &str) -> Vec<&'static Binding> {
    let mut list: Vec<&Binding> = Vec::new();
    for b in within(context) {
        let known = list.iter().any(|c| c.name == b.name);
        if !known && b.action != Action::Palette && likeness(b, typed).is_some() {
            list.push(b);
        }
    }
    list.sort_by_key(|b| likeness(b, typed));
    list
}

/// What `key` does.
pub(super) fn find(screen: Screen, overlay: Overlay, key: Key) -> Option<&'static Binding> {
    of(screen, overlay).find(|b| b.keys.contains(&key))
}

/// Commands that have no key.
pub(super) fn keyless() -> impl Iterator<Item = &'static Binding> {
    BINDINGS.iter().filter(|b| b.context == Context::Command)
}

/// The list of the help: the keys of the screen first, then the others, then commands
/// without a key. Of these what has the words of `typed`, or is that key.
pub(super) fn help(screen: Screen, typed: &str) -> Vec<&'static Binding> {
    let (here, everywhere): (Vec<_>, Vec<_>) =
        of(screen, Overlay::None).partition(|b| b.context != Context::Everywhere);
    let is_key = |b: &Binding| b.keys.iter().any(|k| k.name() == typed);
    let mut list: Vec<_> = (here.into_iter().chain(everywhere).chain(keyless()))
        .filter(|b| is_key(b) || has_words(b, typed))
        .collect();
    list.sort_by_key(|b| !typed.is_empty() && !is_key(b));
    list
}

/// The command that `typed` names, with what stands after the name.
pub(super) fn told(typed: &str) -> Option<(&'static Binding, &str)> {
    let (name, rest) = typed.split_once(' ')?;
    let binding = BINDINGS
        .iter()
        .find(|b| b.argument.is_some() && b.name == name)?;
    Some((binding, rest.trim()))
}

/// What `typed` tells a command besides its name; absent: nothing yet, or the command
/// takes nothing. The error says what to write.
pub(super) fn value(
    binding: &Binding,
    typed: &str,
    snapshot: Option<&Snapshot>,
) -> Result<Option<Value>, String> {
    let rest = told(typed).map(|(_, rest)| rest).filter(|r| !r.is_empty());
    match (binding.argument, rest) {
        (None, _) | (Some(Argument { needed: false, .. }), None) => Ok(None),
        (Some(a), None) => Err(format!("say which {}: {}", a.name, a.example)),
        (Some(a), Some(rest)) => {
            let s = snapshot.ok_or("nothing of the run is drawn yet")?;
            (a.parse)(rest, s).map(Some)
        }
    }
}

/// The commands of the palette that `typed` may name, the likeliest first, then those of
/// `screen`; a command with a key here stands with that key.
pub(super) fn commands(screen: Screen, typed: &str) -> Vec<&'static Binding> {
    if let Some((binding, _)) = told(typed) {
        return vec![binding];
    }
    let mut list: Vec<&Binding> = Vec::new();
    let others = Screen::ALL
        .iter()
        .flat_map(|(other, ..)| of(*other, Overlay::None));
    for b in of(screen, Overlay::None).chain(keyless()).chain(others) {
        let known = list.iter().any(|c| c.action == b.action);
        // Ctrl-C is a key; its command is `stop`
        let is_key = matches!(b.action, Action::Palette | Action::Interrupt);
        if !known && !is_key && likeness(b, typed).is_some() {
            list.push(b);
        }
    }
    list.sort_by_key(|b| likeness(b, typed));
    list
}

/// What the list of the help or the palette shows now.
pub(super) fn listed(choices: &Choices) -> Vec<&'static Binding> {
    match choices.overlay {
        Overlay::Palette => commands(choices.screen, &choices.typed),
        _ => help(choices.screen, &choices.typed),
    }
}

/// Whether `typed` stands in the name or the help of a command, or is one of its keys.
fn has_words(binding: &Binding, typed: &str) -> bool {
    let typed = typed.trim().to_lowercase();
    let is_key = |k: &Key| k.name().to_lowercase() == typed;
    let words = format!("{} {}", binding.name, binding.help).to_lowercase();
    binding.keys.iter().any(is_key) || words.contains(&typed)
}

/// The screen that a command needs, where the present one does not have it.
pub(super) fn home(binding: &Binding, present: Screen) -> Option<Screen> {
    if of(present, Overlay::None).any(|b| b.action == binding.action) {
        return None;
    }
    match (binding.action, binding.context) {
        (
            Action::Evidence
            | Action::Export
            | Action::CopyFind
            | Action::ExportBundle
            | Action::Rungs
            | Action::ApplyNow
            | Action::SaveAs,
            _,
        ) => None,
        (_, Context::Dashboard) => Some(Screen::Dashboard),
        (_, Context::Diagnose) => Some(Screen::Diagnose),
        (_, Context::Profiles) => Some(Screen::Profiles),
        (_, Context::Log) => Some(Screen::Log),
        _ => None,
    }
}

/// The name of a binding as things stand.
pub(super) fn name(
    binding: &Binding,
    snapshot: Option<&Snapshot>,
    choices: &Choices,
) -> &'static str {
    let over = snapshot.is_some_and(|s| s.outcome.is_some());
    let diagnoses = choices.screen == Screen::Diagnose;
    let held = snapshot.is_some_and(|s| matches!(s.stage, Stage::Countdown { held: true, .. }));
    match binding.action {
        Action::Hold if held => "release",
        Action::Quit | Action::Interrupt
            if over || choices.leaves_alone() || snapshot.is_some_and(Snapshot::is_foreign) =>
        {
            "leave"
        }
        Action::Choose if choices.profiles.pane == ProfilePane::List => "use next",
        Action::LogUp if diagnoses => "rows up",
        Action::LogDown if diagnoses => "rows down",
        Action::LogEnd if diagnoses => "now",
        _ => binding.name,
    }
}

/// What a binding does as things stand.
pub(super) fn help_of(
    binding: &Binding,
    snapshot: Option<&Snapshot>,
    choices: &Choices,
) -> &'static str {
    let diagnoses = choices.screen == Screen::Diagnose;
    let over = snapshot.is_some_and(|s| s.outcome.is_some());
    match binding.action {
        Action::Quit | Action::Interrupt if over => "leave this screen; the run is over",
        Action::Quit | Action::Interrupt if choices.watches => "leave; the process is not touched",
        Action::Stop if choices.watches => "stop the process gracefully; asks first",
        Action::Quit | Action::Interrupt if choices.follows => "leave the view; the run goes on",
        Action::Stop if choices.follows => "ask its supervisor to stop the run; asks first",
        Action::LogUp if diagnoses => "the rows of the findings and rules, ten back",
        Action::LogDown if diagnoses => "the rows of the findings and rules, ten on",
        Action::LogEnd if diagnoses => "time cursor to the end, where it vanishes",
        _ => binding.help,
    }
}

/// Why a key does nothing as long as nothing was drawn of the run.
pub(super) const fn no_snapshot(choices: &Choices) -> &'static str {
    if choices.follows {
        "the record of the run is still being read"
    } else {
        "the run has not begun"
    }
}

/// Why a key does nothing after the end, where it is about a run that goes on.
const OVER: &str = "the run is over";

/// Whether there is a line to reproduce a Find with; else why not.
fn copies_find(snapshot: Option<&Snapshot>, choices: &Choices) -> Result<(), &'static str> {
    let s = snapshot.ok_or(no_snapshot(choices))?;
    let find = s.find.as_ref();
    let find = find.ok_or(if s.outcome.is_some() {
        OVER
    } else {
        "MIOpen searches for nothing"
    })?;
    let line = find.state.driver_line();
    line.map(drop)
        .ok_or("MIOpen does not say for which convolution it searches")
}

/// What does not go with a process that somebody else started.
const fn attached(action: Action) -> Result<(), &'static str> {
    match action {
        Action::Wait => Err("nothing is done to it by itself"),
        Action::Set(_)
        | Action::ApplyNow
        | Action::ConfirmApply
        | Action::Rungs
        | Action::ConfirmRung => Err("not started from here: nothing can be set in it"),
        _ => Ok(()),
    }
}

/// Whether an action is about a run that goes on.
const fn needs_run(action: Action) -> bool {
    matches!(
        action,
        Action::Hold
            | Action::Wait
            | Action::FalseAlarm
            | Action::Resend
            | Action::StopAfterStep
            | Action::Evidence
            | Action::Stop
            | Action::Kill
            | Action::QuitStop
            | Action::ConfirmKill
            | Action::ConfirmAfterStep
            | Action::Set(_)
            | Action::ApplyNow
            | Action::ConfirmApply
            | Action::Rungs
            | Action::ConfirmRung
    )
}

/// Whether what is about a run that goes on can be asked of the one that is drawn: the run lives
/// and is ours, and the screen shows its present state. What means the same whatever happened
/// meanwhile acts on the run as it is now, also from a screen that is behind.
fn reaches(
    action: Action,
    snapshot: Option<&Snapshot>,
    choices: &Choices,
) -> Result<(), &'static str> {
    let s = snapshot.ok_or(no_snapshot(choices))?;
    if s.is_foreign() {
        return Err("not our process");
    }
    if s.outcome.is_some() {
        return Err(OVER);
    }
    let ends = matches!(
        action,
        Action::Stop | Action::Kill | Action::QuitStop | Action::ConfirmKill
    );
    match s.freshness {
        Freshness::CatchingUp { .. } if !ends && action != Action::Evidence => {
            Err("this screen is behind the run; it still reads the record")
        }
        Freshness::CutOff if !ends => {
            Err("the record breaks off here: how the run stands is not known")
        }
        _ => Ok(()),
    }
}

/// Whether an action makes sense now; else why not.
pub(super) fn enabled(
    action: Action,
    snapshot: Option<&Snapshot>,
    choices: &Choices,
) -> Result<(), &'static str> {
    if needs_run(action) {
        reaches(action, snapshot, choices)?;
    }
    if matches!(action, Action::NextHit | Action::PreviousHit) && choices.log.search.is_none() {
        return Err("nothing is searched for");
    }
    profile_keys::switchable(action, snapshot, choices)?;
    let stands = choices.log.view != LogView::Follow;
    match action {
        Action::CopyLine | Action::CopyRange | Action::Mark if !stands => {
            return Err("stop the log first (space, or up)");
        }
        Action::CopyRange if choices.log.mark.is_none() => {
            return Err("no line is marked (m marks one)");
        }
        Action::CopyFind => return copies_find(snapshot, choices),
        Action::CopyVerdict | Action::ExportBundle | Action::Export | Action::Goto
            if snapshot.is_none() =>
        {
            return Err(no_snapshot(choices));
        }
        _ => {}
    }
    if !needs_run(action) {
        return Ok(());
    }
    let s = snapshot.ok_or(no_snapshot(choices))?;
    if s.attached {
        attached(action)?;
    }
    let here = matches!(
        action,
        Action::Wait
            | Action::FalseAlarm
            | Action::Resend
            | Action::StopAfterStep
            | Action::ConfirmAfterStep
            | Action::Set(_)
    );
    if let (true, Reach::Signals(why)) = (here, choices.reach) {
        return Err(why);
    }
    let announced = matches!(s.stage, Stage::Countdown { .. });
    let in_doubt = announced
        || matches!(s.stage, Stage::Watching)
            && matches!(
                s.verdict.health,
                Health::Slow | Health::Suspect | Health::Hung | Health::Failing
            );
    match action {
        Action::Hold if !announced => Err("no kill is announced"),
        Action::Wait if !in_doubt => Err("nothing is about to be done"),
        Action::Resend if s.resend.waiting == 0 => Err("no queue was lost"),
        Action::StopAfterStep | Action::ConfirmAfterStep
            if s.agent.state != AgentState::Connected =>
        {
            Err("the agent is not connected")
        }
        Action::FalseAlarm if !in_doubt => Err("there is no alarm"),
        Action::Evidence if s.pid.is_none() && s.freshness == Freshness::Live => {
            Err("no process lives")
        }
        Action::ApplyNow | Action::ConfirmApply if !ends_something(s) => {
            Err("this attempt ends anyway; the next one has what you chose")
        }
        _ => Ok(()),
    }
}
