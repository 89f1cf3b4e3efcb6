//! `towline man`: the manual, made from the same tree as `--help`.

use std::io;
use std::path::{Path, PathBuf};

use clap_mangen::Man;
use towline_app::Error;

use crate::args;
use crate::output;

/// Print the manual page of towline, or write the pages of all commands.
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

/// The name of a page's file, and its text.
type Page = (String, Vec<u8>);

/// Prints the first page, or writes all.
pub(crate) fn run(args: &ManPages) -> Result<(), Error> {
    let pages = pages().map_err(|error| Error::internal(format!("cannot make the manual: {error}")))?;
    match &args.out {
        Some(folder) => {
            write(folder, &pages).map_err(|error| {
                Error::usage(format!("cannot write the manual into {}: {error}", folder.display()))
                    .hint("name a directory that you may write to")
            })?;
            output::print_or_exit(format_args!("{} pages in {}", pages.len(), folder.display()));
        }
        None => pages.iter().take(1).for_each(|(_, text)| output::print_bytes_or_exit(text)),
    }
    Ok(())
}

fn pages() -> io::Result<Vec<Page>> {
    let mut command = args::visible().disable_help_subcommand(true);
    // Gives every command its whole name.
    command.build();
    let mut pages = Vec::new();
    add(&command, &mut pages)?;
    Ok(pages)
}

/// The page of a command, and those of the commands below it.
fn add(command: &clap::Command, pages: &mut Vec<Page>) -> io::Result<()> {
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    pages.push((page.get_filename(), text));
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .try_for_each(|command| add(command, pages))
}

fn write(folder: &Path, pages: &[Page]) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    pages.iter().try_for_each(|(file, text)| std::fs::write(folder.join(file), text))
}
