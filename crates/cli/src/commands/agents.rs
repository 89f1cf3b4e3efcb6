//! `towline agents`: the agents of the configuration, and what each can do.
//!
//! An agent is started for nothing but its version, so nothing here costs anything.

use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Map, Value, json};
use towline_agent::{Ability, AgentSettings, agent};
use towline_config::Inspection;
use towline_store::{Listing, load_all};

use crate::args::{Agents, AgentsCommand};
use crate::context::Context;
use crate::failure::Failure;
use crate::inspect::agents::{AgentFacts, Configured, configured, frames_of, frames_row, look_at};
use crate::inspect::frames::{self, FrameFacts, Stored};
use crate::inspect::lines::{rows_lines, summary};
use crate::inspect::rows::{Finding, Mark, NEEDS_A_PERSON, Row, findings};
use crate::inspect::sign_in::SignedIn;
use crate::output::{self, Layout};
use crate::view::Paint;

/// Where there is nothing to say.
const NOTHING: &str = "–";
/// Instead of a version, where there is no program.
const NOT_FOUND: &str = "not found";

/// One agent, as programs see it.
#[derive(Serialize)]
struct AgentLine {
    #[serde(flatten)]
    facts: AgentFacts,
    model: Option<String>,
    account: Option<String>,
    /// How many frames of its output were not understood, over all stored goals.
    frames_not_understood: u64,
}

/// One agent with all that can be said about it, as programs see it.
#[derive(Serialize)]
struct Checked {
    ok: bool,
    #[serde(flatten)]
    line: AgentLine,
    abilities: Map<String, Value>,
    findings: Vec<Finding>,
}

/// Lists agents, or checks one.
pub(crate) async fn run(context: &Context, args: Agents) -> Result<ExitCode, Failure> {
    // What is wrong with the configuration is told here, and not hidden in a list that is shorter than it should be.
    context.configuration(&context.directory)?;
    let inspection = context.inspection(&context.layer_files(&context.directory));
    let frames = frames::count(&stored(context).await?).await;
    match args.command {
        None => {
            list(context, &inspection, &frames, args.json);
            Ok(ExitCode::SUCCESS)
        }
        Some(AgentsCommand::Check { name }) => check(context, &inspection, &frames, &name, args.json),
    }
}

async fn stored(context: &Context) -> Result<Stored, Failure> {
    let Some(state) = context.existing_state()? else { return Ok(Stored::default()) };
    let records = load_all(state.store.as_ref(), Listing::all()).await?.records;
    Ok(Stored { records, store: Some(state.store) })
}

fn list(context: &Context, inspection: &Inspection, frames: &[FrameFacts], json: bool) {
    let looked = configured(inspection).map(|Configured { name, settings, standing }| {
        AgentLine::of(look_at(context, name, settings, standing).facts, settings, frames)
    });
    let lines: Vec<AgentLine> = looked.collect();
    if json {
        output::tell_json(Layout::Pretty, &lines);
    } else {
        table(&lines).iter().for_each(output::tell);
    }
}

impl AgentLine {
    fn of(facts: AgentFacts, settings: &AgentSettings, frames: &[FrameFacts]) -> Self {
        Self {
            model: settings.model.clone(),
            account: settings.account.clone(),
            frames_not_understood: frames_of(&facts.name, frames).map_or(0, |frames| frames.total),
            facts,
        }
    }

    fn cells(&self, place: Option<usize>) -> Vec<String> {
        let facts = &self.facts;
        let or_nothing = |text: Option<&str>| output::printable(text.unwrap_or(NOTHING));
        let program = facts.path.clone().unwrap_or_else(|| match facts.command.first() {
            Some(program) => format!("`{program}` was not found"),
            None => NOTHING.to_owned(),
        });
        // Where there is no room for the column that says it, this one must not look like an agent that is there.
        let version = if facts.path.is_none() && !facts.command.is_empty() {
            NOT_FOUND.to_owned()
        } else {
            or_nothing(facts.version.as_deref())
        };
        vec![
            place.map_or_else(|| NOTHING.to_owned(), |place| place.to_string()),
            output::printable(&facts.name),
            output::printable(&facts.kind),
            version,
            or_nothing(facts.tested.as_ref().map(|tested| tested.versions.as_str())),
            signed_in(&facts.signed_in).to_owned(),
            facts.permission.to_owned(),
            or_nothing(self.model.as_deref()),
            or_nothing(self.account.as_deref()),
            self.frames_not_understood.to_string(),
            output::printable(&program),
        ]
    }
}

const fn signed_in(state: &SignedIn) -> &'static str {
    match state {
        SignedIn::NotNeeded => "not needed",
        SignedIn::Yes { .. } => "yes",
        SignedIn::NotSeen => "not seen",
    }
}

fn table(lines: &[AgentLine]) -> Vec<String> {
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
    rows.extend((1..).zip(lines).map(|(place, line)| line.cells(line.facts.in_use.then_some(place))));
    output::table(&rows, &["PROGRAM", "ACCOUNT", "UNKNOWN FRAMES", "TESTED", "MODEL"])
}

fn check(
    context: &Context,
    inspection: &Inspection,
    frames: &[FrameFacts],
    name: &str,
    json: bool,
) -> Result<ExitCode, Failure> {
    let found = configured(inspection).find(|configured| configured.name == name);
    let Configured { settings, standing, .. } = found.ok_or_else(|| unknown(inspection, name))?;
    let abilities = agent(settings.kind).abilities(settings).all();
    let looked = look_at(context, name, settings, standing);
    let ungrouped = |row: Row| Row { group: None, ..row };
    let own_frames = frames_of(name, frames).map(frames_row);
    let rows: Vec<Row> = looked.rows.into_iter().chain(own_frames).collect();
    let findings = findings("agents", &rows);
    let count = |mark: Mark| findings.iter().filter(|finding| finding.level == mark).count();
    let (problems, notes) = (count(Mark::Problem), count(Mark::Note));
    if json {
        let line = AgentLine::of(looked.facts, settings, frames);
        let abilities = abilities.map(|(name, ability)| (name.to_owned(), ability_json(ability)));
        let abilities = abilities.into_iter().collect();
        output::tell_json(Layout::Pretty, &Checked { ok: problems == 0, line, abilities, findings });
    } else {
        let paint = Paint::for_stdout(context);
        output::tell(paint.bold(&format!("what {} can do", output::printable(name))));
        rows_lines(paint, &abilities.map(ability_row)).iter().for_each(output::tell);
        output::tell("");
        output::tell(paint.bold("what is seen of it"));
        let rows: Vec<Row> = rows.into_iter().map(ungrouped).collect();
        rows_lines(paint, &rows).iter().for_each(output::tell);
        output::tell("");
        output::tell(summary(paint, problems, notes));
    }
    Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::from(NEEDS_A_PERSON) })
}

fn unknown(inspection: &Inspection, name: &str) -> Failure {
    let names: Vec<&str> = configured(inspection).map(|configured| configured.name).collect();
    Failure::not_found(format!("there is no agent `{name}` in the configuration"))
        .hint(format!("there are: {}", names.join(", ")))
}

fn ability_row((name, ability): (&'static str, Ability)) -> Row {
    let mark = if matches!(ability, Ability::Yes(_)) { Mark::Good } else { Mark::Plain };
    Row::new(mark, name, format!("{}: {}", ability.extent(), ability.words()))
}

fn ability_json(ability: Ability) -> Value {
    json!({"extent": ability.extent(), "words": ability.words()})
}
