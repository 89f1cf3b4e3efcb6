//! The process to start: one builder for fresh and resumed sessions. Most settings go over the protocol; the rest is
//! here.

use towline_core::SessionId;

use super::builtin;
use super::preset::Preset;
use crate::environment::{Environment, Extra, environment};
use crate::protocol::LaunchContext;
use crate::settings::AgentSettings;

/// Variables that a Gemini CLI sets for its child processes.
const OUTER_GEMINI: [&str; 2] = ["GEMINI_CLI", "GEMINI_CLI_IDE_SERVER_PORT"];

/// Variables that an opencode sets for its child processes, and those of its server.
const OUTER_OPENCODE: [&str; 6] = [
    "OPENCODE",
    "OPENCODE_PID",
    "OPENCODE_CLIENT",
    "OPENCODE_SERVER_PASSWORD",
    "OPENCODE_SERVER_USERNAME",
    "OPENCODE_WORKSPACE_ID",
];

/// The keys of the providers that opencode supports.
const PROVIDER_KEYS: [&str; 13] = [
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENROUTER_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "DEEPSEEK_API_KEY",
    "XAI_API_KEY",
    "TOGETHER_API_KEY",
    "MOONSHOT_API_KEY",
];

/// Program and arguments. The prompt is not among them: it goes over standard input.
pub(super) fn argv(settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<String> {
    let mut argv = settings.command.clone();
    let has = |words: &[&str]| settings.command.iter().any(|word| words.contains(&word.as_str()));
    match Preset::of(settings) {
        Preset::Gemini => {
            if !has(&["--acp", "--experimental-acp"]) {
                argv.push("--acp".to_owned());
            }
            argv.extend(settings.model_option(context.model));
            argv.extend(settings.dirs.iter().map(|dir| format!("--include-directories={dir}")));
        }
        Preset::Opencode => {
            if !has(&["acp"]) {
                argv.push("acp".to_owned());
            }
            argv.extend(["--cwd".to_owned(), context.directory.to_owned()]);
        }
        Preset::Builtin => argv.extend(builtin::arguments(settings, context)),
        Preset::Plain => {}
    }
    argv.extend(settings.args.iter().cloned());
    argv
}

/// A conversation in opencode's own screen. Further arguments of the settings are for `opencode acp` alone.
pub(super) fn opencode_screen(
    settings: &AgentSettings,
    session: &SessionId,
    model: Option<&str>,
) -> Vec<String> {
    let mut argv: Vec<String> = settings.command.iter().filter(|word| *word != "acp").cloned().collect();
    argv.extend(["--session".to_owned(), session.to_string()]);
    argv.extend(settings.model_option(model));
    argv
}

/// The whole environment.
pub(super) fn env(settings: &AgentSettings, inherited: &Environment) -> Environment {
    let preset = Preset::of(settings);
    let mut env = environment(settings, inherited, &extra(preset));
    if preset == Preset::Opencode && settings.must_ask() {
        // By default it asks for nothing. The user's environment must not override this.
        env.insert("OPENCODE_PERMISSION".to_owned(), r#"{"*":"ask"}"#.to_owned());
    }
    let mut default = |name: &str, value: &str| {
        env.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    };
    match preset {
        Preset::Gemini => {
            // Otherwise it runs itself a second time, and signals do not reach the working process.
            default("GEMINI_CLI_NO_RELAUNCH", "true");
            default("GEMINI_CLI_TRUST_WORKSPACE", "true");
        }
        Preset::Opencode => default("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        Preset::Builtin => {
            let key = settings.api.key_variable();
            if let Some(value) = inherited.get(key) {
                env.entry(key.to_owned()).or_insert_with(|| value.clone());
            }
        }
        Preset::Plain => {}
    }
    env
}

fn extra(preset: Preset) -> Extra {
    match preset {
        Preset::Gemini => {
            Extra { prefixes: vec!["GEMINI_", "GOOGLE_"], except: OUTER_GEMINI.to_vec(), ..Extra::default() }
        }
        Preset::Opencode => Extra {
            names: PROVIDER_KEYS.to_vec(),
            prefixes: vec!["OPENCODE_"],
            except: OUTER_OPENCODE.to_vec(),
            ..Extra::default()
        },
        // It stores its conversations in Towline's state directory.
        Preset::Builtin => Extra { names: vec!["TOWLINE_HOME"], ..Extra::default() },
        Preset::Plain => Extra::default(),
    }
}
