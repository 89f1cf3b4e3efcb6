//! Which results of checks on a base are stored, and under which key.

use std::collections::BTreeSet;
use std::time::Duration;

use towline_core::{BaselineMode, Check, CheckKind, CheckResult, Goal};

use super::values::{check_result, goal};
use crate::baseline::{is_of_the_base, key};

#[test]
fn the_key_changes_with_everything_that_decides_the_result() {
    let plain = || Goal { title: "a".into(), ..goal(1) };
    let changed = |change: fn(&mut Goal)| {
        let mut goal = plain();
        change(&mut goal);
        key(&goal, "c", "/bin", &[])
    };
    let token = "TOKEN".to_owned();
    let keys = [
        key(&plain(), "c", "/bin", &[]),
        key(&plain(), "d", "/bin", &[]),
        key(&plain(), "c", "/usr/bin", &[]),
        key(&plain(), "c", "/bin", &[&token]),
        changed(|goal| goal.workspace.base = towline_core::Commit::new("other")),
        changed(|goal| goal.workspace.repository = "/elsewhere".into()),
        changed(|goal| goal.workspace.setup = vec!["make".into()]),
        changed(|goal| goal.workspace.copy = vec![".env".into()]),
        changed(|goal| goal.checks[0].timeout = Duration::from_secs(1)),
        changed(|goal| goal.protect = vec!["tests/**".into()]),
    ];
    assert_eq!(BTreeSet::from(keys.clone()).len(), keys.len());
    let others = [
        changed(|goal| goal.id = super::values::goal(2).id),
        changed(|goal| goal.prompt = "Something else.".into()),
        changed(|goal| goal.baseline = BaselineMode::Red),
    ];
    assert!(others.iter().all(|other| *other == keys[0]), "the next goal reuses it");
    let judged = |prompt: &str| {
        let mut goal = Goal { prompt: prompt.into(), ..plain() };
        goal.checks[0].kind = CheckKind::Program { argv: vec!["judge".into()] };
        key(&goal, "c", "/bin", &[])
    };
    assert_ne!(judged("a"), judged("b"), "a program reads what is to be done");
}

#[test]
fn only_what_the_base_itself_decides_is_stored() {
    let result = |name: &str, met, exit_code, problem: Option<&str>| CheckResult {
        exit_code,
        problem: problem.map(str::to_owned),
        ..check_result(name, met)
    };
    let mut goal = goal(1);
    let kind = CheckKind::File { path: "CHANGES.md".into(), matches: None };
    goal.checks.push(Check { name: "changes".into(), kind, ..goal.checks[0].clone() });
    for (result, is_stored) in [
        (result("tests", true, Some(0), None), true),
        (result("tests", false, Some(1), None), true),
        (result("changes", false, None, Some("it does not exist")), true),
        (result("tests", false, Some(127), None), false),
        (result("tests", false, Some(126), None), false),
        (result("tests", false, None, Some("killed by signal 9")), false),
        (result("tests", false, Some(1), Some("timed out after 30m")), false),
        (result("setup", false, Some(1), None), false),
    ] {
        assert_eq!(is_of_the_base(&goal, std::slice::from_ref(&result)), is_stored, "{result:?}");
    }
}
