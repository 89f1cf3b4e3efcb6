//! Names of sections in files: `package.json#scripts`, `pyproject.toml#tool.pytest`, `setup.cfg#tool:pytest`,
//! `go.mod#replace`.
//!
//! Only the names are read here; `towline-check` compares the values.

use std::fmt;

use crate::protect::bad_glob;
use crate::{Protect, WorkspaceError};

/// How a file with sections is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionFormat {
    /// Keys are separated by dots.
    Json,
    /// Keys are separated by dots.
    Toml,
    /// There is one level of sections, so that dots have no meaning.
    Ini,
    /// The directives of one name are a section.
    GoMod,
}

/// The endings of files whose sections can be compared.
const ENDINGS: [(&str, SectionFormat); 6] = [
    (".json", SectionFormat::Json),
    (".toml", SectionFormat::Toml),
    (".cfg", SectionFormat::Ini),
    (".ini", SectionFormat::Ini),
    (".coveragerc", SectionFormat::Ini),
    ("go.mod", SectionFormat::GoMod),
];

/// A section of a file, or of all files that a pattern matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    file: String,
    name: String,
    format: SectionFormat,
}

impl Section {
    /// The file, relative to the repository's root, or a pattern of files.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// How the file is written.
    pub const fn format(&self) -> SectionFormat {
        self.format
    }

    /// The section's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The keys that lead to the section.
    pub fn keys(&self) -> Vec<&str> {
        match self.format {
            SectionFormat::Json | SectionFormat::Toml => self.name.split('.').collect(),
            SectionFormat::Ini | SectionFormat::GoMod => vec![&self.name],
        }
    }

    fn parse(pattern: &str) -> Result<Self, WorkspaceError> {
        let bad = |reason: &str| bad_glob(pattern, reason.to_owned());
        let (file, name) = pattern.split_once('#').ok_or_else(|| bad("it names no section"))?;
        let file = file.trim_start_matches("./").trim_start_matches('/');
        let known = ENDINGS.into_iter().find(|(ending, _)| file.ends_with(ending));
        let (_, format) = known.ok_or_else(|| {
            bad("sections can be named in .json, .toml, .cfg, .ini and go.mod files; a `#` in a file's name is written `[#]`")
        })?;
        let section = Self { file: file.to_owned(), name: name.to_owned(), format };
        if section.keys().iter().any(|key| key.trim().is_empty()) {
            return Err(bad("it names no section behind `#`"));
        }
        match Protect::new(std::slice::from_ref(&section.file)) {
            Ok(_) => Ok(section),
            Err(WorkspaceError::BadGlob { reason, .. }) => Err(bad(&reason)),
            Err(other) => Err(other),
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.file, self.name)
    }
}

/// Separates sections from paths.
pub(crate) fn split(patterns: &[String]) -> Result<(Vec<Section>, Vec<String>), WorkspaceError> {
    let (sections, paths): (Vec<&String>, Vec<&String>) =
        patterns.iter().partition(|text| names_section(text));
    let sections = sections.into_iter().map(|text| Section::parse(text)).collect::<Result<_, _>>()?;
    Ok((sections, paths.into_iter().cloned().collect()))
}

/// Refuses a section where only paths have a meaning.
pub(crate) fn must_be_path(pattern: &str) -> Result<(), WorkspaceError> {
    if !names_section(pattern) {
        return Ok(());
    }
    let reason = "it names a section of a file, and here only paths can be named".to_owned();
    Err(bad_glob(pattern, reason))
}

/// Whether a `#` separates a file from a section. In a directory's name, or in brackets, it is a character like others.
fn names_section(pattern: &str) -> bool {
    pattern.split_once('#').is_some_and(|(before, after)| {
        let is_file = ENDINGS.iter().any(|(ending, _)| before.ends_with(ending));
        is_file || (!after.contains('/') && !before.ends_with('['))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_distinguished_from_paths_with_a_hash() {
        let patterns = ["a.json#b/c", "src/C#/tests/**", "[#]notes[#]", "tox.ini#a.b", "a/*.toml#x.y"];
        let (sections, paths) = split(&patterns.map(str::to_owned)).unwrap();
        let keys: Vec<Vec<&str>> = sections.iter().map(Section::keys).collect();
        assert_eq!(keys, [vec!["b/c"], vec!["a.b"], vec!["x", "y"]]);
        assert_eq!(paths, ["src/C#/tests/**", "[#]notes[#]"]);
    }
}
