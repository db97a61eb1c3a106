//! `crawl`: the bar at hand goes on at less than a fifth of its own earlier pace, and
//! nothing explains it.

use crate::detect::facts::Facts;
use crate::detect::pace::Bar;
use crate::detect::thresholds::secs;

use super::{Definition, Depth, rule, steps};
use crate::detect::rule::{Check, Grade, Signs};
use crate::model::{ActionId, Severity, VerdictId};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "Advances at less than a fifth of its own earlier pace, cause not established.",
    severity: Severity::Warn,
    job_may_live: true,
    depth: Depth::Standstill,
    steps: |phase, facts| {
        if steps::is_decode(phase) || facts.naive {
            &[(ActionId::FastFind, 1), (ActionId::TiledVae, 2)]
        } else {
            steps::WAIT
        }
    },
    rules: &[rule(150, check)],
    ..Definition::fault()
};

fn check(f: &Facts<'_>) -> Check {
    let Some(s) = f.pace.crawl(f.now, f.t) else {
        let usual = f.pace.bar().map(Bar::usual);
        return match usual {
            None => Check::clear("no steps are counted"),
            Some(None) => Check::clear("no usual pace of these steps yet"),
            Some(Some(usual)) => Check::Clear(
                format!(
                    "no step takes {} times its {:.1} s",
                    f.t.crawl_factor, usual.step_s
                )
                .into(),
            ),
        };
    };
    let usual = s.usual;
    if f.find.is_some() || f.compiling || f.works_elsewhere() {
        return Check::clear("a search, a compiler or a step of the CPU explains the pace");
    }
    let signs = Signs {
        verdict: VerdictId::Crawl,
        grade: Grade::Slow,
        since: s.since,
        limit: secs(f.t.crawl_s).mul_f64(f.soft_ratchet(VerdictId::Crawl)),
        sentence: format!(
            "{} goes on, but a step takes {:.0} s where {:.1} s were usual: {:.0} times as long, and nothing read here says why",
            f.phase,
            s.step_s,
            usual.step_s,
            s.factor()
        ),
        numbers: vec![
            format!("{:.1} s a step, usually {:.1} s", s.step_s, usual.step_s),
            format!("{:.0} slow steps have ended", s.ended),
        ],
        ruled_out: vec![
            "a larger job: the same steps took less in this run".to_owned(),
            "memory overflow, swapping, heat: their readings say nothing of it".to_owned(),
        ],
        confidence: 0.8,
        cites: Vec::new(),
    };
    let steps = s.ended + f64::from(u8::from(s.open));
    if steps < f.t.crawl_steps_count {
        return Check::NotYet(signs);
    }
    signs.unless_granted(f)
}
