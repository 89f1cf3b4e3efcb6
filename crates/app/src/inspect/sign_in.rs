//! Whether an agent is signed in, as far as that can be seen: no network, and never a value.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};
use towline_agent::{AgentSettings, SignIn, SignInClue, agent};
use towline_api::SignedIn;

/// A settings file beyond this size is not looked into.
const SETTINGS_BYTES: u64 = 1 << 20;

/// Looks for what would show that the agent is signed in.
pub(crate) fn look(settings: &AgentSettings, environment: &BTreeMap<String, String>) -> SignedIn {
    match agent(settings.kind).sign_in(settings, environment) {
        SignIn::NotNeeded => SignedIn::NotNeeded,
        SignIn::ShownBy(clues) => match clues.iter().find_map(|clue| shown_by(clue, environment)) {
            Some(by) => SignedIn::Yes { by },
            None => SignedIn::NotSeen,
        },
    }
}

fn shown_by(clue: &SignInClue, environment: &BTreeMap<String, String>) -> Option<String> {
    match clue {
        SignInClue::Variable(name) => {
            environment.get(&**name).filter(|value| !value.is_empty()).map(|_| name.to_string())
        }
        SignInClue::File(path) => path.is_file().then(|| path.display().to_string()),
        SignInClue::Setting { file, key } => {
            has_key(file, key).then(|| format!("{key} in {}", file.display()))
        }
    }
}

fn has_key(file: &Path, key: &str) -> bool {
    let mut text = String::new();
    let read = towline_files::open_following(file)
        .and_then(|file| file.take(SETTINGS_BYTES).read_to_string(&mut text));
    read.is_ok() && serde_json::from_str::<Map<String, Value>>(&text).is_ok_and(|keys| keys.contains_key(key))
}

/// The variables that an agent needs which can be signed in by nothing else, if none of them is set. Where a file or a setting could
/// sign it in as well, nothing is known to be missing.
pub(crate) fn missing_variables(
    settings: &AgentSettings,
    environment: &BTreeMap<String, String>,
) -> Option<String> {
    let agent = agent(settings.kind);
    let environment = agent.environment(settings, environment);
    let SignIn::ShownBy(clues) = agent.sign_in(settings, &environment) else { return None };
    let variable = |clue: &SignInClue| match clue {
        SignInClue::Variable(name) => Some(name.to_string()),
        SignInClue::File(_) | SignInClue::Setting { .. } => None,
    };
    let names: Vec<String> = clues.iter().map(variable).collect::<Option<_>>()?;
    let is_set = clues.iter().any(|clue| shown_by(clue, &environment).is_some());
    (!names.is_empty() && !is_set).then(|| names.join(" or "))
}
