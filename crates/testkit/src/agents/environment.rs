//! The environment and the configuration files with which an agent talks to a scripted model.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::AgentCli;
use crate::scratch::search_path;

impl AgentCli {
    /// Writes the configuration that the agent needs into `home`, and returns the whole environment for it: it will
    /// talk to the scripted model at `server_url` and to nothing else. Start it with a cleared environment and these
    /// variables.
    pub fn prepare(self, home: &Path, server_url: &str) -> Vec<(String, String)> {
        match self {
            Self::Claude | Self::OlderClaude => claude_environment(home, server_url),
            Self::Codex => {
                write(&home.join(".codex/config.toml"), &codex_config(server_url));
                environment(home, &[("OPENAI_API_KEY", "dummy")])
            }
            Self::Gemini => {
                // Of a request that failed there are few repetitions, so that a test does not wait for long.
                let settings = json!({
                    "security": {"auth": {"selectedType": "gemini-api-key"}},
                    "model": {"name": Self::Gemini.model()},
                    "general": {
                        "enableAutoUpdate": false,
                        "enableAutoUpdateNotification": false,
                        "maxAttempts": 2,
                    },
                    "privacy": {"usageStatisticsEnabled": false},
                });
                write(&home.join(".gemini/settings.json"), &settings.to_string());
                let variables = [
                    ("GEMINI_API_KEY", "dummy"),
                    ("GOOGLE_GEMINI_BASE_URL", server_url),
                    ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
                    // Otherwise it starts itself a second time, and signals do not reach the one that works.
                    ("GEMINI_CLI_NO_RELAUNCH", "true"),
                ];
                environment(home, &variables)
            }
            Self::Opencode => {
                let config = opencode_config(server_url);
                let variables = [
                    ("OPENCODE_CONFIG_CONTENT", config.as_str()),
                    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
                    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
                    // It installs the package for its plugins in the background, and does without when it cannot.
                    ("npm_config_offline", "true"),
                ];
                environment(home, &variables)
            }
        }
    }
}

fn claude_environment(home: &Path, server_url: &str) -> Vec<(String, String)> {
    [
        ("ANTHROPIC_BASE_URL", server_url),
        ("ANTHROPIC_API_KEY", "dummy"),
        ("HOME", &home.to_string_lossy()),
        ("PATH", &search_path()),
        // Lets bypassPermissions work for root, as tests in containers often are.
        ("IS_SANDBOX", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// What every other agent gets. Temporary files go below the home: some agents leave reports of errors behind.
fn environment(home: &Path, variables: &[(&str, &str)]) -> Vec<(String, String)> {
    let temporary = home.join("tmp");
    create(&temporary);
    let (home, temporary) = (home.to_string_lossy(), temporary.to_string_lossy());
    let common = [("HOME", &*home), ("TMPDIR", &*temporary), ("PATH", &*search_path())];
    let all = common.iter().chain(variables);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The retries are few, so that a test of a failing API does not wait for long.
fn codex_config(server_url: &str) -> String {
    let model = AgentCli::Codex.model();
    format!(
        r#"model = "{model}"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{server_url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 1
stream_max_retries = 1

[analytics]
enabled = false
"#
    )
}

/// The prices are round, so that a test can work out a cost: 1, 0.1 and 10 dollars for a million tokens of input, of
/// input from the cache, and of output.
fn opencode_config(server_url: &str) -> String {
    let model = AgentCli::Opencode.model();
    let models = json!({"scripted-model": {
        "name": "Scripted model",
        "tool_call": true,
        "limit": {"context": 200_000, "output": 32_000},
        "cost": {"input": 1, "cache_read": 0.1, "output": 10},
    }});
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": format!("{server_url}/v1"), "apiKey": "dummy"},
        "models": models,
    });
    json!({
        "provider": {"scripted": provider},
        "enabled_providers": ["scripted"],
        "model": model,
        "small_model": model,
    })
    .to_string()
}

fn write(path: &Path, text: &str) {
    path.parent().into_iter().for_each(create);
    fs::write(path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}

fn create(folder: &Path) {
    fs::create_dir_all(folder).unwrap_or_else(|error| panic!("cannot create {}: {error}", folder.display()));
}
