//! ACP agents as a kind of agent. Most settings go over the protocol; the rest is here, for each known program.

use std::path::{Path, PathBuf};
use std::time::Duration;

use towline_core::{PriceList, SessionId};

use super::builtin;
use super::preset::Preset;
use super::protocol::AcpProtocol;
use crate::abilities::{self, Abilities, Ability};
use crate::environment::{Environment, Extra, environment};
use crate::own_files::{OwnFiles, named_or_below_home, path_in};
use crate::protocol::{Agent, EXIT_PATIENCE, LaunchContext, Protocol, Resuming};
use crate::settings::AgentSettings;
use crate::sign_in::{SignIn, SignInClue};
use crate::version::{TestedVersions, Version};

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

/// An agent that speaks the Agent Client Protocol.
pub(crate) enum Acp {
    /// Any program that speaks the protocol.
    Any,
    /// The agent inside the binary.
    Builtin,
}

impl Agent for Acp {
    fn argv(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<String> {
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
    fn interactive(
        &self,
        settings: &AgentSettings,
        session: &SessionId,
        model: Option<&str>,
    ) -> Option<Vec<String>> {
        if Preset::of(settings) != Preset::Opencode {
            return None;
        }
        let mut argv: Vec<String> = settings.command.iter().filter(|word| *word != "acp").cloned().collect();
        argv.extend(["--session".to_owned(), session.to_string()]);
        argv.extend(settings.model_option(model));
        Some(argv)
    }

    fn protocol(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Box<dyn Protocol> {
        Box::new(AcpProtocol::new(settings, context))
    }

    fn sign_in_hint(&self, settings: &AgentSettings) -> String {
        let program = settings.command.first().map_or("", String::as_str);
        match Preset::of(settings) {
            Preset::Gemini => {
                format!(
                    "run `{program}` and choose how to sign in, or set GEMINI_API_KEY and choose it there once"
                )
            }
            Preset::Opencode => format!("run `{program} auth login`, or set the key of its provider"),
            Preset::Builtin => format!("set {} to a valid key", settings.api.key_variable()),
            Preset::Plain => format!("run `{program}` and sign in there"),
        }
    }

    /// What shows that the program is signed in. Nothing is known about an unknown program.
    fn sign_in(&self, settings: &AgentSettings, environment: &Environment) -> SignIn {
        let below_home =
            |path: &str| environment.get("HOME").map(|home| SignInClue::File(Path::new(home).join(path)));
        let (variables, file): (&[&'static str], _) = match Preset::of(settings) {
            Preset::Gemini => (&["GEMINI_API_KEY", "GOOGLE_API_KEY"], ".gemini/oauth_creds.json"),
            Preset::Opencode => (&["OPENCODE_CONFIG_CONTENT"], ".local/share/opencode/auth.json"),
            // A self-hosted server needs no key.
            Preset::Builtin if settings.api.base_url.is_none() => {
                let key = settings.api.key_variable().to_owned();
                return SignIn::ShownBy(vec![SignInClue::Variable(key.into())]);
            }
            Preset::Builtin | Preset::Plain => return SignIn::NotNeeded,
        };
        let variables = variables.iter().map(|name| SignInClue::Variable((*name).into()));
        SignIn::ShownBy(variables.chain(below_home(file)).collect())
    }

    fn own_files(&self, settings: &AgentSettings, environment: &Environment) -> Vec<OwnFiles> {
        match Preset::of(settings) {
            Preset::Gemini => gemini_files(environment),
            Preset::Opencode => opencode_files(environment),
            Preset::Builtin | Preset::Plain => Vec::new(),
        }
    }

    fn environment(&self, settings: &AgentSettings, inherited: &Environment) -> Environment {
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

    /// The program alone: its arguments make it an ACP agent.
    fn version_command(&self, settings: &AgentSettings) -> Option<Vec<String>> {
        if Preset::of(settings) == Preset::Builtin {
            return None;
        }
        Some(settings.command.iter().take(1).cloned().chain(["--version".to_owned()]).collect())
    }

    fn version(&self, output: &str) -> Option<Version> {
        output.lines().find_map(Version::find)
    }

    /// The version of the recordings and of the tests with the real program.
    fn tested(&self, settings: &AgentSettings) -> Option<TestedVersions> {
        match Preset::of(settings) {
            Preset::Gemini => Some(TestedVersions { oldest: [0, 61, 0], newest: [0, 61, 0] }),
            Preset::Opencode => Some(TestedVersions { oldest: [1, 18, 33], newest: [1, 18, 34] }),
            Preset::Builtin | Preset::Plain => None,
        }
    }

    fn install_hint(&self, settings: &AgentSettings) -> Option<&'static str> {
        match Preset::of(settings) {
            Preset::Gemini => Some("install Gemini CLI (`npm install -g @google/gemini-cli`)"),
            Preset::Opencode => Some("install opencode (`npm install -g opencode-ai`)"),
            Preset::Builtin | Preset::Plain => None,
        }
    }

    /// Gemini CLI never exits by itself while an MCP server of its own runs, although it has nothing left to do.
    fn exit_patience(&self, settings: &AgentSettings) -> Duration {
        match Preset::of(settings) {
            Preset::Gemini => Duration::from_millis(300),
            Preset::Opencode | Preset::Builtin | Preset::Plain => EXIT_PATIENCE,
        }
    }

    fn resuming(&self, settings: &AgentSettings) -> Resuming {
        Preset::of(settings).resuming()
    }

    /// Its abilities. The protocol leaves most to the agent, so little is certain for an unknown program.
    fn abilities(&self, settings: &AgentSettings) -> Abilities {
        let any = Abilities {
            resume: Ability::Partly("if it offers `session/resume` or `session/load`"),
            steering: Ability::Partly("it gets your messages after its turn, in the same process"),
            permissions: Ability::Partly("its requests are answered, but it may not send any"),
            questions: Ability::Partly("if it sends a form of the protocol, which waits for your answer"),
            compaction: Ability::Partly("if it has a command `compact`"),
            tokens: Ability::Partly("if it reports them with the answer to a prompt"),
            cost: Ability::Partly("if it reports the cost; otherwise a limit in dollars does not stop it"),
            mcp: Ability::Yes("with the session"),
        };
        match Preset::of(settings) {
            Preset::Gemini => Abilities {
                resume: abilities::resume(self.resuming(settings)),
                permissions: abilities::permissions(settings),
                compaction: Ability::No("there is never an earlier conversation to summarise"),
                tokens: Ability::Yes("per model, at the end of the turn"),
                cost: Ability::Partly(abilities::ESTIMATED_COST),
                ..any
            },
            Preset::Opencode => Abilities {
                resume: abilities::resume(self.resuming(settings)),
                permissions: abilities::permissions(settings),
                compaction: Ability::Yes("with `/compact`, before the prompt"),
                tokens: Ability::Partly("only those of a turn's last step: limit `usd` instead"),
                cost: Ability::Yes("in dollars, by its own count"),
                ..any
            },
            Preset::Builtin => Abilities {
                resume: abilities::resume(self.resuming(settings)),
                permissions: abilities::permissions(settings),
                questions: Ability::No("it asks with Towline's tool `ask`"),
                compaction: Ability::Yes(
                    "with `/compact`, and automatically when its context is nearly full",
                ),
                tokens: Ability::Yes("per answer, by its provider's count"),
                cost: priced(settings),
                ..any
            },
            Preset::Plain => any,
        }
    }

    fn needs_command(&self) -> bool {
        matches!(self, Self::Any)
    }

    fn own_settings(&self) -> &'static [&'static str] {
        match self {
            Self::Any => &[],
            Self::Builtin => {
                &["provider", "api", "base_url", "key_env", "context_window", "max_output", "fetch"]
            }
        }
    }

    fn takes_http_servers(&self) -> bool {
        matches!(self, Self::Any)
    }

    fn reports_unknown_price(&self) -> bool {
        matches!(self, Self::Builtin)
    }
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

fn gemini_files(environment: &Environment) -> Vec<OwnFiles> {
    let home = path_in(environment, "GEMINI_CLI_HOME").or_else(|| path_in(environment, "HOME"));
    let files = |home: PathBuf| OwnFiles {
        credentials: &["oauth_creds.json"],
        settings: &["GEMINI.md", ".env", "commands", "extensions", "policies", "settings.json", "skills"],
        notes: &["google_accounts.json", "installation_id", "trustedFolders.json"],
        ..OwnFiles::at(home.join(".gemini"))
    };
    home.into_iter().map(files).collect()
}

fn opencode_files(environment: &Environment) -> Vec<OwnFiles> {
    let data = named_or_below_home(environment, "XDG_DATA_HOME", ".local/share");
    let data = data.map(|data| OwnFiles {
        credentials: &["auth.json", "mcp-auth.json"],
        ..OwnFiles::at(data.join("opencode"))
    });
    let configuration = named_or_below_home(environment, "XDG_CONFIG_HOME", ".config");
    let configuration = configuration.map(|configuration| OwnFiles {
        settings: &[
            "AGENTS.md",
            "agent",
            "agents",
            "command",
            "commands",
            "mode",
            "modes",
            "opencode.json",
            "opencode.jsonc",
            "config.json",
            "plugin",
            "plugins",
            "skill",
            "skills",
            "themes",
            "tool",
            "tools",
        ],
        ..OwnFiles::at(configuration.join("opencode"))
    });
    data.into_iter().chain(configuration).collect()
}

fn priced(settings: &AgentSettings) -> Ability {
    let model = settings.model.as_deref().unwrap_or_default();
    if settings.prices.contains_key(model) {
        Ability::Yes("estimated from the prices of the configuration")
    } else if PriceList::with(&settings.prices).knows(model) {
        Ability::Partly("estimated from the table of prices")
    } else {
        Ability::No("no price is set for its model: limit `tokens`, or set `[prices]`")
    }
}
