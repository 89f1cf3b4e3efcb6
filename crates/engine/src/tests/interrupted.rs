//! What the log has of a verdict that was interrupted because its engine was killed.

use jiff::Timestamp;
use towline_core::{Check, CheckProcess, Checkout, Commit, Envelope, Event, Source};

use super::values::{check_result, goal, verdict};
use crate::interrupted::interrupted;

fn process(number: usize) -> CheckProcess {
    CheckProcess {
        directory: format!("{number}-tests-0123456789abcdef0123456789abcdef"),
        pid: 7,
        start_time: 8,
        commit: Commit::new("c1"),
        checkout: Checkout::Clean,
        copies: String::new(),
    }
}

fn started(name: &str, number: usize) -> Event {
    Event::CheckStarted { name: name.into(), process: Some(process(number)) }
}

fn finished(name: &str, met: bool) -> Event {
    Event::CheckFinished { result: check_result(name, met) }
}

/// The number of the check that is adopted, the results before it, and the second it was started in.
type Found = (String, Vec<(String, bool)>, u64);

fn found(events: Vec<Event>) -> Option<Found> {
    let at = |seconds: i64| Timestamp::from_second(seconds).expect("a time");
    let envelope = |(event, second)| Envelope::new(goal(1).id, at(second), Source::Towline, event);
    let events: Vec<Envelope> = events.into_iter().zip(1..).map(envelope).collect();
    let checks =
        ["build", "tests", "lint"].map(|name| Check { name: name.into(), ..goal(1).checks[0].clone() });
    let found = interrupted(&events, &checks)?;
    let results = found.results.into_iter().map(|result| (result.name, result.met)).collect();
    let number = found.process.directory.split_once('-').expect("a number").0.to_owned();
    Some((number, results, found.started_at_ms / 1000))
}

#[test]
fn a_check_that_has_begun_and_not_ended_is_found_with_the_results_before_it() {
    let claimed = || Event::Claimed { worker: "w2".into(), models: Default::default(), workspace: None };
    let notice = || Event::Notice { text: "the store is back".into() };
    let setup = || [Event::CheckStarted { name: "setup".into(), process: None }, finished("setup", true)];
    let results = |names: &[(&str, bool)]| -> Vec<(String, bool)> {
        names.iter().map(|(name, met)| ((*name).to_owned(), *met)).collect()
    };
    let first = || [setup().to_vec(), vec![started("build", 1)]].concat();
    assert_eq!(found(first()), Some(("1".into(), vec![], 3)));
    let mut installing = process(1);
    installing.directory = "setup-2-0123456789abcdef0123456789abcdef".into();
    let setting_up = Event::CheckStarted { name: "setup".into(), process: Some(installing) };
    let again = [first(), vec![finished("build", true), claimed(), setup()[0].clone(), setting_up]].concat();
    assert_eq!(found(again), Some(("setup".into(), vec![], 7)), "results of another checkout do not count");
    let second = || [first(), vec![finished("build", false), started("tests", 2)]].concat();
    let before = results(&[("build", false)]);
    assert_eq!(found(second()), Some(("2".into(), before.clone(), 5)));
    let mut later = [second(), vec![notice(), claimed(), claimed()]].concat();
    assert_eq!(found(later.clone()), Some(("2".into(), before, 5)));
    // Adopted once, and interrupted again.
    later.extend([finished("tests", true), started("lint", 3)]);
    let before = results(&[("build", false), ("tests", true)]);
    assert_eq!(found(later.clone()).map(|found| found.1), Some(before));
    // Run again from the start.
    later.extend([claimed(), started("build", 1)]);
    assert_eq!(found(later).map(|found| found.1), Some(vec![]));
}

#[test]
fn nothing_is_adopted_where_no_check_was_running_or_the_log_is_not_as_expected() {
    let unknown = Event::CheckStarted { name: "build".into(), process: None };
    let begun = || vec![started("build", 1), finished("build", true), started("tests", 2)];
    for after in [
        finished("tests", true),
        verdict("t1", false),
        Event::ChecksFailed { error: "no space".into() },
        Event::Stopped,
        unknown.clone(),
    ] {
        assert_eq!(found([begun(), vec![after.clone()]].concat()), None, "{after:?}");
    }
    assert_eq!(found(vec![]), None);
    assert_eq!(found(vec![started("tests", 2)]), None, "a result is missing");
    assert_eq!(found(vec![finished("lint", true), started("tests", 2)]), None);
    assert_eq!(found(vec![finished("build", true), Event::Stopped, started("tests", 2)]), None);
    assert_eq!(found(vec![started("tests", 0)]), None);
    assert_eq!(found(vec![started("tests", 9)]), None);
}
