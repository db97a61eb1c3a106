//! Question 3: what does the holder, the thread of the job, wait for?
//!
//! The table is in `docs/judgement.md`. A wait for another process or thread is asked on
//! there; where that cannot be told the answer stays [`WaitsFor::Process`].

use std::time::Duration;

use crate::model::agent::THREAD_NAME as AGENT_THREAD;
use crate::model::{Mono, Probe, ProbedProcess, ProbedThread, Wait, WaitTarget, Waits, WaitsFor};

mod call;

pub(crate) use call::{NOTHING_ENDS_IT, is_poll};
use call::{by_call, by_channel, is_pause};

use super::probes::{Probes, serves_its_library, serves_the_job, thread_of, waits_for_client};
use super::threads::{ThreadId, ThreadTracker};

/// A sleep that is shorter repeats: it is a poll, which ends by itself.
const SHORT_SLEEP: Duration = Duration::from_secs(10);
/// A sleep with an end that is no further away is a pause: a card cools down, a request is
/// tried again. A stand-in for *for ever* is longer.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);
/// A timer of another thread that is at least as long is one of the job's between two clips;
/// what reports every few seconds beside a hang has a shorter one.
const LONG_TIMER: Duration = Duration::from_secs(50);
/// How many processes a wait is followed through.
const DEEPEST: usize = 8;
/// The thread that a futex waits for stopped about when the waiting one did: one that
/// still runs is a helper.
const SAME_TIME: Duration = Duration::from_secs(10);

/// The share of a core below which a thread that was met running does not spin.
const SPINNING_LOAD: f64 = 0.2;

/// What is known of the holder beside the probe.
#[expect(
    clippy::struct_excessive_bools,
    reason = "answers of the other questions, of which several may hold"
)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct HolderContext {
    /// The holder.
    pub(crate) id: ThreadId,
    /// An operation is in flight in it, or the interpreter's lock is held.
    pub(crate) operates: bool,
    /// The phase is one in which something is computed or moved.
    pub(crate) works: bool,
    /// No such phase, no job of the agent, no bar, search or operation is open.
    pub(crate) between: bool,
    /// The thread that did the job has ended before its bar was full: the holder is another.
    pub(crate) bereft: bool,
    /// A client waits for the answer to the request of the steps at hand: another one that may
    /// come does not go on with them.
    pub(crate) owes_answer: bool,
    /// When the job last moved.
    pub(crate) moved: Mono,
    /// The limit of silence of the phase.
    pub(crate) limit: Duration,
}

/// What the holder waits for at this moment.
pub(crate) fn waits(
    now: Mono,
    holder: HolderContext,
    probes: &Probes,
    threads: &ThreadTracker,
) -> Waits {
    let waited = probes.waited(now, holder.id);
    let load = probes.load(holder.id);
    let limit = probes.limit(holder.id);
    let ask = |probe| {
        let look = Look {
            now,
            probe,
            holder,
            waited,
            limit,
            load,
            probes,
            threads,
        };
        look.follow(holder.id, &mut Vec::new())
    };
    let mut waits = probes.recent(now).map_or_else(|| unknown(holder.id), ask);
    // one probe may fall between two naps: a harmless wait holds until the second probe
    if !is_harmless(waits.answer)
        && let Some(before) = probes.recent_before(now).map(ask)
        && is_harmless(before.answer)
    {
        waits = before;
    }
    waits.for_s = waited.map(|d| d.as_secs_f64());
    waits
}

/// Whether a wait for this ends by itself, or by what others do.
const fn is_harmless(answer: WaitsFor) -> bool {
    matches!(
        answer,
        WaitsFor::Time | WaitsFor::Peer | WaitsFor::Client | WaitsFor::Lock | WaitsFor::Person
    )
}

const fn unknown(id: ThreadId) -> Waits {
    Waits {
        pid: Some(id.0),
        tid: Some(id.1),
        ..Waits::UNKNOWN
    }
}

/// One probe, and what is known beside it.
#[derive(Clone, Copy)]
struct Look<'a> {
    now: Mono,
    probe: &'a Probe,
    holder: HolderContext,
    /// How long the holder has been in its wait.
    waited: Option<Duration>,
    /// The longest time limit that was seen in it.
    limit: Option<Duration>,
    /// The share of a core that the holder uses.
    load: Option<f64>,
    probes: &'a Probes,
    threads: &'a ThreadTracker,
}

impl Look<'_> {
    /// The answer of one thread, followed through the processes that it waits for.
    fn follow(self, id: ThreadId, asked: &mut Vec<ThreadId>) -> Waits {
        asked.push(id);
        let Some((process, thread)) = thread_of(self.probe, id) else {
            return unknown(id);
        };
        let own = self.answer(process, thread);
        if self.holder.id == id
            && is_poll(&thread.wait)
            && let Some(behind) = self.behind_a_poll(process, thread)
        {
            return behind;
        }
        if own.answer != WaitsFor::Process || asked.len() >= DEEPEST {
            return own;
        }
        let children = |pid| {
            let all = self.probe.processes.iter();
            all.filter(move |p| p.parent == pid).map(|p| p.pid)
        };
        let any_child = waits_for_any_child(&thread.wait).then(|| children(process.pid));
        let behind: Vec<u32> = processes_behind(&thread.wait)
            .chain(any_child.into_iter().flatten())
            .collect();
        let connected = connected_processes(&thread.wait);
        let there: Vec<Waits> = behind
            .into_iter()
            .flat_map(|pid| self.stand_ins(pid, connected.contains(&pid)))
            .filter(|id| !asked.contains(id))
            .map(|id| self.follow(id, &mut asked.clone()))
            .collect();
        if !there.is_empty() {
            // who is waited for by several is busy with the one that others hold up; a
            // process that waits for this one in turn says nothing
            let harmless = there.iter().find(|w| is_harmless(w.answer));
            let told = harmless.or_else(|| there.iter().find(|w| w.answer != WaitsFor::Process));
            return told.cloned().unwrap_or(own);
        }
        self.thread_behind(id, asked).unwrap_or(own)
    }

    /// What ends a poll of the holder, where that can be told.
    fn behind_a_poll(self, process: &ProbedProcess, thread: &ProbedThread) -> Option<Waits> {
        let orders = self.orders_behind(process, thread);
        orders.or_else(|| self.stuck_child(process))
    }

    /// Who may end a poll in the middle of a job, where no client waits for its answer: a
    /// thread that takes orders from outside, such as that of a page with a button to resume,
    /// in the same process or in one above it. Another thread or a child that is stuck explains
    /// the poll as well, and is worse.
    fn orders_behind(self, process: &ProbedProcess, thread: &ProbedThread) -> Option<Waits> {
        let holder = self.holder;
        if holder.operates || holder.owes_answer || holder.bereft || !is_futex(&thread.wait) {
            return None;
        }
        // what others wait for may be an order, whatever phase the job is in
        let look = Look {
            holder: HolderContext {
                works: false,
                between: true,
                ..holder
            },
            ..self
        };
        let above = self.ancestors(process.pid);
        let mut found = None;
        for other in &self.probe.processes {
            for thread in threads_but_the_agents(other) {
                if holder.id == (other.pid, thread.tid) {
                    continue;
                }
                let waits = look.answer(other, thread);
                let is_main = thread.tid == other.pid && above.contains(&other.pid);
                match waits.answer {
                    WaitsFor::Card if is_main && nothing_ends(&waits) => {}
                    WaitsFor::Card | WaitsFor::Kernel => return None,
                    WaitsFor::Client | WaitsFor::Person
                        if above.contains(&other.pid) && !serves_the_job(other.pid, thread) =>
                    {
                        found.get_or_insert(waits);
                    }
                    _ => {}
                }
            }
        }
        found
    }

    /// A process and those above it, within the tree.
    fn ancestors(self, pid: u32) -> Vec<u32> {
        let mut line = vec![pid];
        while line.len() < DEEPEST
            && let Some(process) = line.last().and_then(|pid| self.probe.process(*pid))
            && !line.contains(&process.parent)
        {
            line.push(process.parent);
        }
        line
    }

    /// A child that stopped when the job did, in a wait that nothing ends, while its parent
    /// only looks now and then whether it has ended.
    fn stuck_child(self, process: &ProbedProcess) -> Option<Waits> {
        let children = self.probe.processes.iter();
        let children = children.filter(|p| p.parent == process.pid);
        let mut stuck = children.filter_map(|child| {
            let id = self.holder_of(child.pid)?;
            let thread = child.threads.iter().find(|t| t.tid == id.1)?;
            let ran = self.threads.ran(id)?;
            let waits = self.answer(child, thread);
            let stopped = self.now.since(ran) >= SAME_TIME;
            let with_the_job = stopped && self.holder.moved.since(ran) <= SAME_TIME;
            (with_the_job && nothing_ends(&waits)).then_some(waits)
        });
        stuck.next()
    }

    /// The thread of the same process that a futex may wait for: one that stopped when this
    /// one did and whose wait names somebody outside, or, between phases, ends by its own
    /// limit. Between phases it need not have stopped: a thread at its queue waits for orders
    /// that another one takes from outside.
    fn thread_behind(self, id: ThreadId, asked: &[ThreadId]) -> Option<Waits> {
        let (process, _) = thread_of(self.probe, id)?;
        let between = self.holder.between;
        let takes_orders = between && self.holder.id == id;
        let others = threads_but_the_agents(process).map(|t| ((process.pid, t.tid), t));
        let mut behind = others
            .filter(|(other, _)| !asked.contains(other))
            .filter_map(|(other, thread)| {
                let stopped = self.stopped_together(id, other);
                let waits = (stopped || takes_orders).then(|| self.answer(process, thread))?;
                let is_behind = match waits.answer {
                    WaitsFor::Peer | WaitsFor::Lock | WaitsFor::Person => true,
                    WaitsFor::Client => between && !serves_its_library(&thread.wait),
                    // another that wakes now and then beside the job would excuse it for ever
                    WaitsFor::Time => between && (stopped || self.is_timer_of_the_job(id, other)),
                    _ => false,
                };
                is_behind.then_some(waits)
            });
        behind.next()
    }

    /// Whether the job goes on when the wait of another thread ends: an event loop in the main
    /// thread waits until its next step, or a scheduler's thread until the next clip is due. A
    /// thread that woke up since the job rests and moved nothing reports beside it.
    fn is_timer_of_the_job(self, holder: ThreadId, other: ThreadId) -> bool {
        let limit = self.probes.longest_limit(other);
        let is_main = other == (self.holder.id.0, self.holder.id.0);
        let long = limit.is_some_and(|limit| limit >= LONG_TIMER)
            && self.waited.is_none_or(|waited| waited <= LONGEST_PAUSE)
            && !self.ran_later(other, holder);
        is_pause(self.holder, limit) && (is_main || long)
    }

    /// Whether a thread was seen to run after another had stopped.
    fn ran_later(self, thread: ThreadId, stopped: ThreadId) -> bool {
        let both = self.threads.ran(thread).zip(self.threads.ran(stopped));
        both.is_some_and(|(ran, stop)| ran.since(stop) > SAME_TIME)
    }

    /// Whether two threads stopped at about the same time, and neither has run since.
    fn stopped_together(self, id: ThreadId, other: ThreadId) -> bool {
        let both = self.threads.ran(other).zip(self.threads.ran(id));
        both.is_some_and(|(at, stopped)| {
            let apart = at.since(stopped).max(stopped.since(at));
            apart <= SAME_TIME && self.now.since(at) >= SAME_TIME
        })
    }

    /// The threads that stand for a process. Behind a connection to a server they are those
    /// that may answer a request: not the one that takes new clients, but where a worker whose
    /// job may be over waits for the orders of the page that started it.
    fn stand_ins(self, pid: u32, connected: bool) -> Vec<ThreadId> {
        let process = self.probe.process(pid).filter(|_| connected);
        let threads = process.into_iter().flat_map(threads_but_the_agents);
        let gives_orders =
            self.holder.between && self.ancestors(self.holder.id.0)[1..].contains(&pid);
        let answering =
            threads.filter(|t| gives_orders || !waits_for_client(&t.wait) || asks_outside(&t.wait));
        let answering: Vec<ThreadId> = answering.map(|t| (pid, t.tid)).collect();
        if answering.is_empty() {
            return self.holder_of(pid).into_iter().collect();
        }
        answering
    }

    /// The thread that stands for a process: the one that worked last, else its main thread.
    fn holder_of(self, pid: u32) -> Option<ThreadId> {
        let process = self.probe.process(pid)?;
        let ids = process.threads.iter().map(|t| (pid, t.tid));
        let worked = ids.filter_map(|id| Some((self.threads.worked(id)?, id)));
        let last = worked.max_by_key(|(at, id)| (*at, std::cmp::Reverse(*id)));
        last.map(|(_, id)| id)
            .or_else(|| process.main().map(|t| (pid, t.tid)))
    }

    /// The answer of a thread by itself.
    fn answer(self, process: &ProbedProcess, thread: &ProbedThread) -> Waits {
        let is_holder = self.holder.id == (process.pid, thread.tid);
        let waited = self.waited.filter(|_| is_holder);
        let load = self.load.filter(|_| is_holder);
        let longest = if is_holder {
            self.limit
        } else {
            self.probes.longest_limit((process.pid, thread.tid))
        };
        let (answer, within, detail) = match &thread.wait {
            _ if thread.state == 'D' => {
                let (call, channel) = names(&thread.wait);
                (WaitsFor::Kernel, channel.or(call), None)
            }
            // of another one only its work is known, which is read elsewhere
            Wait::Running if !is_holder => (WaitsFor::Unknown, Some("running"), None),
            // who only wakes up for a moment was met by chance
            Wait::Running if load.is_some_and(|load| load < SPINNING_LOAD) => {
                (WaitsFor::Unknown, Some("running"), None)
            }
            Wait::Running => (WaitsFor::Itself, Some("running"), None),
            Wait::Blocked { channel } => (WaitsFor::Kernel, channel.as_deref(), None),
            Wait::Unreadable { channel, .. } => {
                let by_channel = channel.as_deref().and_then(|c| by_channel(c, self.holder));
                let answer = by_channel.unwrap_or(WaitsFor::Unknown);
                (answer, channel.as_deref(), None)
            }
            Wait::Call {
                call,
                timeout_ms,
                on,
                channel,
            } => {
                let channel = channel.as_deref();
                let left = timeout_ms.map(Duration::from_millis);
                let timeout = left.map(|t| t.max(longest.unwrap_or(t)));
                let (answer, detail) =
                    by_call(self.holder, call, timeout, on, channel, self.probe, waited);
                (answer, Some(call.as_str()), detail)
            }
        };
        Waits {
            answer,
            pid: Some(process.pid),
            tid: Some(thread.tid),
            within: within.map(str::to_owned),
            detail,
            for_s: None,
        }
    }
}

/// Whether nothing ends a wait: a pause, or a poll of nothing without a time limit.
fn nothing_ends(waits: &Waits) -> bool {
    waits.detail.as_deref() == Some(NOTHING_ENDS_IT)
}

/// Whether a thread waits for another one, by a lock or an event of its process.
fn is_futex(wait: &Wait) -> bool {
    matches!(wait, Wait::Call { call, .. } if call.starts_with("futex"))
}

/// The threads of a process without that of our agent, which waits for us.
fn threads_but_the_agents(process: &ProbedProcess) -> impl Iterator<Item = &ProbedThread> {
    process.threads.iter().filter(|t| t.name != AGENT_THREAD)
}

/// Processes of the tree that a wait names.
fn processes_behind(wait: &Wait) -> impl Iterator<Item = u32> {
    let on: &[WaitTarget] = match wait {
        Wait::Call { on, .. } => on,
        Wait::Running | Wait::Blocked { .. } | Wait::Unreadable { .. } => &[],
    };
    on.iter().flat_map(|target| match target {
        WaitTarget::Pipe { ends } => ends.clone(),
        WaitTarget::Peer { inside, .. } => inside.iter().copied().collect(),
        WaitTarget::Process { pid } => pid.iter().copied().collect(),
        WaitTarget::Lock { holder, .. } => holder.iter().copied().collect(),
        _ => Vec::new(),
    })
}

/// Processes of the tree to which a wait has a connection.
fn connected_processes(wait: &Wait) -> Vec<u32> {
    let Wait::Call { on, .. } = wait else {
        return Vec::new();
    };
    let inside = on.iter().filter_map(|target| match target {
        WaitTarget::Peer { inside, .. } => *inside,
        _ => None,
    });
    inside.collect()
}

/// Whether a wait also ends with the answer of a server outside the tree.
fn asks_outside(wait: &Wait) -> bool {
    let outside = |target: &WaitTarget| {
        matches!(
            target,
            WaitTarget::Peer {
                inside: None,
                accepted: false,
                ..
            }
        )
    };
    matches!(wait, Wait::Call { on, .. } if on.iter().any(outside))
}

/// Whether a wait ends with any child of the process.
fn waits_for_any_child(wait: &Wait) -> bool {
    match wait {
        Wait::Call { on, .. } => on
            .iter()
            .any(|t| matches!(t, WaitTarget::Process { pid: None })),
        Wait::Running | Wait::Blocked { .. } | Wait::Unreadable { .. } => false,
    }
}

fn names(wait: &Wait) -> (Option<&str>, Option<&str>) {
    match wait {
        Wait::Running => (None, None),
        Wait::Blocked { channel } | Wait::Unreadable { channel, .. } => (None, channel.as_deref()),
        Wait::Call { call, channel, .. } => (Some(call), channel.as_deref()),
    }
}

/// Whether the lock that a thread waits for is held by nobody who lives.
pub(crate) fn lock_is_orphaned(wait: &Wait) -> bool {
    match wait {
        Wait::Call { on, .. } => on.iter().any(|t| {
            matches!(
                t,
                WaitTarget::Lock {
                    holder_is_dead: true,
                    ..
                }
            )
        }),
        Wait::Running | Wait::Blocked { .. } | Wait::Unreadable { .. } => false,
    }
}

/// Whether the bytes of the peer that a thread waits for cannot be counted.
pub(crate) fn peer_is_uncounted(wait: &Wait) -> bool {
    match wait {
        Wait::Call { on, .. } => on.iter().any(
            |t| matches!(t, WaitTarget::Peer { network, inside: None, .. } if network != "tcp"),
        ),
        Wait::Running | Wait::Blocked { .. } | Wait::Unreadable { .. } => false,
    }
}

#[cfg(test)]
#[path = "waits_tests.rs"]
mod tests;
