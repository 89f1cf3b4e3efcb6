//! `towline restore`: the files of an in-place goal as they were before it.

use towline_app::{Context, Error, Restored, quoted};

use crate::notices::few;
use crate::output;

/// Put files back.
#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    /// The goal's id, a prefix of it, or `@`
    pub(crate) id: String,
    /// Restore only these files or directories, by their path from the root of the goal's directory
    pub(crate) paths: Vec<String>,
}

/// Restores the files, unless the goal is at work on them.
pub(crate) async fn run(context: &Context, args: Restore) -> Result<(), Error> {
    let named = args.paths.join(", ");
    let wanted = if args.paths.is_empty() { ".".to_owned() } else { words(&args.paths) };
    let restored = towline_app::restore(context, &args.id, args.paths).await?;
    let Restored { goal, replaced, paths, folder, history } = restored;
    let (id, folder) = (goal.short(), folder.display());
    let what = if named.is_empty() { folder.to_string() } else { format!("{named} in {folder}") };
    output::print(format_args!("restored {what} to the state before goal {id}"));
    if paths.is_empty() {
        output::print("  no file had changed");
        return Ok(());
    }
    let (commit, history) = (replaced.short(), history.display());
    output::print(format_args!("  replaced: {}", few(&paths)));
    output::print(format_args!("  the replaced files are in commit {commit} of {history}"));
    let [folder, history] = [folder, history].map(|path| quoted(&path.to_string()));
    output::print(format_args!(
        "  to get them back: git -C {folder} --git-dir={history} --work-tree=. --literal-pathspecs restore --source={commit} -- {wanted}"
    ));
    Ok(())
}

fn words(paths: &[String]) -> String {
    paths.iter().map(|path| quoted(path)).collect::<Vec<_>>().join(" ")
}
