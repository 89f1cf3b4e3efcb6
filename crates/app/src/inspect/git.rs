//! Git, and the repository that the current directory is in.

use std::path::Path;

use towline_api::GitFacts;
use towline_workspace::{Repository, WorkspaceError};

use super::probe::{self, Silence};
use super::rows::{Mark, Row, Section};
use crate::context::Context;
use crate::draft::protects_nothing;
use crate::find;
use crate::init::is_preset;

/// The oldest git that has all that Towline asks of it: merging without a checkout is the newest of it.
const OLDEST: (u32, u32) = (2, 38);
const INSTALL: &str = "install git 2.38 or newer and make sure it is on PATH";

/// Looks for git and for a repository.
pub(crate) fn look(context: &Context) -> Section<GitFacts> {
    let mut facts = GitFacts::default();
    let Some(path) = find::program("git", &context.directory, context.variable("PATH")) else {
        return Section { facts, rows: vec![Row::new(Mark::Problem, "git", "not found").fix(INSTALL)] };
    };
    facts.path = Some(path.display().to_string());
    let found = version(context, &path);
    let mut rows = vec![match &found {
        Ok(version) => {
            facts.version = Some(version.clone());
            version_row(version, &path.display().to_string())
        }
        Err(why) => {
            Row::new(Mark::Problem, "git", format!("{} does not work: {why}", path.display())).fix(INSTALL)
        }
    }];
    if found.is_ok() {
        rows.push(repository_row(context, &mut facts));
        let email = ["config".to_owned(), "user.email".to_owned()];
        let email = probe::words(&path, &email, &context.directory, &context.environment);
        rows.extend(identity_row(email.is_ok() || context.variable("GIT_AUTHOR_EMAIL").is_some()));
    }
    Section { facts, rows }
}

/// The version of git, or why it reports none.
pub(crate) fn version(context: &Context, git: &Path) -> Result<String, Silence> {
    let words = probe::words(git, &["version".to_owned()], &context.directory, &context.environment)?;
    Ok(words.trim().trim_start_matches("git version ").to_owned())
}

/// Patterns of protected paths that match no file, as after a typing error.
pub(crate) fn protect_rows(context: &Context, patterns: &[String]) -> Vec<Row> {
    let files = Repository::discover(&context.directory)
        .and_then(|repository| repository.files(&repository.resolve("HEAD")?));
    // A row of its own reports a repository that cannot be read.
    let Ok(files) = files else { return Vec::new() };
    let without_match = patterns.iter().filter(|pattern| {
        protects_nothing(std::slice::from_ref(pattern), &files).is_ok_and(|notice| notice.is_some())
    });
    let row = |pattern: &String| {
        let text = format!("`{pattern}` in `protect.paths` matches no file");
        Row::new(Mark::Note, "protect", text).fix("correct it, or take it out")
    };
    // `init` protects what decides about the checks even before it is there.
    without_match.filter(|pattern| !is_preset(pattern)).map(row).collect()
}

fn identity_row(is_known: bool) -> Option<Row> {
    let text = "no user.email: the commits of your goals are by Towline <towline@localhost>";
    let fix = "git config --global user.name NAME, and git config --global user.email ADDRESS";
    (!is_known).then(|| Row::new(Mark::Note, "identity", text).fix(fix))
}

fn version_row(version: &str, path: &str) -> Row {
    match numbers(version) {
        Some(numbers) if numbers < OLDEST => {
            Row::new(Mark::Problem, "git", format!("{version} is too old · {path}")).fix(INSTALL)
        }
        _ => Row::new(Mark::Good, "git", format!("{version} · {path}")),
    }
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn repository_row(context: &Context, facts: &mut GitFacts) -> Row {
    let found = Repository::discover(&context.directory);
    let head = found.and_then(|repository| {
        facts.repository = Some(repository.root().display().to_string());
        Ok((repository.resolve("HEAD")?, repository))
    });
    match head {
        Ok((head, repository)) => {
            facts.head = Some(head.to_string());
            let text = format!("{} at {}", repository.root().display(), head.short());
            Row::new(Mark::Good, "repository", text)
        }
        Err(error) => explained(&error),
    }
}

/// In these errors, what to do follows a semicolon.
fn explained(error: &WorkspaceError) -> Row {
    let message = error.to_string();
    match message.rsplit_once("; ") {
        Some((what, fix)) => Row::new(Mark::Problem, "repository", what).fix(fix),
        None => Row::new(Mark::Problem, "repository", message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_without_an_identity_is_worth_a_note() {
        assert_eq!(identity_row(true), None);
        assert_eq!(identity_row(false).map(|row| row.mark), Some(Mark::Note));
    }

    #[test]
    fn a_git_that_is_too_old_is_a_problem_and_one_that_is_not_understood_is_not() {
        let marks = ["2.37.9", "1.40.0", "2.38.0", "2.39.5 (Apple Git-154)", "3.0.rc1", "odd"]
            .map(|version| version_row(version, "/usr/bin/git").mark);
        use Mark::{Good, Problem};
        assert_eq!(marks, [Problem, Problem, Good, Good, Good, Good]);
    }
}
