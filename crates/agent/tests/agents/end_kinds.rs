//! Each class of end with the recordings that show it, protocol by protocol.

use std::collections::BTreeMap;

use towline_agent::Kind;
use towline_core::{End, EndKind};

use crate::{command, recorded};

/// How the recordings of each protocol end, by its name.
fn protocols() -> Vec<(&'static str, Vec<(String, End)>)> {
    let mut protocols = Vec::new();
    // The built-in agent has the protocol of another kind.
    for recorded in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Builtin).filter_map(recorded) {
        let ends = recorded.all().into_iter().map(|recording| (recording.name.clone(), recording.play().1));
        protocols.push((recorded.name, ends.collect()));
    }
    protocols.push(("command", command::recorded_ends()));
    protocols
}

/// Why no recording of a protocol ends in this class.
fn why_none(protocol: &str, kind: EndKind) -> Option<&'static str> {
    match (protocol, kind) {
        (_, EndKind::Asked | EndKind::Slept | EndKind::PermissionDenied) => {
            Some("the turn completes; Towline reads it from the messages and actions in it")
        }
        (
            _,
            EndKind::TimedOut
            | EndKind::Cancelled
            | EndKind::OverBudget
            | EndKind::Interrupted
            | EndKind::OutputLimit,
        ) => Some("caused by Towline, whatever the bytes are"),
        (_, EndKind::Lost) => Some("there is no record of the process's end, whatever the bytes are"),
        ("codex" | "acp" | "gemini" | "command", EndKind::SpawnFailed) => {
            Some("there is no process, so there are no bytes")
        }
        ("codex", EndKind::MaxBudget) => Some(
            "read from `sessionBudgetExceeded`, which the app server's schema has and a plain account never sends; \
             shown in codex/classify/tests.rs",
        ),
        ("claude" | "gemini", EndKind::Refused) => Some(
            "read from the status 400; shown in classify/tests.rs, and by the conformance suite with the real CLI",
        ),
        ("codex", EndKind::MaxTurns) => Some("the app server has no cap on turns"),
        ("acp", EndKind::MaxTurns) => Some(
            "read from `max_turn_requests`, which the protocol has and neither recorded agent sends; shown in \
             acp/classify/tests.rs",
        ),
        ("gemini", EndKind::MaxBudget) => Some("the CLI has no cap on cost"),
        ("acp", EndKind::MaxBudget) => Some("the protocol has no cap on cost"),
        (
            "command",
            EndKind::ServerError
            | EndKind::Auth
            | EndKind::ContextOverflow
            | EndKind::ResumeRefused
            | EndKind::MaxTurns
            | EndKind::MaxBudget
            | EndKind::Declined
            | EndKind::Refused,
        ) => Some("text of any kind and an exit code do not distinguish it from a crash"),
        _ => None,
    }
}

#[test]
fn every_class_has_a_recording_in_every_protocol_or_a_reason_why_not() {
    let mut listed = String::new();
    for (protocol, recorded) in protocols() {
        let mut by_kind: BTreeMap<EndKind, Vec<String>> = BTreeMap::new();
        for (name, end) in recorded {
            by_kind.entry(end.kind()).or_default().push(name);
        }
        listed += &format!("{protocol}\n");
        for class in EndKind::all() {
            let shown = match (by_kind.remove(&class.kind), why_none(protocol, class.kind)) {
                (Some(names), None) => names.join(", "),
                (None, Some(reason)) => format!("({reason})"),
                (None, None) => {
                    panic!("{protocol}: no recording ends as {}, and no reason is given", class.kind.name())
                }
                (Some(names), Some(reason)) => {
                    panic!("{protocol}: {names:?} end as {}, so it is wrong that {reason}", class.kind.name())
                }
            };
            listed += &format!("  {}: {shown}\n", class.kind.name());
        }
    }
    insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("end_kinds", listed);
    });
}
