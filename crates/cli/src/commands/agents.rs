//! `towline agents`: the agents of the configuration, and what each can do.
//!
//! An agent is started for nothing but its version, so nothing here costs anything.

use std::process::ExitCode;

use towline_agent::Ability;
use towline_api::{AgentCheck, AgentLine, Level, SignedIn};
use towline_app::find::MissingProgram;
use towline_app::inspect::{AgentDetails, check_agent, list_agents};
use towline_app::{Context, Error};

use crate::args::{Agents, AgentsCommand};
use crate::inspect::{Mark, NEEDS_A_PERSON, Row, count, findings, rows_lines, summary};
use crate::notices;
use crate::output::{self, Layout};

/// An empty cell.
const NOTHING: &str = "–";

/// Lists agents, or checks one.
pub(crate) async fn run(context: &Context, args: Agents) -> Result<ExitCode, Error> {
    if let Some(AgentsCommand::Check { name }) = args.command {
        let details = check_agent(context, &name).await?;
        notices::print(&details.notices);
        return Ok(check(context, &name, details, args.json));
    }
    let list = list_agents(context).await?;
    notices::print(&list.notices);
    if args.json {
        let lines: Vec<&AgentLine> = list.lines.iter().map(|(line, _)| line).collect();
        output::print_json_or_exit(Layout::Pretty, &lines);
    } else {
        table(&list.lines).iter().for_each(output::print_or_exit);
    }
    Ok(ExitCode::SUCCESS)
}

fn cells(line: &AgentLine, missing: Option<&MissingProgram>, place: Option<usize>) -> Vec<String> {
    let facts = &line.facts;
    let or_nothing = |text: Option<&str>| output::printable(text.unwrap_or(NOTHING));
    let program = or_nothing(facts.path.as_deref().or(facts.problem.as_deref()));
    // If the column with the path is left out, the version must not suggest that the agent can be started.
    let version = match missing {
        Some(MissingProgram::NotExecutable(_)) => "not executable".to_owned(),
        Some(MissingProgram::NotFound(_)) => "not found".to_owned(),
        None => or_nothing(facts.version.as_deref()),
    };
    vec![
        place.map_or_else(|| NOTHING.to_owned(), |place| place.to_string()),
        output::printable(&facts.name),
        output::printable(&facts.kind),
        version,
        or_nothing(facts.tested.as_ref().map(|tested| tested.versions.as_str())),
        signed_in(&facts.signed_in).to_owned(),
        facts.permission.clone(),
        or_nothing(line.model.as_deref()),
        or_nothing(line.account.as_deref()),
        line.frames_not_understood.to_string(),
        program,
    ]
}

const fn signed_in(state: &SignedIn) -> &'static str {
    match state {
        SignedIn::NotNeeded => "not needed",
        SignedIn::Yes { .. } => "yes",
        SignedIn::NotSeen => "not seen",
    }
}

fn table(lines: &[(AgentLine, Option<MissingProgram>)]) -> Vec<String> {
    const HEADS: [&str; 11] = [
        "#",
        "NAME",
        "KIND",
        "VERSION",
        "TESTED",
        "SIGNED IN",
        "PERMISSION",
        "MODEL",
        "ACCOUNT",
        "UNKNOWN FRAMES",
        "PROGRAM",
    ];
    let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
    // Those in use come first, in their order.
    rows.extend(
        (1..).zip(lines).map(|(place, (line, missing))| {
            cells(line, missing.as_ref(), line.facts.in_use.then_some(place))
        }),
    );
    output::table(&rows, &["PROGRAM", "ACCOUNT", "UNKNOWN FRAMES", "TESTED", "MODEL"])
}

fn check(context: &Context, name: &str, details: AgentDetails, json: bool) -> ExitCode {
    let AgentDetails { line, abilities, rows, .. } = details;
    let findings = findings("agents", &rows);
    let (problems, notes) = (count(&findings, Level::Problem), count(&findings, Level::Note));
    if json {
        let abilities =
            abilities.into_iter().map(|(name, ability)| (name.to_owned(), ability_report(ability)));
        let report = AgentCheck { ok: problems == 0, line, abilities: abilities.collect(), findings };
        output::print_json_or_exit(Layout::Pretty, &report);
    } else {
        let paint = output::paint(context);
        output::print_or_exit(paint.bold(&format!("what {} can do", output::printable(name))));
        let abilities: Vec<Row> = abilities.into_iter().map(ability_row).collect();
        rows_lines(paint, &abilities).iter().for_each(output::print_or_exit);
        output::print_or_exit("");
        output::print_or_exit(paint.bold("what was found"));
        let rows: Vec<Row> = rows.into_iter().map(|row| Row { group: None, ..row }).collect();
        rows_lines(paint, &rows).iter().for_each(output::print_or_exit);
        output::print_or_exit("");
        output::print_or_exit(summary(paint, problems, notes));
    }
    if problems == 0 { ExitCode::SUCCESS } else { ExitCode::from(NEEDS_A_PERSON) }
}

fn ability_row((name, ability): (&'static str, Ability)) -> Row {
    let mark = if matches!(ability, Ability::Yes(_)) { Mark::Good } else { Mark::Plain };
    Row::new(mark, name, format!("{}: {}", ability.extent(), ability.words()))
}

fn ability_report(ability: Ability) -> towline_api::Ability {
    towline_api::Ability { extent: ability.extent().to_owned(), words: ability.words().to_owned() }
}
