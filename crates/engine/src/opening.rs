//! The start of a conversation with an agent: everything that its protocol needs beside the raw bytes.
//!
//! It is stored with the bytes, so that they mean the same when they are read again, even if the configuration has changed.
//! The environment is no part of it: it holds the agent's credentials, and no event depends on it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use towline_agent::{AgentSettings, LaunchContext, Pricing, Protocol, UnknownPrice, agent, priced};
use towline_core::{Launch, MicroUsd, PriceList, Usage};

use crate::attempt::AttemptJob;
use crate::sent::Sent;

/// The file in an attempt's directory.
const FILE: &str = "conversation.json";
/// The prompt, for agents that read it from a file.
const PROMPT_FILE: &str = "prompt.txt";
/// The longest file: prompts quote no more than a bounded part of anything.
const LONGEST: u64 = 64 << 20;

/// What a conversation was begun with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Opening {
    /// The agent's settings, with Towline's own tools.
    pub(crate) settings: AgentSettings,
    pub(crate) launch: Launch,
    /// Where the agent works.
    pub(crate) directory: String,
    /// What the resumed session has cost before.
    pub(crate) cost_before: MicroUsd,
    /// What it has used before; none of a conversation that an earlier version began.
    #[serde(default)]
    pub(crate) used_before: Option<Usage>,
    /// How its cost is estimated; none of a conversation that an earlier version began.
    #[serde(default)]
    pub(crate) pricing: Option<Pricing>,
    /// Where the agent asks the model; it is part of messages.
    #[serde(default)]
    pub(crate) provider: Option<String>,
    /// Where the prompt is for agents that read it from a file.
    pub(crate) prompt_file: String,
}

impl Opening {
    /// Of an attempt that has this directory.
    pub(crate) fn new(
        dir: &Path,
        job: &AttemptJob,
        settings: AgentSettings,
        provider: Option<String>,
    ) -> Self {
        Self {
            pricing: Some(pricing(&settings, job.unknown_price)),
            settings,
            launch: job.launch.clone(),
            directory: job.directory(),
            cost_before: job.used_before.cost,
            used_before: Some(job.used_before),
            provider,
            prompt_file: dir.join(PROMPT_FILE).display().to_string(),
        }
    }

    /// Keeps it in the attempt's directory, together with the prompt where the agent reads it from a file.
    pub(crate) fn keep(&self, dir: &Path) -> io::Result<()> {
        if agent(self.settings.kind).reads_prompt_file(&self.settings) {
            towline_files::replace(Path::new(&self.prompt_file), self.launch.prompt.as_bytes())?;
        }
        towline_files::replace(&dir.join(FILE), &serde_json::to_vec(self)?)
    }

    /// Reads the opening that is stored in an attempt's directory.
    pub(crate) fn read(dir: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&towline_files::read(&dir.join(FILE), LONGEST)?)?)
    }

    /// The same for the agent, with these variables.
    pub(crate) fn context<'a>(
        &'a self,
        environment: &'a BTreeMap<String, String>,
        towline: &'a BTreeMap<String, String>,
    ) -> LaunchContext<'a> {
        let launch = &self.launch;
        LaunchContext {
            session: &launch.session,
            directory: &self.directory,
            attempt: launch.id,
            compact: launch.compact.as_deref(),
            prompt: &launch.prompt,
            prompt_file: &self.prompt_file,
            permitted: &launch.permitted,
            model: launch.model.as_deref(),
            provider: self.provider.as_deref(),
            environment,
            towline,
        }
    }

    /// The protocol at the beginning of the conversation. `sent` is what was written to the agent before.
    pub(crate) fn protocol(&self, context: &LaunchContext<'_>, sent: &Sent) -> Box<dyn Protocol> {
        let mut protocol = agent(self.settings.kind).protocol(&self.settings, context);
        if let Some(pricing) = &self.pricing {
            let model = self.launch.model.as_deref().or(self.settings.model.as_deref());
            protocol = priced(protocol, pricing.clone(), model);
        }
        let cost_alone = Usage { cost: self.cost_before, ..Usage::default() };
        protocol.used_before(self.used_before.unwrap_or(cost_alone));
        sent.lines().for_each(|line| protocol.recall(line));
        protocol
    }
}

/// How the agent's cost is estimated. The one over model APIs reports an unknown price itself.
fn pricing(settings: &AgentSettings, unknown: UnknownPrice) -> Pricing {
    let unknown = if agent(settings.kind).reports_unknown_price() { UnknownPrice::Ignore } else { unknown };
    Pricing { list: PriceList::with(&settings.prices), unknown }
}
