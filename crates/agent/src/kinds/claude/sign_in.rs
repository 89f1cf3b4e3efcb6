//! Where Claude Code gets its credentials, as far as that is visible from outside.

use std::path::PathBuf;

use super::agent::{CLOUDS, is_on};
use crate::environment::Environment;
use crate::own_files::{OwnFiles, path_in};
use crate::sign_in::SignInClue;

/// Variables that are credentials.
const CREDENTIALS: [&str; 3] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];

/// What shows that it is signed in with this environment, the most certain first.
pub(super) fn clues(environment: &Environment) -> Vec<SignInClue> {
    let has = |name: &&str| environment.get(*name).is_some_and(|value| !value.is_empty());
    let variables = CLOUDS
        .into_iter()
        .filter(|name| is_on(environment.get(*name)))
        .chain(CREDENTIALS.into_iter().filter(has))
        .map(|name| SignInClue::Variable(name.into()));
    let folder = settings_folder(environment);
    let files = folder.into_iter().flat_map(|folder| {
        [
            SignInClue::File(folder.join(".credentials.json")),
            SignInClue::Setting { file: folder.join("settings.json"), key: "apiKeyHelper" },
        ]
    });
    variables.chain(files).collect()
}

/// Where it keeps its files, and what it needs of them. One file is beside the directory, unless a variable names the directory.
pub(super) fn own_files(environment: &Environment) -> Vec<OwnFiles> {
    const NOTES: &[&str] = &[".claude.json"];
    let Some(directory) = settings_folder(environment).filter(|folder| folder.is_absolute()) else {
        return Vec::new();
    };
    let files = |notes| OwnFiles {
        credentials: &[".credentials.json"],
        settings: &[
            "CLAUDE.md",
            "agents",
            "commands",
            "hooks",
            "keybindings.json",
            "local",
            "output-styles",
            "plugins",
            "rules",
            "settings.json",
            "settings.local.json",
            "skills",
            "workflows",
        ],
        notes,
        ..OwnFiles::at(directory)
    };
    let is_named = environment.get("CLAUDE_CONFIG_DIR").is_some_and(|folder| !folder.is_empty());
    match path_in(environment, "HOME").filter(|_| !is_named) {
        Some(home) => vec![files(&[]), OwnFiles { notes: NOTES, ..OwnFiles::at(home) }],
        None => vec![files(NOTES)],
    }
}

fn settings_folder(environment: &Environment) -> Option<PathBuf> {
    let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("CLAUDE_CONFIG_DIR").or_else(|| Some(variable("HOME")?.join(".claude")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clues_of(variables: &[(&str, &str)]) -> Vec<SignInClue> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        clues(&variables.collect())
    }

    #[test]
    fn variables_count_when_set_and_switches_when_on() {
        let set = [
            ("ANTHROPIC_API_KEY", "k"),
            ("ANTHROPIC_AUTH_TOKEN", ""),
            ("CLAUDE_CODE_OAUTH_TOKEN", "t"),
            ("CLAUDE_CODE_USE_BEDROCK", "0"),
            ("CLAUDE_CODE_USE_VERTEX", "1"),
        ];
        let expected = ["CLAUDE_CODE_USE_VERTEX", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"];
        assert_eq!(clues_of(&set), expected.map(|name| SignInClue::Variable(name.into())));
    }

    #[test]
    fn files_are_searched_in_the_home_or_the_configured_directory() {
        let in_folder = |folder: &str| {
            let folder = PathBuf::from(folder);
            let settings = folder.join("settings.json");
            [
                SignInClue::File(folder.join(".credentials.json")),
                SignInClue::Setting { file: settings, key: "apiKeyHelper" },
            ]
        };
        assert_eq!(clues_of(&[("HOME", "/h")]), in_folder("/h/.claude"));
        assert_eq!(clues_of(&[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c")]), in_folder("/c"));
        assert_eq!(clues_of(&[]), []);
    }
}
