//! What everybody on the machine can see of an agent, its command line, holds no secret, whatever kind it is.

use std::collections::BTreeMap;

use towline_core::{SessionId, SessionPlan};

use crate::agent;
use crate::settings::{Kind, McpServer};
use crate::testing::{plain_launch, plain_settings, resume};

const SECRET: &str = "planted";

fn variables(names: &[&str]) -> BTreeMap<String, String> {
    names.iter().map(|name| ((*name).to_owned(), format!("{SECRET}-{name}"))).collect()
}

#[test]
fn no_secret_is_in_the_arguments_of_any_agent() {
    let environment = variables(&[
        "ANTHROPIC_API_KEY",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "OPENAI_API_KEY",
        "CODEX_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "MY_KEY",
    ]);
    let towline = variables(&["TOWLINE_TOKEN", "TOWLINE_API", "TOWLINE_GOAL"]);
    for kind in Kind::ALL {
        let mut settings = plain_settings(kind, &["program"]);
        settings.env = variables(&["CONFIG_TOKEN", "CONFIG_URL"]);
        settings.pass_env = vec!["MY_KEY".to_owned()];
        settings.model = Some("m".to_owned());
        settings.mcp.insert(
            McpServer::TOWLINE.to_owned(),
            McpServer { command: vec!["towline".into(), "mcp".into()] },
        );
        for session in [SessionPlan::Fresh(SessionId::new("s")), resume("s")] {
            let mut context = plain_launch(&session, "planted prompt", &environment);
            context.towline = &towline;
            let plan = agent(kind).plan(&settings, &context);
            let shown = plan.argv.join(" ");
            assert!(!shown.contains(SECRET), "{}: {shown}", kind.name());
            assert_eq!(plan.env.get("CONFIG_TOKEN"), settings.env.get("CONFIG_TOKEN"), "{}", kind.name());
            assert_eq!(plan.env.get("MY_KEY"), environment.get("MY_KEY"), "{}", kind.name());
        }
    }
}
