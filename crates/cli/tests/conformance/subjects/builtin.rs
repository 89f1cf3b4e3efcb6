//! The agent inside the binary, in each of its wire formats.

use std::path::Path;

use serde_json::json;
use towline_testkit::model::Reply;

use crate::stage::Line;
use crate::subject::{Facts, Subject, is_around};

struct Builtin {
    name: &'static str,
    provider: &'static str,
    /// Which of the provider's APIs, where it has two.
    api: Option<&'static str>,
    /// Where the scripted model speaks so.
    path: &'static str,
    key: &'static str,
    /// One wire format shows that everything works without a sandbox as well.
    is_confined: bool,
}

/// Over `OpenAI` Responses.
pub(crate) fn builtin_responses() -> &'static dyn Subject {
    &Builtin {
        name: "builtin-responses",
        provider: "openai",
        api: Some("responses"),
        path: "/v1",
        key: "OPENAI_API_KEY",
        is_confined: true,
    }
}

/// Over `OpenAI` chat completions.
pub(crate) fn builtin_chat() -> &'static dyn Subject {
    &Builtin {
        name: "builtin-chat",
        provider: "openai",
        api: Some("chat"),
        path: "/v1",
        key: "OPENAI_API_KEY",
        is_confined: false,
    }
}

pub(crate) fn builtin_gemini() -> &'static dyn Subject {
    &Builtin {
        name: "builtin-gemini",
        provider: "gemini",
        api: None,
        path: "/v1beta",
        key: "GEMINI_API_KEY",
        is_confined: true,
    }
}

/// Over Anthropic Messages.
pub(crate) fn builtin_anthropic() -> &'static dyn Subject {
    &Builtin {
        name: "builtin-anthropic",
        provider: "anthropic",
        api: None,
        path: "/v1",
        key: "ANTHROPIC_API_KEY",
        is_confined: true,
    }
}

impl Subject for Builtin {
    fn name(&self) -> &'static str {
        self.name
    }

    fn settings(&self) -> String {
        let api = self.api.map(|api| format!("api = {api:?}\n")).unwrap_or_default();
        format!("kind = \"builtin\"\nprovider = {:?}\nmodel = \"scripted-model\"\n{api}", self.provider)
    }

    fn prepare(&self, _home: &Path, server_url: &str, _lines: &[Line]) -> Vec<(String, String)> {
        let base_url = format!("TOWLINE_SET_agents__{}__base_url", self.name);
        vec![(base_url, format!("{server_url}{}", self.path)), (self.key.to_owned(), "dummy".to_owned())]
    }

    fn is_it(&self, command: &str) -> bool {
        command.contains(" acp --provider ") && !is_around(command)
    }

    fn shell_call(&self, command: &str) -> Reply {
        Reply::tool("run", json!({ "command": command }))
    }

    fn write_call(&self, path: &Path, content: &str) -> Reply {
        Reply::tool("write", json!({"path": path, "content": content}))
    }

    fn ask_tool(&self) -> &'static str {
        "mcp__towline__ask"
    }

    fn used_up_quota(&self) -> Reply {
        Reply::rate_limited().header("retry-after", 3_600)
    }

    fn forget_conversations(&self) -> &'static str {
        if self.is_confined {
            "rm -rf \"$HOME\"/../towline/homes/*/own/*sessions"
        } else {
            "rm -r \"$HOME/../towline/sessions\""
        }
    }

    fn facts(&self) -> Facts {
        Facts { is_confined: self.is_confined, ..Facts::USUAL }
    }
}
