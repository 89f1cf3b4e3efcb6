//! `cargo xtask words`: holds the language of the repository to one plain vocabulary.
//!
//! `vocabulary` lists the phrases that are not used and where an exception holds, `scan` finds them in a text. This module
//! chooses the files and prints the findings.

mod scan;
mod vocabulary;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{command, print_line};
use scan::Scanner;

/// The folders and files that have no finding, and must have none from now on.
const FINISHED: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "crates/agent",
    "crates/api",
    "crates/app",
    "crates/builtin",
    "crates/check",
    "crates/cli",
    "crates/config",
    "crates/core",
    "crates/engine",
    "crates/files",
    "crates/fuzzing",
    "crates/mask",
    "crates/process",
    "crates/provider",
    "crates/store",
    "crates/testkit",
    "crates/workspace",
    "docs",
    "xtask",
];

/// Not scanned: this command's own vocabulary and its tests, and what other programs printed.
const LEFT_OUT: &[&str] = &["xtask/src/words/", "/testdata/", "/snapshots/"];

/// Scans the committed files below `paths`, or all that are finished.
pub(crate) fn run(root: &Path, paths: &[&str]) -> Result<()> {
    let paths = if paths.is_empty() { FINISHED } else { paths };
    let scanner = Scanner::new();
    let mut findings = 0;
    for name in files(root, paths)? {
        let text = fs::read_to_string(root.join(&name)).with_context(|| format!("cannot read {name}"))?;
        for finding in scanner.scan(&name, &text) {
            print_line(&format!("{name}:{}: {}", finding.line, finding.message));
            findings += 1;
        }
    }
    if findings > 0 {
        bail!("{findings} findings; exceptions are listed in xtask/src/words/vocabulary.rs");
    }
    Ok(())
}

/// The sources and pages that git knows below `paths`, as long as they exist.
fn files(root: &Path, paths: &[&str]) -> Result<Vec<String>> {
    let mut list = command::program("git", root);
    list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]);
    let names = String::from_utf8(command::output(list.args(paths))?)
        .context("git lists a name that is not UTF-8")?;
    let scanned = |name: &&str| {
        let path = Path::new(name);
        let text = path.extension().is_some_and(|kind| kind == "rs" || kind == "md");
        text && !LEFT_OUT.iter().any(|part| name.contains(part)) && root.join(path).is_file()
    };
    let names: Vec<String> = names.split_terminator('\0').filter(scanned).map(str::to_owned).collect();
    if names.is_empty() {
        bail!("no Rust source or Markdown page below {}", paths.join(", "));
    }
    Ok(names)
}
