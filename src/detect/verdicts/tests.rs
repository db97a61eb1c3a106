use super::*;

#[test]
fn every_definition_is_whole() {
    for id in VerdictId::ALL {
        let d = id.definition();
        assert!(d.meaning.ends_with('.'), "{id}: {}", d.meaning);
        assert_eq!(id.is_no_fault(), d.severity == Severity::Info, "{id}");
        let (action, tier) = (d.steps)(Phase::Unknown, &RemedyFacts::default())[0];
        if id.is_no_fault() {
            assert!(
                matches!(action, ActionId::None | ActionId::Wait),
                "{id}: {action}"
            );
            assert_eq!(d.restart, Restart::Never, "{id}");
            assert_eq!(d.wants_rung, None, "{id}");
        } else {
            assert_ne!(action, ActionId::None, "{id}");
            assert_eq!(
                tier == 4,
                d.needs_the_user() && !is_of_a_living_job(*id),
                "{id}: who needs the user says so"
            );
        }
        if d.wants_rung.is_some() {
            assert!(!d.needs_the_user(), "{id}: a rung that is never taken");
        }
    }
}

/// Advice about a job that goes on, or a result that is there: nothing is restarted for it.
fn is_of_a_living_job(id: VerdictId) -> bool {
    use VerdictId::{Crawl, NanOutput, Throttled};
    matches!(id, Crawl | NanOutput | Throttled)
}

#[test]
fn rules_have_an_order() {
    let orders: Vec<u8> = RULES.iter().map(|r| r.order).collect();
    let mut once = orders.clone();
    once.dedup();
    assert_eq!(orders, once, "two rules of one place");
    let last = RULES.last().map(|r| r.verdict);
    assert_eq!(last, Some(VerdictId::Crawl), "its cause is not established");
}

/// The tables of the documents. `UPDATE_DOCS=1` writes them anew.
#[test]
fn the_documents_have_the_table_of_the_catalogue() {
    let restart = |d: &Definition| match d.restart {
        Restart::Never => "no",
        Restart::Always => "yes",
        Restart::AfterFailure => "after a failure",
        Restart::AfterEnd => "after a failure or a standstill",
        Restart::AfterRecovery => "once the card came back",
        Restart::WithKeptJob => "where the job can be sent again",
    };
    let row = |id: &VerdictId| {
        let d = id.definition();
        format!(
            "| `{id}` | {} | {} | {} |\n",
            d.severity,
            d.meaning,
            restart(d)
        )
    };
    let rows: String = VerdictId::ALL.iter().map(row).collect();
    let table = format!(
        "\n| word | severity | meaning | restart unasked |\n| --- | --- | --- | --- |\n{rows}\n"
    );
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    for (file, from, to) in [
        ("docs/events.md", "### Verdicts\n", "### Phases"),
        ("tests/cases/README.md", "## Verdicts\n", "## Phases"),
    ] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let doc = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = doc.split_once(from).unwrap();
        let (_, after) = rest.split_once(to).unwrap();
        let made = format!("{before}{from}{table}{to}{after}");
        if update {
            std::fs::write(&path, &made).unwrap();
        }
        assert!(
            doc == made || update,
            "{file} differs from the catalogue: UPDATE_DOCS=1 writes it anew"
        );
    }
}
