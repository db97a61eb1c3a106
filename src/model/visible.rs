//! Which cards a program is shown by its environment: `ROCR_VISIBLE_DEVICES`,
//! `HIP_VISIBLE_DEVICES`, `CUDA_VISIBLE_DEVICES`.
//!
//! ROCr takes its list first (set but empty: no card), HIP counts in what is left; an
//! empty list of HIP's is none, and `CUDA_VISIBLE_DEVICES` stands in for it. Each list
//! ends at its first invalid entry, so `-1` shows no card (ROCm: `amd_filter_device.cpp`,
//! `rocdevice.cpp`). CUDA takes an empty list for no card and counts by PCI address
//! where `CUDA_DEVICE_ORDER=PCI_BUS_ID` (CUDA C programming guide, environment variables).

use std::collections::BTreeMap;

use serde::Serialize;

use super::{GpuSample, Vendor};

const ROCR: &str = "ROCR_VISIBLE_DEVICES";
const HIP: &str = "HIP_VISIBLE_DEVICES";
const CUDA: &str = "CUDA_VISIBLE_DEVICES";
const ORDER: &str = "CUDA_DEVICE_ORDER";

/// Variables by name.
pub type Vars = BTreeMap<String, String>;

/// What the environment shows of the cards.
///
/// JSON: `"all"`, or an object with `these`, `nothing` or `unknown`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Visible {
    /// No variable says anything.
    All,
    /// These (positions in the list of cards), the program's first one first; never empty.
    These {
        /// Cards.
        cards: Vec<usize>,
        /// The variables with their values.
        by: String,
    },
    /// No card.
    Nothing {
        /// The variables with their values.
        by: String,
    },
    /// It cannot be told.
    Unknown {
        /// The variables with their values.
        by: String,
        /// Why, a fragment.
        why: &'static str,
    },
}

/// An entry of a list.
enum Entry {
    Is(usize),
    /// No such card: the list ends here.
    Invalid,
    Unknown(&'static str),
}

/// The UUID of a card, by which an entry may name it: `GPU-…`.
pub type UuidOf<'a> = &'a dyn Fn(&GpuSample) -> Option<String>;

/// The environment of a program: what the supervisor was given, what a profile adds,
/// and what an `env` before the command changes.
pub fn child_vars<'a>(
    exported: &Vars,
    profile: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    argv: &[String],
) -> Vars {
    let mut vars = exported.clone();
    for (name, value) in profile {
        change(&mut vars, name, value);
    }
    env_prefix(&mut vars, argv);
    vars
}

fn change(vars: &mut Vars, name: &str, value: Option<&str>) {
    match value {
        Some(value) => vars.insert(name.to_owned(), value.to_owned()),
        None => vars.remove(name),
    };
}

/// `env [-i] [-u NAME] [NAME=VALUE]… COMMAND`, also several in a row.
fn env_prefix(vars: &mut Vars, argv: &[String]) {
    let mut words = argv.iter().map(String::as_str);
    while words
        .next()
        .is_some_and(|w| w == "env" || w.ends_with("/env"))
    {
        let mut rest = words.clone();
        while let Some(word) = rest.next() {
            match word {
                "-" | "-i" | "--ignore-environment" => vars.clear(),
                "-u" | "--unset" => {
                    rest.next().map(|name| vars.remove(name));
                }
                "-C" | "--chdir" => {
                    rest.next();
                }
                // a command in one word is not taken apart
                _ if word.starts_with("-S") || word.starts_with("--split-string") => return,
                _ => {
                    let unset = word
                        .strip_prefix("--unset=")
                        .or_else(|| word.strip_prefix("-u"));
                    if let Some(name) = unset {
                        vars.remove(name);
                    } else if word.starts_with('-') {
                        // a flag that changes no variable
                    } else if let Some((name, value)) = word.split_once('=') {
                        change(vars, name, Some(value));
                    } else {
                        break;
                    }
                }
            }
            words = rest.clone();
        }
    }
}

/// What these variables show of the cards.
pub fn visible(cards: &[GpuSample], vars: &Vars, uuid: UuidOf<'_>) -> Visible {
    let set = |name: &str| vars.get(name).filter(|v| !v.is_empty());
    let any = |vendor| cards.iter().any(|c| c.vendor == vendor);
    let hips = vars.contains_key(ROCR) || set(HIP).is_some();
    if any(Vendor::Amd) && (hips || !any(Vendor::Nvidia)) {
        return by_rocm(cards, vars, uuid);
    }
    match vars.get(CUDA) {
        Some(list) if any(Vendor::Nvidia) => by_cuda(cards, vars, list, uuid),
        _ => Visible::All,
    }
}

fn by_rocm(cards: &[GpuSample], vars: &Vars, uuid: UuidOf<'_>) -> Visible {
    let rocr = vars.get(ROCR).map(|list| (ROCR, list));
    let set = |name: &'static str| vars.get(name).filter(|v| !v.is_empty()).map(|v| (name, v));
    let hip = set(HIP).or_else(|| set(CUDA));
    let lists: Vec<_> = rocr.into_iter().chain(hip).collect();
    if lists.is_empty() {
        return Visible::All;
    }
    let said: Vec<String> = lists.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let by = said.join(" and ");
    if lists.iter().any(|(_, list)| names_none(list)) {
        return Visible::Nothing { by };
    }
    let Some(mut shown) = in_order(cards, Vendor::Amd) else {
        let why = "the order in which HIP counts the cards is not known";
        return Visible::Unknown { by, why };
    };
    for (name, list) in lists {
        let entry = |entry: &str| {
            // HIP takes a blank for a part of the number
            if name == ROCR || entry.trim() == entry {
                let entry = entry.trim();
                match (name == ROCR, uuid_like(entry)) {
                    (true, true) => by_uuid(cards, &shown, entry, uuid),
                    (false, true) => by_hip_uuid(cards, &shown, entry, uuid),
                    (_, false) => by_number(&shown, entry),
                }
            } else {
                Entry::Invalid
            }
        };
        shown = match take(list, entry) {
            Ok(taken) => taken,
            Err(why) => return Visible::Unknown { by, why },
        };
    }
    shown_by(shown, by)
}

fn by_cuda(cards: &[GpuSample], vars: &Vars, list: &str, uuid: UuidOf<'_>) -> Visible {
    let by = format!("{CUDA}={list}");
    if names_none(list) {
        return Visible::Nothing { by };
    }
    let by_address = vars.get(ORDER).is_some_and(|o| o == "PCI_BUS_ID");
    let order = if by_address {
        let mut all = of(cards, Vendor::Nvidia);
        all.sort_by_key(|i| &cards[*i].id);
        Some(all)
    } else {
        in_order(cards, Vendor::Nvidia)
    };
    let all = of(cards, Vendor::Nvidia);
    let entry = |entry: &str| {
        let entry = entry.trim();
        if entry.starts_with("MIG-") {
            return Entry::Unknown("a slice of a card (MIG) is named");
        }
        if entry.starts_with("GPU-") {
            return by_uuid(cards, &all, entry, uuid);
        }
        match &order {
            Some(order) => by_number(order, entry),
            None => Entry::Unknown(
                "CUDA puts the fastest card first, unless CUDA_DEVICE_ORDER=PCI_BUS_ID",
            ),
        }
    };
    match take(list, entry) {
        Ok(shown) => shown_by(shown, by),
        Err(why) => Visible::Unknown { by, why },
    }
}

fn shown_by(cards: Vec<usize>, by: String) -> Visible {
    if cards.is_empty() {
        Visible::Nothing { by }
    } else {
        Visible::These { cards, by }
    }
}

/// Whether the first entry is no card on any machine: `-1`, an empty list.
fn names_none(list: &str) -> bool {
    let first = list.split(',').next().unwrap_or_default().trim();
    let uuid = first.to_ascii_uppercase();
    let is_number = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
    !is_number && !uuid.starts_with("GPU-") && !uuid.starts_with("MIG-")
}

/// Entries up to the first invalid one, each card once.
fn take(list: &str, entry: impl Fn(&str) -> Entry) -> Result<Vec<usize>, &'static str> {
    let mut taken = Vec::new();
    for word in list.split(',') {
        match entry(word) {
            Entry::Is(card) if !taken.contains(&card) => taken.push(card),
            Entry::Is(_) => {}
            Entry::Invalid => break,
            Entry::Unknown(why) => return Err(why),
        }
    }
    Ok(taken)
}

/// Whether an entry is a UUID to ROCr and HIP.
fn uuid_like(entry: &str) -> bool {
    entry.to_ascii_uppercase().starts_with("GPU-")
}

/// An index, exactly as its decimal form: `01` and `+1` are none (`rocdevice.cpp`).
fn by_number(shown: &[usize], entry: &str) -> Entry {
    let number = entry.parse::<usize>().ok();
    let exact = number.filter(|n| n.to_string() == entry);
    let card = exact.and_then(|n| shown.get(n));
    card.map_or(Entry::Invalid, |card| Entry::Is(*card))
}

const UUIDS_UNREAD: &str = "a card is named by its UUID, and those of the cards cannot be read";

/// The UUIDs of these cards; `None`: one cannot be read.
fn uuids(cards: &[GpuSample], shown: &[usize], uuid: UuidOf<'_>) -> Option<Vec<(usize, String)>> {
    let all = shown.iter().map(|i| Some((*i, uuid(&cards[*i])?)));
    all.collect()
}

/// HIP takes the first card whose UUID contains the entry, upper and lower case told
/// apart (`rocdevice.cpp`, `Device::init`).
fn by_hip_uuid(cards: &[GpuSample], shown: &[usize], entry: &str, uuid: UuidOf<'_>) -> Entry {
    let Some(known) = uuids(cards, shown, uuid) else {
        return Entry::Unknown(UUIDS_UNREAD);
    };
    let fits = known.iter().find(|(_, u)| u.contains(entry));
    fits.map_or(Entry::Invalid, |(card, _)| Entry::Is(*card))
}

/// ROCr and CUDA: a UUID, or the beginning of one that fits a single card.
fn by_uuid(cards: &[GpuSample], shown: &[usize], entry: &str, uuid: UuidOf<'_>) -> Entry {
    let wanted = entry.to_ascii_lowercase();
    let Some(known) = uuids(cards, shown, uuid) else {
        return Entry::Unknown(UUIDS_UNREAD);
    };
    let mut fit = known
        .iter()
        .filter(|(_, u)| u.to_ascii_lowercase().starts_with(&wanted));
    match (fit.next(), fit.next()) {
        (Some((card, _)), None) => Entry::Is(*card),
        _ => Entry::Invalid,
    }
}

fn of(cards: &[GpuSample], vendor: Vendor) -> Vec<usize> {
    let ours = cards.iter().enumerate().filter(|(_, c)| c.vendor == vendor);
    ours.map(|(i, _)| i).collect()
}

/// A vendor's cards in the order in which its runtime counts them; `None`: not known.
/// A card that has no place there, while another has one, is not in the runtime's list.
fn in_order(cards: &[GpuSample], vendor: Vendor) -> Option<Vec<usize>> {
    let all = of(cards, vendor);
    let mut placed: Vec<(u32, usize)> = all
        .iter()
        .filter_map(|i| Some((cards[*i].compute_index?, *i)))
        .collect();
    if placed.is_empty() {
        return (all.len() == 1).then_some(all);
    }
    placed.sort_unstable();
    let gapless = placed
        .iter()
        .zip(0_u32..)
        .all(|((place, _), n)| *place == n);
    gapless.then(|| placed.into_iter().map(|(_, i)| i).collect())
}
