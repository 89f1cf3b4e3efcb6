//! What is known about layers, also when something is wrong with them.

mod support;

use support::{environment, repository, user};
use towline_config::{Layer, LayerName, ShownSetting, inspect};

fn settings(layers: &[Layer]) -> Vec<(String, Option<String>, LayerName)> {
    let shown = inspect(layers).settings.into_iter();
    let set = shown.filter(|setting| setting.layer != LayerName::Defaults);
    set.map(|ShownSetting { key, value, layer }| (key, value, layer)).collect()
}

#[test]
fn every_setting_is_shown_as_toml_with_the_layer_that_set_it() {
    let text = "budget = { usd = 2.5, wall = \"90m\", turns = 7 }\n\
                defaults.briefing = false\n\
                protect.paths = [\"a b\", \"c\"]\n\
                agents.claude = { model = \"so\\\"nnet\", stop_grace = \"1500ms\", context_threshold = 0.5 }\n\
                [[checks]]\nname = \"tests\"\nrun = \"make\"\n";
    let layers = [repository(text), environment(&[("TOWLINE_SET_budget__turns", "9")])];
    let shown: Vec<_> = settings(&layers)
        .into_iter()
        .map(|(key, value, layer)| format!("{key} = {} ({layer})", value.unwrap_or_default()))
        .collect();
    assert_eq!(
        shown,
        [
            "agents.claude.context_threshold = 0.5 (/repo/towline.toml)",
            "agents.claude.model = 'so\"nnet' (/repo/towline.toml)",
            "agents.claude.stop_grace = \"1500ms\" (/repo/towline.toml)",
            "budget.turns = 9 (the environment (TOWLINE_SET_…))",
            "budget.usd = 2.5 (/repo/towline.toml)",
            "budget.wall = \"90m\" (/repo/towline.toml)",
            "checks = [\"tests\"] (/repo/towline.toml)",
            "defaults.briefing = false (/repo/towline.toml)",
            "protect.paths = [\"a b\", \"c\"] (/repo/towline.toml)",
        ]
    );
}

#[test]
fn values_that_may_be_secrets_are_named_and_not_shown() {
    let text = "agents.claude.env = { TOKEN = \"hush\" }\n\
                agents.claude.mcp = { docs = { command = [\"docs\", \"--key\", \"hush\"] } }\n\
                notify = { webhook = \"https://example.org/hush\", command = \"notify hush\" }\n";
    let named =
        ["agents.claude.env.TOKEN", "agents.claude.mcp.docs.command", "notify.command", "notify.webhook"];
    let expected = named.map(|key| (key.to_owned(), None, user("").name));
    assert_eq!(settings(&[user(text)]), expected);
}

#[test]
fn what_is_wrong_hides_nothing_of_the_rest() {
    let layers =
        [user("[agents.fast]\nkind = \"script\"\ncommand = [\"x\"]"), repository("budget.turnz = 3")];
    let inspection = inspect(&layers);
    let problems: Vec<String> = inspection.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        ["unknown key `budget.turnz` in /repo/towline.toml (line 1, column 8); \
             did you mean `budget.turns`?"]
    );
    assert!(inspection.config.agents.contains_key("fast"));
    assert!(inspection.settings.iter().any(|setting| setting.key == "agents.fast.command"));
}

#[test]
fn what_follows_from_a_problem_is_not_reported_as_another_one() {
    let inspection = inspect(&[repository("[agents.fast]\nkind = \"scirpt\"\ncommand = [\"x\"]")]);
    assert_eq!(inspection.problems.len(), 1, "{:?}", inspection.problems);
    assert!(!inspection.config.agents.contains_key("fast"));
}
