//! `towline man`: the manual, made from the same tree as `--help`.

use std::path::PathBuf;

use clap_mangen::{Man, generate_to};
use towline_app::Error;

use crate::args;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline man | man -l -                           read it
  towline man --out ~/.local/share/man/man1        and then: man towline-run")]
pub(crate) struct ManPages {
    /// Write towline.1 and a page for each command into this directory, and create it if necessary
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the first page, or writes all.
pub(crate) fn run(args: &ManPages) -> Result<(), Error> {
    let mut command = args::visible().disable_help_subcommand(true);
    // Gives every command its whole name.
    command.build();
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        let rendered = Man::new(command).render(&mut page);
        rendered.map_err(|error| Error::internal(format!("cannot make the manual: {error}")))?;
        output::print_bytes_or_exit(&page);
        return Ok(());
    };
    let pages = count(&command);
    std::fs::create_dir_all(folder).and_then(|()| generate_to(command, folder)).map_err(|error| {
        Error::usage(format!("cannot write the manual into {}: {error}", folder.display()))
            .hint("name a directory that you may write to")
    })?;
    output::print_or_exit(format_args!("{pages} pages in {}", folder.display()));
    Ok(())
}

/// A command has a page, and so has each command below it.
fn count(command: &clap::Command) -> usize {
    1 + command.get_subcommands().map(count).sum::<usize>()
}
