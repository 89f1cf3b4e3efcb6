//! `towline restore`: the files of an in-place goal as they were before it.

use towline_app::{Context, Error, Restored, quoted};
use towline_view::few;

use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    /// The goal's id, a prefix of it, or `@`
    pub(crate) id: String,
    /// Restore only these files or directories, by their path from the root of the goal's directory
    pub(crate) paths: Vec<String>,
}

/// Restores the files, unless the goal is at work on them.
pub(crate) async fn run(context: &Context, args: Restore) -> Result<(), Error> {
    let named = output::printable(&args.paths.join(", "));
    let wanted: Vec<String> = args.paths.iter().map(|path| quoted(path)).collect();
    let wanted = if wanted.is_empty() { ".".to_owned() } else { wanted.join(" ") };
    let restored = towline_app::restore(context, &args.id, args.paths).await?;
    let Restored { goal, replaced, paths, removed, folder, history } = restored;
    let (id, folder) = (goal.short(), output::printable(&folder.to_string_lossy()));
    let what = if named.is_empty() { folder.clone() } else { format!("{named} in {folder}") };
    output::print(format_args!("restored {what} to the state before goal {id}"));
    if paths.is_empty() && removed.is_empty() {
        output::print("  no file had changed");
        return Ok(());
    }
    let (commit, history) = (replaced.short(), output::printable(&history.to_string_lossy()));
    for (what, paths) in [("replaced", &paths), ("removed, because the goal had added them", &removed)] {
        if !paths.is_empty() {
            output::print(format_args!("  {what}: {}", few(paths)));
        }
    }
    output::print(format_args!("  the files as they were are in commit {commit} of {history}"));
    let [folder, history] = [folder, history].map(|path| quoted(&path));
    let wanted = output::printable(&wanted);
    output::print(format_args!(
        "  to get them back: git -C {folder} --git-dir={history} --work-tree=. --literal-pathspecs restore --source={commit} -- {wanted}"
    ));
    Ok(())
}
