//! An open Find: what MIOpen's own lines say of it so far.

use serde::{Deserialize, Serialize};

use super::convolution::{ConvLayout, Convolution};
use super::progress::FindMark;
use super::time::Mono;

/// The figures of one line about a Find. What the line does not say is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindFigures {
    /// The solver that was timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solver: Option<String>,
    /// Its time, ms a launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    /// The best time so far, ms a launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_ms: Option<f64>,
    /// Configurations that were tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<u64>,
    /// Of how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Runs that are left, where MIOpen counts down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
    /// Seconds that the tuning still takes, by its own estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta_s: Option<f64>,
}

/// Memory that a solver wants for itself, and what the program gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Which solver.
    pub solver: String,
    /// Bytes that it needs.
    pub required: u64,
    /// Bytes that it was given.
    pub provided: u64,
}

/// Which MIOpen this is, as far as the console told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MiopenRelease {
    /// Major and minor number of ROCm: `[7, 1]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rocm: Option<[u32; 2]>,
    /// Version of MIOpen itself: `[3, 5, 1]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miopen: Option<[u32; 3]>,
}

impl MiopenRelease {
    /// By the version of HIP, whose first two numbers are those of ROCm: `7.1.25424`.
    pub fn of_hip(version: &str) -> Self {
        let mut numbers = version.split('.').map(|n| n.parse().ok());
        let rocm = numbers.next().flatten().zip(numbers.next().flatten());
        Self {
            rocm: rocm.map(|(major, minor)| [major, minor]),
            miopen: None,
        }
    }

    /// Takes over what another line told.
    pub fn learn(&mut self, told: Self) {
        self.rocm = told.rocm.or(self.rocm);
        self.miopen = told.miopen.or(self.miopen);
    }
}

/// A Find that is open.
#[derive(Debug, Clone, PartialEq)]
pub struct FindState {
    /// What MIOpen calls the convolution: driver arguments, or key of its database.
    pub key: String,
    /// The same taken apart; absent where it was not told.
    pub convolution: Option<Convolution>,
    /// When it began.
    pub opened: Mono,
    /// Its last advance: another solver, another figure.
    pub advanced: Mono,
    /// The solver that is timed or tuned now.
    pub solver: Option<String>,
    /// Since when.
    pub solver_since: Mono,
    /// Time of the present solver, ms; absent: not timed yet.
    pub ms: Option<f64>,
    /// Best time of any solver so far, ms.
    pub best_ms: Option<f64>,
    /// Solvers that were visited.
    pub solvers: u32,
    /// Tuning: configurations that were tried.
    pub tried: Option<u64>,
    /// Tuning: of how many.
    pub total: Option<u64>,
    /// Tuning: runs that are left.
    pub left: Option<u64>,
    /// Tuning: seconds to go, as of [`FindState::advanced`].
    pub eta_s: Option<f64>,
    /// The last advance in words.
    pub detail: Option<String>,
    /// The last solver that had too little workspace.
    pub workspace: Option<Workspace>,
}

impl FindState {
    fn new(key: &str, now: Mono) -> Self {
        Self {
            key: key.to_owned(),
            convolution: None,
            opened: now,
            advanced: now,
            solver: None,
            solver_since: now,
            ms: None,
            best_ms: None,
            solvers: 0,
            tried: None,
            total: None,
            left: None,
            eta_s: None,
            detail: None,
            workspace: None,
        }
    }

    /// Folds a mark into what is open, if anything is.
    pub fn fold(open: &mut Option<Self>, now: Mono, mark: &FindMark) {
        match mark {
            FindMark::Opened { key } => *open = Some(Self::new(key, now)),
            FindMark::Closed { key } => {
                let same = |f: &Self| key.is_empty() || &f.key == key;
                if open.as_ref().is_some_and(same) {
                    *open = None;
                }
            }
            // older MIOpen prints solver and search lines without saying that a Find
            // began: the first of them opens it
            FindMark::Solver { name } => open
                .get_or_insert_with(|| Self::new(FindMark::UNNAMED, now))
                .visit(name, now),
            _ => {
                if let Some(find) = open {
                    find.take(now, mark);
                }
            }
        }
    }

    fn take(&mut self, now: Mono, mark: &FindMark) {
        match mark {
            FindMark::Advance { detail } => {
                if self.detail.as_ref() != Some(detail) {
                    self.advanced = now;
                }
                self.detail = Some(detail.clone());
            }
            FindMark::Convolution(c) => self.convolution = Some(*c),
            FindMark::Figures(f) => self.figures(f),
            FindMark::Workspace(w) => self.workspace = Some(w.clone()),
            FindMark::Opened { .. }
            | FindMark::Closed { .. }
            | FindMark::Solver { .. }
            | FindMark::Mode { .. }
            | FindMark::Release(_) => {}
        }
    }

    fn visit(&mut self, name: &str, now: Mono) {
        if self.solver.as_deref() == Some(name) {
            return;
        }
        self.solver = Some(name.to_owned());
        self.solver_since = now;
        self.advanced = now;
        self.solvers = self.solvers.saturating_add(1);
        (self.ms, self.eta_s) = (None, None);
        (self.tried, self.total, self.left) = (None, None, None);
    }

    fn figures(&mut self, f: &FindFigures) {
        let own = f.solver.is_none() || f.solver == self.solver;
        if own {
            self.ms = f.ms.or(self.ms);
        }
        let times = [self.best_ms, f.best_ms, f.ms];
        self.best_ms = times.into_iter().flatten().reduce(f64::min);
        self.tried = f.tried.or(self.tried);
        self.total = f.total.or(self.total);
        self.left = f.left.or(self.left);
        self.eta_s = f.eta_s.or(self.eta_s);
    }

    /// Whether MIOpen's slowest kernel, which every shape fits, is at work.
    pub fn is_naive(&self) -> bool {
        let name = self.solver.as_deref().unwrap_or_default();
        name.to_lowercase().contains("naive")
    }

    /// Whether the present solver is tuned: configuration after configuration is timed.
    pub const fn is_tuning(&self) -> bool {
        self.tried.is_some() || self.left.is_some() || self.eta_s.is_some()
    }

    /// The convolution in words, or its key.
    pub fn what(&self) -> String {
        self.convolution
            .map_or_else(|| self.key.clone(), |c| c.to_string())
    }

    /// The line to reproduce it with; absent: MIOpen did not say which convolution.
    pub fn driver_line(&self) -> Option<String> {
        if let Some(c) = &self.convolution
            && c.layout != ConvLayout::Other
        {
            return Some(c.driver_line());
        }
        // driver arguments that we cannot take apart are MIOpen's own all the same; what
        // is meant for a shell holds nothing but flags and their values
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.');
        let args = self.key.starts_with("conv") && self.key.contains(" -");
        (args && self.key.chars().all(plain)).then(|| format!("MIOpenDriver {} -t 1", self.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solver(name: &str) -> FindMark {
        FindMark::Solver {
            name: name.to_owned(),
        }
    }

    fn folded(marks: &[FindMark]) -> Option<FindState> {
        let mut open = None;
        for (at, mark) in (0..).zip(marks) {
            FindState::fold(&mut open, Mono::from_secs(at), mark);
        }
        open
    }

    #[test]
    fn a_solver_of_its_own_begins_with_no_figures_and_keeps_the_best() {
        let figures = |ms, best_ms| {
            FindMark::Figures(FindFigures {
                ms: Some(ms),
                best_ms,
                tried: Some(12),
                total: Some(45),
                eta_s: Some(90.0),
                ..FindFigures::default()
            })
        };
        let open = FindMark::Opened {
            key: "k".to_owned(),
        };
        let mut marks = vec![open, solver("A"), figures(41.0, None), solver("B")];
        let find = folded(&marks).unwrap();
        assert_eq!((find.ms, find.best_ms, find.solvers), (None, Some(41.0), 2));
        assert!(!find.is_tuning());
        assert_eq!(find.advanced, Mono::from_secs(3));
        marks.push(figures(4.5, Some(4.2)));
        let find = folded(&marks).unwrap();
        assert_eq!((find.ms, find.best_ms), (Some(4.5), Some(4.2)));
        assert!(find.is_tuning());
        let closed = FindMark::Closed { key: String::new() };
        marks.push(closed);
        assert_eq!(folded(&marks), None);
    }

    #[test]
    fn a_time_of_another_solver_is_not_the_present_ones() {
        let of = FindMark::Figures(FindFigures {
            solver: Some("GemmFwdRest".to_owned()),
            ms: Some(3.0),
            ..FindFigures::default()
        });
        let find = folded(&[solver("ConvDirectNaiveConvFwd"), of]).unwrap();
        assert_eq!((find.ms, find.best_ms), (None, Some(3.0)));
        assert!(find.is_naive());
        assert_eq!(find.key, FindMark::UNNAMED);
        assert_eq!(find.driver_line(), None);
    }

    #[test]
    fn only_flags_and_values_are_offered_to_a_shell() {
        let line = |key: &str| {
            let key = key.to_owned();
            folded(&[FindMark::Opened { key }]).unwrap().driver_line()
        };
        assert_eq!(
            line("convfp16 -n 1 --unknown 7").as_deref(),
            Some("MIOpenDriver convfp16 -n 1 --unknown 7 -t 1")
        );
        assert_eq!(line("convfp16 -n 1; reboot"), None);
        assert_eq!(line("conv -n $(reboot)"), None);
        assert_eq!(line("96-6-482-834-3x3x3-F"), None);
    }
}
