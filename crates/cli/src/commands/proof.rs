//! `towline proof`: a signed statement of a goal's verdict.

use std::path::PathBuf;

use towline_app::{Context, Error};
use towline_engine::{Clock, SystemClock};

use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline proof 1a2b3c4d > proof.json
  towline proof 1a2b3c4d -o proof.json
  towline verify --proof proof.json                  here
  towline keys > towline-keys.pem                    for other machines:
  towline verify --proof proof.json --key towline-keys.pem

Exit codes: 0 the proof is printed or written · 2 the goal is not done · 5 there is no such goal")]
pub(crate) struct Prove {
    /// The goal's id, a prefix of it, or `@`
    id: String,
    /// Write the proof to this file instead of printing it
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Prints the envelope, or writes it.
pub(crate) async fn run(context: &Context, args: Prove) -> Result<(), Error> {
    let proof = towline_app::prove(context, &args.id, SystemClock.now()).await?;
    for name in &proof.withheld {
        output::eprint(format_args!(
            "the proof has only the hash of check {}: it is hidden, or holds a secret",
            output::brief(name)
        ));
    }
    let line = format!("{}\n", proof.json);
    let Some(file) = &args.out else {
        output::print_bytes_or_exit(line.as_bytes());
        return Ok(());
    };
    std::fs::write(context.directory.join(file), line).map_err(|error| {
        Error::usage(format!("cannot write the proof to {}: {error}", file.display()))
            .hint("name a file that you may write")
    })?;
    let (goal, key, file) = (proof.goal.short(), proof.key.short(), file.display());
    let done = format!("✓ the proof of goal {goal} is in {file}, signed with key {key}");
    output::print_or_exit(output::paint(context).good(&done));
    output::print_or_exit(format_args!("  to verify it: towline verify --proof {file}"));
    Ok(())
}
