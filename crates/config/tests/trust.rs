//! Settings of a repository's file that need the user's trust.

mod support;

use serde_json::json;
use support::{environment, flags, repository, user};
use towline_config::{inspect, inspect_without_trust, load};
use towline_core::{Network, SandboxMode};

const WIDENING: &str = "\
[agents.mine]
kind = \"command\"
command = [\"./mine\"]
[agents.claude]
permission = \"bypass\"
model = \"big\"
env = { B = \"2\", A = \"1\" }
mcp = { docs = { command = [\"docs-mcp\"] } }
[agents.codex]
permission = \"deny\"
[workspace]
mode = \"in-place\"
pass_env = [\"DATABASE_URL\"]
setup = [\"make deps\"]
[sandbox]
mode = \"off\"
network = false
[[checks]]
run = \"make test\"
";

#[test]
fn what_widens_is_named_with_its_value_and_nothing_else_is() {
    let widening = inspect(&[repository(WIDENING)]).widening;
    let expected = json!({
        "agents.claude.env.A": "1",
        "agents.claude.env.B": "2",
        "agents.claude.mcp.docs.command": ["docs-mcp"],
        "agents.claude.permission": "bypass",
        "agents.mine.command": ["./mine"],
        "agents.mine.kind": "command",
        "sandbox.mode": "off",
        "workspace.mode": "in-place",
        "workspace.pass_env": ["DATABASE_URL"],
    });
    assert_eq!(serde_json::to_value(widening).ok(), Some(expected));
}

#[test]
fn the_way_it_is_written_and_settings_that_do_not_widen_change_nothing() {
    let of = |text: &str| inspect(&[repository(text)]).widening;
    let before = "[agents.claude]\nargs = [\"-v\"]\ndirs = [\"docs\"]\n";
    let after = "# why\nbudget.turns = 3\nagents.claude.dirs = [ 'docs' ] # here\n\
                 agents.claude.args = [\"-v\"]\n[[checks]]\nrun = \"true\"\n";
    assert_eq!(of(before), of(after));
    assert_ne!(of(before), of("agents.claude = { args = [\"-v\"], dirs = [\"/\"] }"));
}

#[test]
fn settings_of_the_user_widen_nothing() {
    let pairs = [("agents.claude.permission", "bypass")];
    let variable = [("TOWLINE_SET_agents__claude__permission", "bypass")];
    let layers = [user("agents.claude.args = [\"-v\"]"), environment(&variable), flags(&pairs)];
    let inspection = inspect(&layers);
    assert_eq!(inspection.widening, Default::default());
    assert_eq!(inspect_without_trust(&layers), inspection);
}

#[test]
fn without_trust_the_layers_below_count_and_the_rest_of_the_file_does() {
    let layers =
        [user("agents.claude.permission = \"ask\"\nsandbox.mode = \"required\""), repository(WIDENING)];
    let config = load(&layers).unwrap_or_else(|error| panic!("{error}")).config;
    assert_eq!(config.agents["claude"].permission, towline_agent::Permission::Bypass);
    let inspection = inspect_without_trust(&layers);
    let config = inspection.config;
    assert_eq!(config.agents["claude"].permission, towline_agent::Permission::Ask);
    assert_eq!(config.agents["codex"].permission, towline_agent::Permission::Deny, "it narrows");
    assert_eq!((config.sandbox.mode, config.sandbox.network), (SandboxMode::Required, Network::Closed));
    assert_eq!(config.checks.len(), 1);
    assert_eq!(config.workspace.pass_env, None);
    assert!(!config.agents.contains_key("mine"), "it has no program");
    assert_eq!(inspection.problems, [], "the file has no mistake");
    assert_eq!(inspection.withheld.len(), 9);
    assert!(inspection.settings.iter().all(|setting| setting.key != "workspace.pass_env"));
}

#[test]
fn a_repository_may_name_only_agents_of_the_user_where_these_are_chosen_or_limited() {
    let names = "defaults.agents = [\"codex\", \"claude\"]";
    let widens = |layers: &[towline_config::Layer]| inspect(layers).widening.contains_key("defaults.agents");
    for own in [
        "",
        "agents.claude.model = \"big\"",
        "defaults.agents = [\"claude\", \"codex\"]",
        "defaults.agents = [\"claude\"]\nagents.codex.model = \"big\"",
        "agents.claude.permission = \"read-only\"\nagents.codex = {}",
    ] {
        assert!(!widens(&[user(own), repository(names)]), "{own}");
    }
    for own in [
        "defaults.agents = [\"claude\"]",
        "defaults.agents = [\"mine\"]\n[agents.mine]\nkind = \"command\"\ncommand = [\"mine\"]",
        "agents.claude.permission = \"read-only\"",
        "agents.claude.deny = [\"Bash\"]",
    ] {
        assert!(widens(&[user(own), repository(names)]), "{own}");
    }
    let variable = environment(&[("TOWLINE_SET_agents__claude__permission", "ask")]);
    assert!(widens(&[repository(names), variable]), "a later layer is the user's as well");
    let layers = [user("defaults.agents = [\"claude\"]"), repository(names)];
    let withheld = inspect_without_trust(&layers).config;
    assert_eq!(withheld.agents_in_order, [towline_core::AgentName::new("claude")]);
}

#[test]
fn a_repositorys_price_needs_trust() {
    let widening = inspect(&[repository("[prices.big]\ninput = 0.0\noutput = 1")]).widening;
    assert_eq!(widening.into_keys().collect::<Vec<_>>(), ["prices.big.input", "prices.big.output"]);
    assert!(inspect(&[user("[prices.big]\ninput = 0.0\noutput = 1")]).widening.is_empty());
}
