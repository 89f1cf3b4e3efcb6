//! Whether agents cannot read the hidden checks of a goal that is about to be created.

use std::path::{Path, PathBuf};

use towline_core::{Check, SandboxSettings, Visibility};
use towline_engine::{demanded, must_hide};

use crate::context::Context;
use crate::error::Error;

/// The checks with the hidden ones last: whatever those leave in the checkout, no check whose output agents read comes after them.
pub(crate) fn in_order(mut checks: Vec<Check>) -> Vec<Check> {
    checks.sort_by_key(|check| !check.hidden.is_shown());
    checks
}

/// Fails if a check is to be hidden and this machine has nothing that hides it from agents.
pub(crate) fn must_be_possible(
    context: &Context,
    checks: &[Check],
    sandbox: &SandboxSettings,
) -> Result<(), Error> {
    if checks.iter().all(|check| check.hidden != Visibility::Hidden) {
        return Ok(());
    }
    let machine = demanded(sandbox, &context.program).map_err(Error::usage)?;
    must_hide(checks, machine.as_ref()).map_err(Error::usage)
}

/// Fails if a hidden check is described in the repository, or has files there that agents read. Hides the goal's own file with
/// the files of the check.
pub(crate) fn keep_outside(
    context: &Context,
    checks: &mut [Check],
    goal_file: Option<&Path>,
    repository: &str,
) -> Result<(), Error> {
    let root = Path::new(repository).canonicalize().unwrap_or_else(|_| repository.into());
    let goal_file = goal_file.and_then(|file| context.directory.join(file).canonicalize().ok());
    for check in checks.iter_mut().filter(|check| !check.hidden.is_shown()) {
        if let Some(file) = goal_file.as_ref().filter(|file| file.starts_with(&root)) {
            let what = format!(
                "the check `{}` cannot be hidden: agents read {}, which is in the repository",
                check.name,
                file.display()
            );
            return Err(Error::usage(what).hint("move the goal's file out of the repository"));
        }
        for named in &check.files {
            must_be_a_file_outside(context, check, named, &root)?;
        }
        let is_regular = |file: &&PathBuf| file.is_file();
        check.files.extend(goal_file.iter().filter(is_regular).map(|file| file.display().to_string()));
    }
    Ok(())
}

fn must_be_a_file_outside(context: &Context, check: &Check, named: &str, root: &Path) -> Result<(), Error> {
    let name = &check.name;
    let path = match (Path::new(named).strip_prefix("~"), context.variable("HOME")) {
        (Ok(inner), Some(home)) => Path::new(home).join(inner),
        _ => PathBuf::from(named),
    };
    let path = path.canonicalize().map_err(|error| {
        Error::usage(format!("the check `{name}` cannot read {named}: {error}"))
            .hint("correct `files` of the check")
    })?;
    if path.starts_with(root) || root.starts_with(&path) {
        let what = format!("the check `{name}` cannot hide {named}: agents read the repository");
        return Err(Error::usage(what).hint("move what `files` names out of the repository"));
    }
    Ok(())
}
