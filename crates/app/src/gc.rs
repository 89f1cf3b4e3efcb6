//! Removes leftovers, and never work.

use std::time::Duration;

use jiff::Timestamp;
use towline_api::{GcReport, SparedReport, WasteReport};
use towline_config::Warning;
use towline_engine::{Findings, look};

use crate::context::Context;
use crate::error::Error;

/// Leftovers that were removed, or would be.
pub struct Leftovers {
    /// What was found.
    pub findings: Findings,
    /// The age at which logs and conversations are removed.
    pub retention: Duration,
    /// Settings without effect.
    pub warnings: Vec<Warning>,
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
            why: spared.why.clone(),
        });
        let (removed, spared) = (removed.collect(), spared.collect());
        GcReport { dry_run: self.dry_run, bytes: self.bytes(), removed, spared }
    }
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
    let (retention, warnings) = match older_than {
        Some(age) => (age, Vec::new()),
        None => {
            let loaded = context.configuration(&context.directory)?;
            (loaded.config.retention, loaded.warnings)
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
    Ok(Leftovers { findings, retention, warnings, dry_run })
}
