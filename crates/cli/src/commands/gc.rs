//! `towline gc`: clears away what nobody needs any more, and never work.

use std::process::ExitCode;
use std::time::Duration;

use towline_api::{GcReport, SparedReport, WasteReport};
use towline_core::{BadDuration, parse_duration, show_duration};
use towline_engine::{Clock, Findings, Spared, SystemClock, Waste, look};

use crate::context::Context;
use crate::failure::Failure;
use crate::notices;
use crate::output::{self, Layout};

/// Clear away what nobody needs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Removed are: workspaces and branches of goals that are done and merged, checkouts that were left over, what is left of \
goals that do not exist any more, locks and sockets of dead processes, and, when they are old, raw logs of ended goals \
and conversations of the built-in agent. Goals stay listed: `towline rm` removes those.")]
pub(crate) struct Gc {
    /// Only say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How old logs and conversations must be [default: `retention.logs` of the configuration, 30d]
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn age(text: &str) -> Result<Duration, BadDuration> {
    parse_duration(text)
}

/// Clears away, or says what would go.
pub(crate) async fn run(context: &Context, args: Gc) -> Result<ExitCode, Failure> {
    let older_than = match args.older_than {
        Some(age) => age,
        None => {
            let loaded = context.configuration(&context.directory)?;
            notices::settings(&loaded.warnings);
            loaded.config.retention
        }
    };
    let findings = match context.existing_state()? {
        None => Findings::default(),
        Some(state) => {
            let findings =
                look(&state.home, &state.store, SystemClock.now(), older_than, output::progress("goals"))
                    .await?;
            if args.dry_run || findings.waste.is_empty() {
                findings
            } else {
                let engine = context.engine(state)?;
                let cleared = engine.remove_waste(findings).await;
                engine.close().await;
                cleared
            }
        }
    };
    if args.json {
        output::tell_json(Layout::Pretty, &report(&args, &findings));
    } else {
        tell(&args, older_than, &findings);
    }
    Ok(ExitCode::SUCCESS)
}

fn total(findings: &Findings) -> u64 {
    findings.waste.iter().map(|waste| waste.bytes).sum()
}

fn tell(args: &Gc, older_than: Duration, findings: &Findings) {
    let verb = if args.dry_run { "would remove" } else { "removed" };
    for Waste { kind, path, bytes, .. } in &findings.waste {
        let line = format!("{verb} {:<9} {} ({})", kind.name(), path.display(), output::bytes(*bytes));
        output::fitted(&line).iter().for_each(output::tell);
    }
    for Spared { goal, path, why } in &findings.spared {
        let what = goal.map_or_else(|| path.display().to_string(), |goal| goal.short());
        output::fitted(&format!("kept {what}: {}", output::brief(why))).iter().for_each(output::tell);
    }
    let freed = output::bytes(total(findings));
    output::tell(match (findings.waste.len(), args.dry_run) {
        (0, _) => {
            format!("nothing to remove (logs and conversations are kept for {})", show_duration(older_than))
        }
        (_, true) => format!("{freed} would be freed; nothing was changed"),
        (_, false) => format!("{freed} freed"),
    });
}

fn report(args: &Gc, findings: &Findings) -> GcReport {
    let removed = findings.waste.iter().map(|waste| WasteReport {
        kind: waste.kind.name().to_owned(),
        goal: waste.goal.map(|goal| goal.to_string()),
        path: waste.path.display().to_string(),
        bytes: waste.bytes,
    });
    let spared = findings.spared.iter().map(|spared| SparedReport {
        goal: spared.goal.map(|goal| goal.to_string()),
        path: spared.path.display().to_string(),
        why: spared.why.clone(),
    });
    GcReport {
        dry_run: args.dry_run,
        bytes: total(findings),
        removed: removed.collect(),
        spared: spared.collect(),
    }
}
