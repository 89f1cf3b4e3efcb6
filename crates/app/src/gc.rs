//! Removes leftovers, and never work.

use std::time::Duration;

use jiff::Timestamp;
use towline_api::{GcReport, SparedReport, WasteReport};
use towline_engine::{Findings, SpareReason, Spared, look};

use crate::context::Context;
use crate::error::Error;
use crate::notice::Notice;

/// Leftovers that were removed, or would be.
pub struct Leftovers {
    /// What was found.
    pub findings: Findings,
    /// The age at which logs and conversations are removed.
    pub retention: Duration,
    /// Settings without effect.
    pub notices: Vec<Notice>,
    /// Whether nothing was removed on purpose.
    pub dry_run: bool,
}

impl Leftovers {
    /// The room that they take.
    pub fn bytes(&self) -> u64 {
        self.findings.waste.iter().map(|waste| waste.bytes).sum()
    }

    /// As programs read it.
    pub fn report(&self) -> GcReport {
        let removed = self.findings.waste.iter().map(|waste| WasteReport {
            kind: waste.kind.name().to_owned(),
            goal: waste.goal.map(|goal| goal.to_string()),
            path: waste.path.display().to_string(),
            branch: waste.branch.clone(),
            bytes: waste.bytes,
        });
        let spared = self.findings.spared.iter().map(|spared| SparedReport {
            goal: spared.goal.map(|goal| goal.to_string()),
            path: spared.path.display().to_string(),
            why: why_spared(spared).concat(),
        });
        let (removed, spared) = (removed.collect(), spared.collect());
        GcReport { dry_run: self.dry_run, bytes: self.bytes(), removed, spared }
    }
}

/// Why something stays in words: the reason, which other goals may have as well, and what to do about this one.
pub fn why_spared(spared: &Spared) -> [String; 2] {
    let id = spared.goal.map(|goal| goal.short()).unwrap_or_default();
    match &spared.why {
        SpareReason::NextVerdict { phase, bytes } => [
            format!("it is {phase}, and its next verdict reuses or replaces this checkout"),
            format!(" ({bytes} bytes); to remove it: towline cancel {id}"),
        ],
        SpareReason::MayContinue { phase } => [
            format!("it is {phase} and can be continued there"),
            format!(" (towline retry {id}; or give it up: towline rm --force {id})"),
        ],
        SpareReason::Unmerged => {
            ["its work is in none of your branches".to_owned(), format!(" (towline merge {id})")]
        }
        SpareReason::Submodules { paths } => {
            parts(&format!("work in its submodules is nowhere else: {}", paths.join(", ")))
        }
        SpareReason::NoGoal => [
            "its goal no longer exists, so it is unknown whether its files are merged".to_owned(),
            "; delete it by hand".to_owned(),
        ],
        SpareReason::History => [
            "it holds base and candidates of a removed goal, which may be nowhere else".to_owned(),
            format!("; if you need none of them: rm -r '{}'", spared.path.display()),
        ],
        SpareReason::NoRepository { error } => parts(&format!("its repository cannot be looked at: {error}")),
        SpareReason::Unreadable { error } => parts(&format!("{error}; give it up: towline rm --force {id}")),
        SpareReason::Failed { error } => parts(error),
        SpareReason::Busy => ["somebody works on the goal".to_owned(), String::new()],
        SpareReason::Reopened => ["the goal was opened again".to_owned(), String::new()],
        SpareReason::Alive => ["something still runs for the goal".to_owned(), String::new()],
        SpareReason::JustEnded => ["the goal went on and ended just now".to_owned(), String::new()],
        SpareReason::UnknownFiles => ["git does not know what is in it".to_owned(), String::new()],
    }
}

/// An error, and what to do about it, which it ends with.
fn parts(error: &str) -> [String; 2] {
    let end = error.find([';', '(']).unwrap_or(error.len());
    let (reason, advice) = error.split_at(error[..end].trim_end().len());
    [reason.to_owned(), advice.to_owned()]
}

/// Removes leftovers, or finds them in a dry run. Logs and conversations must be older than `older_than`, or than the age
/// in the configuration. `progress` gets how many goals were looked at, and how many there are.
pub async fn remove_leftovers(
    context: &Context,
    older_than: Option<Duration>,
    dry_run: bool,
    now: Timestamp,
    progress: impl Fn(usize, usize) + Send + 'static,
) -> Result<Leftovers, Error> {
    let (retention, notices) = match older_than {
        Some(age) => (age, Vec::new()),
        None => {
            let (loaded, _) = context.read_configuration(&context.directory, None)?;
            (loaded.config.retention, Notice::of_settings(loaded.warnings))
        }
    };
    let mut findings = Findings::default();
    if let Some(state) = context.existing_state()? {
        findings = look(&state.home, &state.store, now, retention, progress).await?;
        if !dry_run && !findings.waste.is_empty() {
            let engine = context.engine(state)?;
            findings = engine.remove_waste(findings).await;
            engine.close().await;
        }
    }
    Ok(Leftovers { findings, retention, notices, dry_run })
}
