//! What confines agents and checks here, tried out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use towline_api::SandboxFacts;
use towline_core::{SandboxMode, SandboxSettings};
use towline_engine::{Hindrance, Machine, NoSandbox, Rehearsal, machine};
use towline_workspace::Repository;

use super::rows::{Mark, Row, Section};
use crate::context::Context;
use crate::report::trust_level;
use crate::sandbox::{fix, fix_of_none};

/// Tries the sandbox with the settings that hold here.
pub(crate) fn look(context: &Context, settings: &SandboxSettings) -> Section<SandboxFacts> {
    let mut facts = SandboxFacts {
        mode: settings.mode.name().to_owned(),
        level: trust_level(None),
        works: None,
        bubblewrap: None,
        landlock: None,
        layers_caches: false,
        without_towline: None,
        not_enforced: Vec::new(),
    };
    let rows = match machine(&context.program) {
        Ok(machine) => {
            describe(&machine, settings.mode, &mut facts);
            facts.without_towline = rehearse(context, settings, &machine).err();
            rows_of(&machine, settings.mode, &facts)
        }
        Err(reason) => {
            facts.bubblewrap = Some(reason.bubblewrap.to_string());
            facts.landlock = Some(reason.landlock.to_string());
            vec![row_of_none(&reason, settings.mode)]
        }
    };
    Section { facts, rows }
}

fn describe(machine: &Machine, mode: SandboxMode, facts: &mut SandboxFacts) {
    let sandbox = machine.sandbox();
    facts.level = trust_level((mode != SandboxMode::Off).then_some(sandbox));
    facts.works = Some(sandbox.name().to_owned());
    facts.bubblewrap = machine.instead_of().map(ToString::to_string);
    facts.layers_caches = machine.can_layer();
    facts.not_enforced = machine.gaps().iter().map(|gap| gap.text().to_owned()).collect();
}

/// Starts this program where an agent would: what is hidden there is missing without an error.
fn rehearse(context: &Context, settings: &SandboxSettings, machine: &Machine) -> Result<(), String> {
    let temporary = context.variable("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let repository = Repository::discover(&context.directory).ok();
    let environment: BTreeMap<String, String> = context.environment.clone();
    let rehearsal = Rehearsal {
        program: &context.program,
        directory: &context.directory,
        state: context.home_path().ok(),
        repository: repository.as_ref(),
        environment,
        settings,
    };
    rehearsal.run(machine, &temporary)
}

fn row_of_none(reason: &NoSandbox, mode: SandboxMode) -> Row {
    let (mark, effect) = match mode {
        SandboxMode::Off => (Mark::Plain, "and none is asked for"),
        SandboxMode::Auto => (Mark::Note, "so verdicts are of level 1"),
        SandboxMode::Required => (Mark::Problem, "and `mode = \"required\"` starts no goal without one"),
    };
    let row = Row::new(mark, "sandbox", format!("none works here, {effect}: {reason}"));
    if mode == SandboxMode::Off { row } else { row.fix(fix_of_none(reason)) }
}

fn rows_of(machine: &Machine, mode: SandboxMode, facts: &SandboxFacts) -> Vec<Row> {
    let name = machine.sandbox().name();
    if mode == SandboxMode::Off {
        let text = format!(
            "{name} works; `mode = \"off\"` in [sandbox] does without it, so verdicts are of level 1"
        );
        return vec![Row::new(Mark::Plain, "sandbox", text)];
    }
    let mut rows = vec![match machine.instead_of() {
        None => {
            Row::new(Mark::Good, "sandbox", format!("{name} works: verdicts are of level {}", facts.level))
        }
        Some(obstacle) => {
            let text = format!(
                "{name} works, so verdicts are of level {}; bubblewrap does not: {obstacle}",
                facts.level
            );
            Row::new(Mark::Note, "sandbox", text).fix(fix(obstacle, Hindrance::look()))
        }
    }];
    rows.push(if facts.layers_caches {
        Row::new(Mark::Good, "caches", "programs change the caches of your tools for themselves alone")
    } else {
        let text = "programs can only read the caches of your tools, such as ~/.cargo and ~/.npm";
        Row::new(Mark::Note, "caches", text).fix("name those that a tool must change as `write` in [sandbox]")
    });
    rows.push(match &facts.without_towline {
        None => Row::new(
            Mark::Good,
            "tools",
            "this program can be started inside, so agents have Towline's tools",
        ),
        Some(why) => {
            let text =
                format!("this program cannot be started inside, so agents have no tools of Towline: {why}");
            Row::new(Mark::Problem, "tools", text)
                .fix("install `towline` where no other rule hides it, such as /usr/local/bin")
        }
    });
    if !facts.not_enforced.is_empty() {
        let text = format!("programs can still {}", facts.not_enforced.join("; "));
        rows.push(Row::new(Mark::Note, "gaps", text).fix("use bubblewrap, or a newer kernel"));
    }
    rows
}
