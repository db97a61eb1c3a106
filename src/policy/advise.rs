//! What is told where nothing is done by itself: a process that is not ours is neither
//! ended nor started again.

use crate::model::event::{Choice, Decision};
use crate::model::{ActionId, Rung, Verdict};

use super::decide::{Answer, Standing, advice, counsel};
use super::remedy::remedy;
use crate::detect::verdicts::RemedyFacts;

/// The advice about a fault of a process that somebody else started: the rung that
/// would answer it, as the user would take it by hand.
pub fn advise(standing: &Standing<'_>, verdict: &Verdict, attempt: u32) -> Answer {
    let Standing {
        plan,
        position,
        in_flight,
        ..
    } = *standing;
    let offer = position.next(plan, verdict.id, verdict.phase, in_flight);
    let rung = offer
        .rung
        .as_ref()
        .and_then(|id| plan.ladder.iter().find(|r| r.id == *id));
    let what = rung.map_or_else(
        || {
            let asked = || remedy(verdict, &RemedyFacts::default());
            let remedy = verdict.remedy.clone().unwrap_or_else(asked);
            match remedy.action {
                ActionId::None => "nothing has to be done".to_owned(),
                _ => counsel(&remedy).to_owned(),
            }
        },
        by_hand,
    );
    let why = format!(
        "{} in {}: the process is not ours, nothing is done to it; advice: {what}",
        verdict.id, verdict.phase
    );
    Answer {
        decision: Decision {
            attempt,
            verdict: verdict.id,
            choice: Choice::Advise,
            why,
            skipped: offer.skipped,
            restarts_left: 0,
        },
        rung: None,
    }
}

/// A rung in the words of somebody who starts the program again.
fn by_hand(rung: &Rung) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (name, value) in &rung.env {
        parts.push(match value {
            Some(value) => format!("{name}={value}"),
            None => format!("{name} not set"),
        });
    }
    if !rung.args.is_empty() {
        parts.push(format!("the arguments `{}`", rung.args.join(" ")));
    }
    parts.extend(rung.settings.iter().map(|(k, v)| format!("{k} = {v}")));
    let with = if parts.is_empty() {
        String::new()
    } else {
        format!(" with {}", parts.join(", "))
    };
    format!(
        "stop it and start it again{with} (rung {}: {})",
        rung.id,
        advice(rung.action)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Answers, Health, Mono, Phase, Plan, RungId, Tier, VerdictId};
    use crate::policy::{BudgetState, InFlight, Position};

    fn advised(plan: &Plan) -> Answer {
        let standing = Standing {
            plan,
            position: &Position::default(),
            budget: &BudgetState::default(),
            in_flight: &InFlight::default(),
            recovered: None,
            kept: false,
        };
        advise(&standing, &hang(), 1)
    }

    fn hang() -> Verdict {
        Verdict {
            id: VerdictId::SilentHang,
            health: Health::Hung,
            phase: Phase::VaeDecode,
            section: None,
            confidence: 0.9,
            onset: Mono::ZERO,
            sentence: String::new(),
            findings: Vec::new(),
            ruled_out: Vec::new(),
            considered: Vec::new(),
            remedy: None,
            action: ActionId::FastFind,
            next: None,
            questions: None,
            cause: None,
        }
    }

    #[test]
    fn the_rung_is_told_with_the_environment_to_set() {
        let plan = Plan {
            ladder: vec![Rung {
                id: RungId("fast_find".to_owned()),
                action: ActionId::FastFind,
                tier: Tier::T1,
                answers: Answers::These(vec![VerdictId::SilentHang]),
                env: [
                    ("MIOPEN_FIND_MODE".to_owned(), Some("FAST".to_owned())),
                    ("MIOPEN_FIND_ENFORCE".to_owned(), None),
                ]
                .into(),
                phases: Vec::new(),
                args: Vec::new(),
                settings: std::collections::BTreeMap::new(),
                cost: None,
                source: None,
                alters_result: None,
                unavailable: None,
                acts: crate::model::Acts::default(),
            }],
            ..Plan::default()
        };
        let answer = advised(&plan);
        assert_eq!(answer.rung, None);
        assert_eq!(answer.decision.choice, Choice::Advise);
        let why = &answer.decision.why;
        assert!(why.contains("MIOPEN_FIND_MODE=FAST"), "{why}");
        assert!(why.contains("MIOPEN_FIND_ENFORCE not set"), "{why}");
        assert!(why.contains("nothing is done to it"), "{why}");
    }

    #[test]
    fn without_a_rung_the_default_action_is_the_advice() {
        let answer = advised(&Plan::default());
        let why = &answer.decision.why;
        assert!(why.contains(advice(ActionId::FastFind)), "{why}");
    }
}
