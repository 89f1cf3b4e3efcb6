//! `towline keys`: the keys that sign proofs.

use clap::Subcommand;
use towline_api::KeyReport;
use towline_app::{Context, Error};
use towline_engine::{Clock, SystemClock};

use crate::output::{self, Layout};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline keys > towline-keys.pem          for `towline verify --key` on another machine
  towline keys rotate                      sign with a new key from now on")]
pub(crate) struct Keys {
    /// What to do instead of listing them.
    #[command(subcommand)]
    pub(crate) command: Option<KeysCommand>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
}

/// What to do with the keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a new key that signs from now on; the public keys before it still verify
    Rotate,
}

/// Lists the public keys, or makes a new one.
pub(crate) fn run(context: &Context, args: &Keys) -> Result<(), Error> {
    if matches!(args.command, Some(KeysCommand::Rotate)) {
        let key = towline_app::rotate_keys(context, SystemClock.now())?;
        match args.json {
            true => output::print_json_or_exit(Layout::Pretty, &key),
            false => output::print_or_exit(lines(&key)),
        }
        return Ok(());
    }
    let keys = towline_app::keys(context)?;
    if args.json {
        output::print_json_or_exit(Layout::Pretty, &keys);
    } else if keys.is_empty() {
        output::eprint(format_args!("there is no key yet: the first proof makes one"));
    } else {
        let all: Vec<String> = keys.iter().map(lines).collect();
        output::print_or_exit(all.join("\n\n"));
    }
    Ok(())
}

/// A public key in PEM, below what a person wants to know of it. Programs that read PEM skip the rest.
fn lines(key: &KeyReport) -> String {
    let state = match key.retired_at {
        Some(at) => format!("retired {at:.0}"),
        None => "active".to_owned(),
    };
    format!("key {}\n{state} · made {:.0}\n{}", key.id, key.created_at, key.public_key.trim_end())
}
