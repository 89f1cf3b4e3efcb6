//! The agent over model APIs that is part of the binary.

mod support;

use support::{FILE, error, loaded};
use towline_agent::{ApiSettings, Fetch, Kind, OpenaiApi, Provider};
use towline_core::{MicroUsd, Price};

fn agent(lines: &str) -> String {
    format!("[agents.mine]\nkind = \"builtin\"\n{lines}")
}

fn problem(lines: &str) -> String {
    error(&agent(lines)).replace(FILE, "FILE")
}

const LEAST: &str = "provider = \"anthropic\"\nmodel = \"m\"";

#[test]
fn a_provider_and_a_model_are_all_that_must_be_set() {
    let mut loaded = loaded(&agent(LEAST));
    let mine = &loaded.config.agents["mine"];
    assert_eq!((mine.kind, mine.model.as_deref()), (Kind::Builtin, Some("m")));
    assert_eq!(mine.api, ApiSettings { provider: Provider::Anthropic, ..ApiSettings::default() });
    assert_eq!(mine.api.key_variable(), "ANTHROPIC_API_KEY");
    assert!(mine.command.is_empty());
    assert_eq!(loaded.warnings, []);
    loaded.config.set_own_program("/bin/towline");
    assert_eq!(loaded.config.agents["mine"].command, ["/bin/towline"]);
    assert_eq!(loaded.config.agents["claude"].command, ["claude"]);
}

#[test]
fn every_key_reaches_the_agent_and_prices_are_by_model() {
    let loaded = loaded(&agent(
        "provider = \"openai\"\nmodel = \"m\"\napi = \"responses\"\nbase_url = \"https://host/v1\"\n\
         key_env = \"KEY\"\ncontext_window = 1000\nmax_output = 100\nfetch = true\n\
         [prices.\"m.1\"]\ninput = 1.25\noutput = 10\ncache_read = 0.125",
    ));
    let price = Price {
        input: MicroUsd(1_250_000),
        output: MicroUsd(10_000_000),
        cache_read: Some(MicroUsd(125_000)),
        ..Price::default()
    };
    let wanted = ApiSettings {
        provider: Provider::Openai,
        api: Some(OpenaiApi::Responses),
        base_url: Some("https://host/v1".to_owned()),
        key_env: Some("KEY".to_owned()),
        context_window: Some(1_000),
        max_output: Some(100),
        fetch: Fetch::On,
    };
    assert_eq!(loaded.config.agents["mine"].api, wanted);
    // Every agent's cost may be estimated by them.
    for agent in ["mine", "claude"] {
        assert_eq!(loaded.config.agents[agent].prices, [("m.1".to_owned(), price)].into(), "{agent}");
    }
    assert_eq!(loaded.config.agents["mine"].api.key_variable(), "KEY");
    assert_eq!(loaded.warnings, []);
}

#[test]
fn what_is_missing_or_does_not_fit_is_refused_with_the_fix() {
    for (lines, message) in [
        (
            "model = \"m\"",
            "`agents.mine` has no `provider` in FILE (line 2, column 1); \
             an agent of the kind `builtin` needs it, such as `provider = \"openai\"`",
        ),
        (
            "provider = \"gemini\"",
            "`agents.mine` has no `model` in FILE (line 2, column 1); \
             an agent of the kind `builtin` needs it, such as `model = \"qwen3\"`",
        ),
        (
            "provider = \"gemini\"\nmodel = \"m\"\napi = \"chat\"",
            "`agents.mine.api` is only for `provider = \"openai\"` in FILE (line 5, column 1); take it out",
        ),
        (
            "provider = \"openai\"\nmodel = \"m\"\nbase_url = \"https://me:secret@host/v1\"",
            "`agents.mine.base_url` is no address of an API in FILE (line 5, column 1); \
             write the address of the API, such as `http://127.0.0.1:11434/v1`; \
             a key belongs into the variable that `key_env` names",
        ),
        (
            "provider = \"openai\"\nmodel = \"m\"\ncontext_window = 0",
            "`agents.mine.context_window` cannot be 0 in FILE (line 5, column 1); \
             write a number of tokens, or take it out",
        ),
        (
            "provider = \"openai\"\nmodel = \"m\"\n[prices.m]\ninput = 1",
            "`prices.m` lacks `input` or `output` in FILE (line 5, column 9); \
             set what a million tokens cost, such as `input = 1.25` and `output = 10`",
        ),
    ] {
        assert_eq!(problem(lines), message, "{lines}");
    }
    assert_eq!(
        error("agents.claude.fetch = true").replace(FILE, "FILE"),
        "`agents.claude.fetch` does not go with the kind `claude` in FILE (line 1, column 15); \
         it is for agents of the kind `builtin`"
    );
}
