//! `towline push`: sends a goal's verified commit to a remote.

use towline_app::{Context, Error};

use crate::output::{self, Layout};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline push 1a2b3c4d               to the remote that `git push` would use
  towline push 1a2b3c4d upstream      to another one

Exit codes: 0 pushed · 2 there is nothing to push, or no remote · 4 the remote or a hook refused")]
pub(crate) struct Push {
    /// The goal's id, a prefix of it, or `@`
    id: String,
    /// The remote [default: the one that `git push` would use]
    remote: Option<String>,
    /// Push the unproven work of a goal without checks
    #[arg(long)]
    unproven: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Pushes the goal's work, or reports why not.
pub(crate) async fn run(context: &Context, args: Push) -> Result<(), Error> {
    let mut pushed = towline_app::push(context, &args.id, args.remote, args.unproven).await?;
    pushed.answer.iter_mut().for_each(|line| *line = output::printable(line));
    if args.json {
        output::print_json_or_exit(Layout::Pretty, &pushed);
        return Ok(());
    }
    for line in pushed.answer.iter().filter(|line| !line.trim().is_empty()) {
        output::print_or_exit(format_args!("{line}"));
    }
    let commit = pushed.commit.get(..12).unwrap_or(&pushed.commit);
    let line = format!("✓ pushed {commit} to `{}` as {}", pushed.remote, pushed.branch);
    output::print_or_exit(output::paint(context).good(&line));
    Ok(())
}
