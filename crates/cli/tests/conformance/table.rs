//! The table of cases and agents in the documentation, which is what the tests are.

use std::fmt::Write;

use towline_agent::Kind;

use crate::exceptions::EXCEPTIONS;
use crate::subject::Subject;
use crate::{CASES, SUBJECTS};

const DOCUMENT: &str = include_str!("../../../../docs/agents.md");

/// A case that does not hold for an agent as it does for others.
#[derive(Debug)]
pub(crate) struct Exception {
    subject: &'static str,
    case: &'static str,
    why: &'static str,
    mark: &'static str,
}

impl Exception {
    /// The case cannot be had with it.
    pub(crate) const fn cannot(subject: &'static str, case: &'static str, why: &'static str) -> Self {
        Self { subject, case, why, mark: "–" }
    }

    /// The case holds, in another way.
    pub(crate) const fn differs(subject: &'static str, case: &'static str, why: &'static str) -> Self {
        Self { subject, case, why, mark: "✓" }
    }
}

/// The table, with a note for each exception; exceptions with the same words share theirs, whomever they are about.
fn table() -> String {
    let names: Vec<&str> = SUBJECTS.iter().map(|(_, subject)| subject().name()).collect();
    let mut table = format!("| case | {} |\n|{}\n", names.join(" | "), " --- |".repeat(names.len() + 1));
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for case in CASES {
        write!(table, "| `{case}` |").expect("written");
        for (module, subject) in SUBJECTS {
            let exception = EXCEPTIONS.iter().find(|one| one.case == *case && one.subject == *module);
            let cell = exception.map_or_else(
                || "✓".to_owned(),
                |exception| {
                    let known = notes.iter().position(|(why, _)| *why == exception.why);
                    let number = known.unwrap_or_else(|| {
                        notes.push((exception.why, Vec::new()));
                        notes.len() - 1
                    });
                    let about = &mut notes[number].1;
                    if !about.contains(&subject().name()) {
                        about.push(subject().name());
                    }
                    format!("{} ({})", exception.mark, number + 1)
                },
            );
            write!(table, " {cell} |").expect("written");
        }
        table.push('\n');
    }
    table.push('\n');
    for (number, (why, about)) in notes.iter().enumerate() {
        writeln!(table, "{}. {}: {why}", number + 1, about.join(", ")).expect("written");
    }
    table
}

#[test]
fn the_documentation_has_the_table_of_all_cases_and_agents() {
    let table = table();
    assert!(DOCUMENT.contains(&table), "put this table into docs/agents.md:\n\n{table}");
}

#[test]
fn every_exception_is_about_a_case_and_an_agent_that_there_are() {
    for exception in EXCEPTIONS {
        assert!(CASES.contains(&exception.case), "{exception:?}");
        assert!(SUBJECTS.iter().any(|(module, _)| *module == exception.subject), "{exception:?}");
    }
}

#[test]
fn every_kind_of_agent_but_the_scripted_one_is_a_subject() {
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Script) {
        let setting = format!("kind = {:?}", kind.name());
        let is_it = |subject: fn() -> &'static dyn Subject| subject().settings().contains(&setting);
        assert!(SUBJECTS.iter().any(|(_, subject)| is_it(*subject)), "{}", kind.name());
    }
}
