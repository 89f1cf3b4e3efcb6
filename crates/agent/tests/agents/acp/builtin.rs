//! The agent inside the binary, from Towline's side.

use std::collections::BTreeMap;

use serde_json::json;
use towline_agent::{
    AgentSettings, Fetch, Kind, OpenaiApi, Permission, Protocol, Provider, SignIn, SignInClue, agent,
};
use towline_core::{AgentEvent, End, MicroUsd, Price, Role, SessionPlan, Tokens, Usage};

use super::support::{HELLO, PROMPT, end, events, feed, fresh, give, update, written};
use crate::support::{plain_launch, plain_settings, resume};

fn settings() -> AgentSettings {
    let mut settings = plain_settings(Kind::Builtin, &["/bin/towline"]);
    settings.model = Some("m".to_owned());
    settings.api.base_url = Some("http://127.0.0.1:1/v1".to_owned());
    settings
}

fn priced(settings: AgentSettings) -> AgentSettings {
    let price = Price {
        input: MicroUsd(1_250_000),
        output: MicroUsd(10_000_000),
        cache_read: Some(MicroUsd(125_000)),
        ..Price::default()
    };
    AgentSettings { prices: [("m".to_owned(), price)].into(), ..settings }
}

fn argv(settings: &AgentSettings) -> Vec<String> {
    let (session, none) = (fresh(), BTreeMap::new());
    agent(Kind::Builtin).plan(settings, &plain_launch(&session, PROMPT, &none)).argv
}

const SESSION: &str = r#"{"jsonrpc":"2.0","id":"session","result":{"sessionId":"s","modes":{"currentModeId":"ask"},"models":{"currentModelId":"m"}}}"#;

fn in_turn(settings: &AgentSettings) -> Box<dyn Protocol> {
    let (session, none) = (fresh(), BTreeMap::new());
    let mut protocol = agent(Kind::Builtin).protocol(settings, &plain_launch(&session, PROMPT, &none));
    protocol.start();
    feed(&mut *protocol, HELLO);
    let opened = feed(&mut *protocol, SESSION);
    let mode = json!({"jsonrpc": "2.0", "id": "mode", "method": "session/set_mode", "params": {"modeId": "bypass", "sessionId": "s"}});
    assert_eq!(written(&opened), [mode]);
    let prompted = feed(&mut *protocol, r#"{"jsonrpc":"2.0","id":"mode","result":{}}"#);
    assert_eq!(written(&prompted)[0]["method"], "session/prompt");
    protocol
}

#[test]
fn its_settings_are_arguments_except_the_key() {
    assert_eq!(
        argv(&settings()),
        [
            "/bin/towline",
            "acp",
            "--provider",
            "openai",
            "--base-url",
            "http://127.0.0.1:1/v1",
            "--model",
            "m"
        ]
    );
    let mut all = priced(settings());
    all.max_turns = Some(7);
    all.dirs = vec!["/docs".to_owned()];
    all.args = vec!["--last".to_owned()];
    all.api.provider = Provider::Openai;
    all.api.api = Some(OpenaiApi::Chat);
    all.api.key_env = Some("KEY".to_owned());
    all.api.context_window = Some(1_000);
    all.api.max_output = Some(100);
    all.api.fetch = Fetch::On;
    let words = argv(&all).join(" ");
    assert_eq!(
        words,
        "/bin/towline acp --provider openai --api chat --base-url http://127.0.0.1:1/v1 --key-env KEY --model m \
         --context-window 1000 --max-output 100 --max-turns 7 \
         --price input=1.25,output=10,cache_read=0.125 --dir /docs --fetch --last"
    );
}

#[test]
fn its_environment_has_its_own_key_and_the_state_directory_alone() {
    let inherited: BTreeMap<String, String> =
        ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MY_KEY", "TOWLINE_HOME", "PATH"]
            .map(|name| (name.to_owned(), "x".to_owned()))
            .into();
    let names = |settings: &AgentSettings| -> Vec<String> {
        agent(Kind::Builtin).environment(settings, &inherited).into_keys().collect()
    };
    assert_eq!(names(&settings()), ["OPENAI_API_KEY", "PATH", "TOWLINE_HOME"]);
    let mut other = settings();
    other.api.key_env = Some("MY_KEY".to_owned());
    assert_eq!(names(&other), ["MY_KEY", "PATH", "TOWLINE_HOME"]);
}

#[test]
fn a_key_is_needed_unless_the_server_is_self_hosted() {
    let sign_in = |settings: &AgentSettings| agent(Kind::Builtin).sign_in(settings, &BTreeMap::new());
    assert_eq!(sign_in(&settings()), SignIn::NotNeeded);
    let mut remote = settings();
    remote.api.base_url = None;
    assert_eq!(sign_in(&remote), SignIn::ShownBy(vec![SignInClue::Variable("OPENAI_API_KEY".into())]));
}

#[test]
fn it_asks_only_where_something_may_be_forbidden() {
    for (permission, deny) in
        [(Permission::Ask, ""), (Permission::Deny, ""), (Permission::Bypass, "WebFetch")]
    {
        let mut settings = settings();
        settings.permission = permission;
        settings.deny = Some(deny.to_owned()).filter(|deny| !deny.is_empty()).into_iter().collect();
        let (session, none) = (fresh(), BTreeMap::new());
        let mut protocol = agent(Kind::Builtin).protocol(&settings, &plain_launch(&session, PROMPT, &none));
        protocol.start();
        feed(&mut *protocol, HELLO);
        // It is in that mode already.
        let opened = feed(&mut *protocol, SESSION);
        assert_eq!(written(&opened)[0]["method"], "session/prompt", "{permission:?}");
    }
}

#[test]
fn a_model_without_a_price_is_metered_in_tokens_with_a_notice() {
    let notices_of = |settings: &AgentSettings, session: SessionPlan| {
        let none = BTreeMap::new();
        let mut protocol = agent(Kind::Builtin).protocol(settings, &plain_launch(&session, PROMPT, &none));
        protocol.start();
        feed(&mut *protocol, HELLO);
        let opened = events(&feed(&mut *protocol, SESSION));
        opened.into_iter().filter(|event| matches!(event, AgentEvent::Notice { .. })).collect::<Vec<_>>()
    };
    let notices = |settings: &AgentSettings| notices_of(settings, fresh());
    let text = "no price is known for the model `m`: it is metered in tokens, and a limit in dollars does not stop it; \
                to have its cost counted, set `[prices.\"m\"]`";
    assert_eq!(notices(&settings()), [AgentEvent::Notice { text: text.to_owned() }]);
    assert_eq!(notices(&priced(settings())), []);
    // A resumed conversation has had the notice.
    assert_eq!(notices_of(&settings(), resume("s")), []);
}

#[test]
fn tokens_and_cost_of_each_answer_are_counted_once() {
    let mut protocol = in_turn(&priced(settings()));
    let reported = |cost: f64, input: u64| {
        update(json!({
            "sessionUpdate": "usage_update", "used": 130, "size": 1000,
            "cost": {"amount": cost, "currency": "USD"},
            "_meta": {"towline": {"model": "m", "input": input, "output": 20, "cache_read": 3, "cache_write": 4}},
        }))
    };
    let used = |input, cost| AgentEvent::Usage {
        model: Some("m".to_owned()),
        used: Usage {
            input: Tokens(input),
            output: Tokens(20),
            cache_read: Tokens(3),
            cache_write: Tokens(4),
            cost: MicroUsd(cost),
            ..Usage::default()
        },
        context_used: Some(Tokens(130)),
        context_size: Some(Tokens(1_000)),
    };
    assert_eq!(events(&give(&mut *protocol, &reported(0.002, 100))), [used(100, 2_000)]);
    assert_eq!(events(&give(&mut *protocol, &reported(0.005, 110))), [used(110, 3_000)]);
    let usage = json!({"totalTokens": 264, "inputTokens": 210, "outputTokens": 40});
    let answer =
        json!({"jsonrpc": "2.0", "id": "prompt", "result": {"stopReason": "end_turn", "usage": usage}});
    let last = events(&give(&mut *protocol, &answer));
    assert!(!last.iter().any(|event| matches!(event, AgentEvent::Usage { .. })), "{last:?}");
}

#[test]
fn its_own_notifications_are_read_from_it_alone() {
    let retrying = json!({"jsonrpc": "2.0", "method": "_towline/retrying", "params":
        {"sessionId": "s", "attempt": 2, "delayMs": 500, "status": 503, "message": "overloaded"}});
    let compacted = json!({"jsonrpc": "2.0", "method": "_towline/compacted", "params":
        {"sessionId": "s", "before": 900, "after": 100}});
    let mut protocol = in_turn(&settings());
    let error = "overloaded".to_owned();
    assert_eq!(
        events(&give(&mut *protocol, &retrying)),
        [AgentEvent::Retrying { status: Some(503), attempt: 2, delay_ms: 500, error: error.clone() }]
    );
    let half = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "half"}});
    give(&mut *protocol, &update(half));
    assert_eq!(
        events(&give(&mut *protocol, &retrying)),
        [
            AgentEvent::Message { role: Role::Assistant, text: "half".to_owned() },
            AgentEvent::Retrying { status: Some(503), attempt: 2, delay_ms: 500, error },
        ]
    );
    assert_eq!(
        events(&give(&mut *protocol, &compacted)),
        [AgentEvent::Compacted { before: Some(Tokens(900)), after: Some(Tokens(100)) }]
    );
    let mut other = super::support::in_turn(&super::support::settings("other"));
    assert!(matches!(events(&give(&mut *other, &retrying))[..], [AgentEvent::Unrecognised { .. }]));
}

#[test]
fn its_errors_have_the_class_that_it_names() {
    let end_after = |code: i64, data: serde_json::Value| {
        let mut protocol = in_turn(&settings());
        let error = json!({"code": code, "message": "words", "data": data});
        give(&mut *protocol, &json!({"jsonrpc": "2.0", "id": "prompt", "error": error}));
        end(&mut *protocol)
    };
    let message = || "words".to_owned();
    let until = "2030-01-02T03:04:05Z".parse().ok();
    for (code, data, wanted) in [
        (401, json!({"class": "auth"}), End::Auth { message: message() }),
        (429, json!({"class": "limited", "until": "2030-01-02T03:04:05Z"}), End::RateLimited { until }),
        (429, json!({"class": "limited", "until": "soon"}), End::RateLimited { until: None }),
        (400, json!({"class": "overflow"}), End::ContextOverflow),
        (413, json!({"class": "overflow"}), End::ContextOverflow),
        (503, json!({"class": "network"}), End::ServerError { status: None, message: message() }),
        (502, json!({"class": "cut_off"}), End::ServerError { status: None, message: message() }),
        (503, json!({"class": "server"}), End::ServerError { status: Some(503), message: message() }),
        (409, json!({"class": "server"}), End::ServerError { status: Some(409), message: message() }),
        (429, json!({"class": "auth"}), End::Auth { message: message() }),
        (429, json!({"class": "of another agent"}), End::RateLimited { until: None }),
        (400, json!({"class": "refused"}), End::Refused { status: Some(400), message: message() }),
        (400, json!({"class": "invalid"}), End::Crashed { message: "the prompt failed: words".to_owned() }),
        (404, json!({"class": "invalid"}), End::Crashed { message: "the prompt failed: words".to_owned() }),
    ] {
        assert_eq!(end_after(code, data.clone()), wanted, "{code} {data}");
    }
}
