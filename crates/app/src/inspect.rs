//! Looking at what Towline works with: facts for programs, rows for people.
//!
//! One module per section of a diagnosis. Nothing here creates, changes or asks anything over the network, and a section that
//! is broken does not hide the others.

mod agents;
mod configuration;
mod frames;
pub(crate) mod git;
mod probe;
mod processes;
mod rows;
mod sandbox;
pub(crate) mod sign_in;
mod store;

use towline_agent::Ability;
use towline_api::{AgentLine, DoctorReport, FrameFacts};
use towline_config::Inspection;
use towline_store::{Listing, load_all};

use self::agents::{Configured, configured, frames_of, frames_row, look_at};
use self::frames::Stored;
use self::rows::Section;
pub use self::rows::{Mark, Row};
use crate::context::Context;
use crate::error::Error;
use crate::find::{self, MissingProgram};
use crate::notice::Notice;

/// Whether Towline can work here.
pub struct Diagnosis {
    /// As programs read it; without the findings, which are in the rows.
    pub report: DoctorReport,
    /// The rows of each section, by its name.
    pub sections: Vec<(&'static str, Vec<Row>)>,
}

/// Looks at everything.
pub async fn diagnose(context: &Context) -> Diagnosis {
    let (configuration, inspection) = configuration::look(context);
    let (store, stored) = store::look(context).await;
    let agents = agents::look(context, &inspection, frames::count(&stored).await);
    let (git, processes) = (git::look(context), processes::look());
    let sandbox = sandbox::look(context, &inspection.config.sandbox);
    let protect = git::protect_rows(context, &inspection.config.protect);
    Diagnosis {
        report: DoctorReport {
            ok: true,
            towline: env!("CARGO_PKG_VERSION").to_owned(),
            findings: Vec::new(),
            agents: agents.facts.agents,
            frames_not_understood: agents.facts.frames_not_understood,
            git: git.facts,
            store: store.facts,
            configuration: configuration.facts,
            processes: processes.facts,
            sandbox: sandbox.facts,
        },
        sections: vec![
            ("agents", agents.rows),
            ("git", git.rows.into_iter().chain(protect).collect()),
            ("store", store.rows),
            ("configuration", configuration.rows),
            ("processes", processes.rows),
            ("sandbox", sandbox.rows),
        ],
    }
}

/// The agents of the configuration.
pub struct AgentList {
    /// Those in use first, in the order of preference; of each, why it cannot be started.
    pub lines: Vec<(AgentLine, Option<MissingProgram>)>,
    /// Settings without effect.
    pub notices: Vec<Notice>,
}

/// What is known about one agent.
pub struct AgentDetails {
    /// What was seen of it.
    pub line: AgentLine,
    /// What it can do, by the name of the ability.
    pub abilities: Vec<(&'static str, Ability)>,
    /// What was looked at.
    pub rows: Vec<Row>,
    /// Settings without effect.
    pub notices: Vec<Notice>,
}

/// Lists the agents. Each is started for its version alone.
pub async fn list_agents(context: &Context) -> Result<AgentList, Error> {
    let (notices, inspection, frames) = look_around(context).await?;
    let lines = configured(&inspection).map(|agent| {
        let missing = find::agent_program(context, agent.settings).err();
        (look_at_line(context, &agent, &frames).0, missing)
    });
    Ok(AgentList { lines: lines.collect(), notices })
}

/// The configuration with its settings without effect, and the frames that were not understood.
async fn look_around(context: &Context) -> Result<(Vec<Notice>, Inspection, Vec<FrameFacts>), Error> {
    // What is wrong with the configuration is an error here, and not hidden in a list that is shorter than it should be.
    let notices = Notice::of_settings(context.configuration(&context.directory)?.warnings);
    let inspection = context.inspection(&context.directory, &context.layer_files(&context.directory));
    Ok((notices, inspection, frames::count(&stored(context).await?).await))
}

/// Looks at one agent.
pub async fn check_agent(context: &Context, name: &str) -> Result<AgentDetails, Error> {
    let (notices, inspection, frames) = look_around(context).await?;
    let Some(agent) = configured(&inspection).find(|configured| configured.name == name) else {
        let names: Vec<&str> = configured(&inspection).map(|configured| configured.name).collect();
        return Err(Error::not_found(format!("there is no agent `{name}` in the configuration"))
            .hint(format!("there are: {}", names.join(", "))));
    };
    let abilities = towline_agent::agent(agent.settings.kind).abilities(agent.settings).all().into();
    let (line, mut rows) = look_at_line(context, &agent, &frames);
    rows.extend(frames_of(name, &frames).map(frames_row));
    Ok(AgentDetails { line, abilities, rows, notices })
}

fn look_at_line(context: &Context, agent: &Configured<'_>, frames: &[FrameFacts]) -> (AgentLine, Vec<Row>) {
    let Section { facts, rows } = look_at(context, agent);
    let line = AgentLine {
        model: agent.settings.model.clone(),
        account: agent.settings.account.clone(),
        frames_not_understood: frames_of(&facts.name, frames).map_or(0, |frames| frames.total),
        facts,
    };
    (line, rows)
}

async fn stored(context: &Context) -> Result<Stored, Error> {
    let Some(state) = context.existing_state()? else { return Ok(Stored::default()) };
    let records = load_all(state.store.as_ref(), Listing::all()).await?.records;
    Ok(Stored::here(context, records, state.store))
}
