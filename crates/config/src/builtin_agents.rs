//! The keys that only agents of the kind `builtin` have.

use towline_agent::{ApiSettings, Fetch, Kind, OpenaiApi, Provider};

use crate::settings::Settings;

/// Reads them. Problems are reported to `settings`; none is the answer when there are any.
pub(crate) fn read(settings: &mut Settings, name: &str, kind: Kind) -> Option<ApiSettings> {
    if kind != Kind::Builtin {
        return Some(ApiSettings::default());
    }
    let problems = settings.problems.len();
    let word = |key| settings.get::<String>(&["agents", name, key]);
    let provider =
        Provider::ALL.into_iter().find(|provider| Some(provider.name()) == word("provider").as_deref());
    let api = ApiSettings {
        provider: provider.unwrap_or_default(),
        api: OpenaiApi::ALL.into_iter().find(|api| Some(api.name()) == word("api").as_deref()),
        base_url: word("base_url"),
        key_env: word("key_env"),
        context_window: settings.get(&["agents", name, "context_window"]),
        max_output: settings.get(&["agents", name, "max_output"]),
        fetch: match settings.get(&["agents", name, "fetch"]) {
            Some(true) => Fetch::On,
            _ => Fetch::Off,
        },
    };
    check(settings, name, provider, &api);
    (settings.problems.len() == problems).then_some(api)
}

fn check(settings: &mut Settings, name: &str, provider: Option<Provider>, api: &ApiSettings) {
    let path = |key| ["agents", name, key];
    for (key, example) in [("provider", "openai"), ("model", "qwen3")] {
        if settings.place(&path(key)).is_none()
            && let Some(place) = settings.place(&path("kind")).cloned()
        {
            let fix = format!("an agent of the kind `builtin` needs it, such as `{key} = \"{example}\"`");
            settings.report(format!("`agents.{name}` has no `{key}`"), place, fix);
            return;
        }
    }
    if api.api.is_some() && provider != Some(Provider::Openai) {
        settings.report_key(&path("api"), "is only for `provider = \"openai\"`", "take it out");
    }
    if api.base_url.as_deref().is_some_and(|url| !is_web_address(url)) {
        let fix = "write the address of the API, such as `http://127.0.0.1:11434/v1`; \
                   a key belongs into the variable that `key_env` names";
        settings.report_key(&path("base_url"), "is no address of an API", fix);
    }
    for key in ["context_window", "max_output"] {
        if settings.get::<u64>(&path(key)) == Some(0) {
            settings.report_key(&path(key), "cannot be 0", "write a number of tokens, or take it out");
        }
    }
}

/// An address with a host, and without a name and a password in it.
fn is_web_address(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    !host.is_empty() && !host.contains('@') && !url.contains(char::is_whitespace)
}
