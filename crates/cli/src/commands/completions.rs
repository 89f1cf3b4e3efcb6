//! `towline completions`: what a shell needs to complete towline's command line.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::args;
use crate::output;

/// Print a script that completes towline's command line in your shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline completions bash > ~/.local/share/bash-completion/completions/towline
  towline completions zsh > \"${fpath[1]}/_towline\"
  towline completions fish > ~/.config/fish/completions/towline.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &Completions) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::visible(), "towline", &mut script);
    output::tell_bytes(&script);
    ExitCode::SUCCESS
}
