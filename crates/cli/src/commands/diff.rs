//! `towline diff`: what a goal changed.

use std::io::Write;
use std::process::{Command, Stdio};

use towline_app::{Change, Context, Detail, Error, diff};
use towline_terminal::Paint;

use crate::args::Diff;
use crate::commands::foreground::Interrupts;
use crate::{find, output};

/// Prints the change.
pub(crate) async fn run(context: &Context, args: Diff) -> Result<(), Error> {
    if args.stat {
        output::print_or_exit(diff(context, &args.id, Detail::Stat).await?.text);
        return Ok(());
    }
    let Change { goal, text: diff } = diff(context, &args.id, Detail::Patch).await?;
    if args.raw {
        output::print_bytes_or_exit(diff.as_bytes());
        return Ok(());
    }
    if diff.is_empty() {
        output::eprint(format_args!("goal {} has changed nothing", goal.short()));
    }
    let shown = towline_terminal::mask().text(&diff).into_owned();
    if shown != diff {
        output::eprint(format_args!("note: secrets are hidden in this diff; --raw shows them"));
    }
    if !output::is_terminal() {
        output::print_bytes_or_exit(shown.as_bytes());
        return Ok(());
    }
    // Whatever the agent wrote into a file is there to be read, not obeyed.
    let paint = output::paint(context);
    let lines: Vec<String> =
        shown.lines().map(|line| towline_terminal::clean(&painted(paint, line))).collect();
    if !lines.is_empty() && !paged(context, &lines)? {
        lines.iter().for_each(output::print_or_exit);
    }
    Ok(())
}

/// A line of a diff in its colour.
fn painted(paint: Paint, line: &str) -> String {
    match line.as_bytes() {
        _ if ["diff ", "--- ", "+++ "].iter().any(|head| line.starts_with(head)) => paint.bold(line),
        [b'@', b'@', ..] => paint.dim(line),
        [b'+', ..] => paint.good(line),
        [b'-', ..] => paint.bad(line),
        _ => line.to_owned(),
    }
}

/// Shows the lines in the person's pager; false where there is none.
#[expect(clippy::disallowed_methods, reason = "the owner of the person's pager")]
fn paged(context: &Context, lines: &[String]) -> Result<bool, Error> {
    let wanted = ["TOWLINE_PAGER", "GIT_PAGER", "PAGER"].into_iter().find_map(|name| context.variable(name));
    let pager = wanted.unwrap_or("less");
    let program = pager.split_whitespace().next().unwrap_or_default();
    if program == "cat" || find::program(program, &context.directory, context.variable("PATH")).is_none() {
        return Ok(false);
    }
    // The pager has the terminal: Ctrl-C is its own.
    let _interrupts = Interrupts::listen()?;
    let mut command = Command::new("/bin/sh");
    // Colours, no pager for what fits the screen, and the text stays there.
    command.args(["-c", pager]).env("LESS", context.variable("LESS").unwrap_or("FRX")).stdin(Stdio::piped());
    let Ok(mut child) = command.spawn() else { return Ok(false) };
    if let Some(mut stdin) = child.stdin.take() {
        // A person who leaves the pager has seen enough.
        let _ = stdin.write_all(format!("{}\n", lines.join("\n")).as_bytes());
    }
    let _ = child.wait();
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_diff_have_the_colour_of_their_kind() {
        let paint = Paint::Colour;
        for (line, wanted) in [
            ("diff --git a/x b/x", paint.bold("diff --git a/x b/x")),
            ("--- a/x", paint.bold("--- a/x")),
            ("@@ -1 +1 @@", paint.dim("@@ -1 +1 @@")),
            ("-old", paint.bad("-old")),
            ("+new \u{1b}[2J", paint.good("+new \u{1b}[2J")),
            (" same", " same".to_owned()),
        ] {
            assert_eq!(painted(paint, line), wanted, "{line}");
        }
    }
}
