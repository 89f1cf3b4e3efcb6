//! Every route of the interface against everybody who may not use it: each request is refused, the refusal shows nothing, and nothing
//! has changed.

use serde_json::{Value, json};
use towline_api::routes::{ROUTES, Route};
use towline_core::{Account, AccountStatus, AgentName, Goal, Phase};
use towline_engine::{Clock, SystemClock};

use crate::client::{Ask, Got};
use crate::server::{Server, TOKEN};

/// A server with a goal and an account that each route can be about.
struct Ground {
    server: Server,
    goal: Goal,
}

impl Ground {
    async fn new() -> Self {
        let server = Server::start().await;
        let goal = server.goal().await;
        let account = Account {
            name: "main".to_owned(),
            agent: AgentName::new("own"),
            status: AccountStatus::Closed,
            updated_at: SystemClock.now(),
        };
        server.store.set_account(&account).await.expect("stored");
        Self { server, goal }
    }

    fn path(&self, route: &Route) -> String {
        let goal = self.goal.id.to_string();
        route.path.replace("{id}", &goal).replace("{n}", "1").replace("{name}", "main")
    }

    /// A body with which the operator's request would be carried out.
    fn body(&self, route: &Route) -> Value {
        match route.request {
            Some("NewGoal") => json!({"prompt": "A stranger's", "repository": self.server.project.path()}),
            Some("NewAnswer" | "NewMessage") => json!({"text": "yes"}),
            Some("NewRetry" | "NewMerge") => json!({}),
            Some("NewSignIn") => json!({"code": "a stranger's"}),
            Some(other) => panic!("no example of {other}"),
            None if route.path == "/mcp" => json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
            None => Value::Null,
        }
    }

    /// A request for a route, without any token.
    fn ask(&self, route: &Route) -> Ask {
        let ask = self.server.client.ask(&route.method.to_ascii_uppercase(), &self.path(route));
        if route.method == "get" { ask } else { ask.json(&self.body(route)) }
    }

    /// Nothing about the goal, the machine or the token is in a refusal.
    fn shows_nothing(&self, got: &Got) {
        let secret = std::fs::read_to_string(self.server.home.root().join("token")).expect("a secret");
        let repository = self.server.project.path().display().to_string();
        for told in [&self.goal.prompt, &self.goal.title, &repository, TOKEN, secret.trim()] {
            assert!(!got.body.contains(told), "{told}: {got:?}");
        }
    }

    /// Sends a request for each of these routes, as `change` makes it, and checks the refusals and that nothing has changed.
    async fn refuses(self, routes: impl Fn(&Route) -> bool, change: impl Fn(Ask) -> Ask, statuses: &[u16]) {
        let before = self.server.everything().await;
        for route in ROUTES.iter().filter(|route| routes(route)) {
            let got = change(self.ask(route)).send().await;
            assert!(statuses.contains(&got.status), "{} {}: {got:?}", route.method, route.path);
            got.refused(got.status);
            self.shows_nothing(&got);
        }
        assert_eq!(self.server.everything().await, before);
        self.server.stop().await;
    }
}

fn needs_a_token(route: &Route) -> bool {
    !matches!(route.path, "/healthz" | "/sign-in")
}

fn changes_something(route: &Route) -> bool {
    route.method != "get"
}

#[tokio::test]
async fn without_a_token_no_route_shows_or_changes_anything() {
    Ground::new().await.refuses(needs_a_token, |ask| ask, &[401]).await;
}

#[tokio::test]
async fn with_a_wrong_token_no_route_shows_or_changes_anything() {
    // There are more routes than guesses that are looked at.
    let wrong = [TOKEN.to_uppercase(), format!("{TOKEN}0"), "x".repeat(10_000), format!("\"{TOKEN}\"")];
    for wrong in wrong {
        Ground::new().await.refuses(needs_a_token, |ask| ask.token(&wrong), &[401, 429]).await;
    }
}

#[tokio::test]
async fn the_token_of_another_goals_attempt_shows_and_changes_nothing() {
    let ground = Ground::new().await;
    let (_other, token) = ground.server.goal_at_work().await;
    // The tools are those of the goal whose token it is.
    let is_foreign = |route: &Route| needs_a_token(route) && route.path != "/mcp";
    ground.refuses(is_foreign, |ask| ask.token(&token), &[403]).await;
}

#[tokio::test]
async fn the_token_of_an_attempt_that_has_ended_shows_and_changes_nothing() {
    let ground = Ground::new().await;
    let (other, token) = ground.server.goal_at_work().await;
    ground.server.set_state(other.id, |state| state.phase = Phase::Cancelled).await;
    ground.refuses(needs_a_token, |ask| ask.token(&token), &[401, 429]).await;
}

#[tokio::test]
async fn under_a_foreign_name_no_route_shows_or_changes_anything() {
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", ""] {
        Ground::new().await.refuses(|_| true, |ask| ask.token(TOKEN).header("host", host), &[421]).await;
    }
}

#[tokio::test]
async fn from_a_page_of_another_server_no_route_shows_or_changes_anything() {
    for origin in ["http://evil.example", "null", "http://localhost:3000", "file://"] {
        Ground::new().await.refuses(|_| true, |ask| ask.token(TOKEN).header("origin", origin), &[403]).await;
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_changes_nothing_on_any_route() {
    let large = json!({"text": "x".repeat(1 << 20)});
    Ground::new().await.refuses(changes_something, |ask| ask.token(TOKEN).json(&large), &[413]).await;
}

#[tokio::test]
async fn a_body_that_is_not_announced_as_json_changes_nothing_on_any_route() {
    // What a form of a foreign page can send.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        let body = |ask: Ask| ask.token(TOKEN).body(kind, "{\"text\": \"x\"}");
        Ground::new().await.refuses(changes_something, body, &[415]).await;
    }
}

#[tokio::test]
async fn what_runs_below_the_server_changes_nothing_on_any_route() {
    let ground = Ground::new().await;
    let before = ground.server.everything().await;
    for route in ROUTES.iter().filter(|route| changes_something(route)) {
        let body = if route.request.is_some() { ground.body(route).to_string() } else { String::new() };
        let reply = ground.server.ask_from_below("POST", &ground.path(route), &body).await;
        assert!(reply.starts_with("HTTP/1.1 403"), "{}: {reply}", route.path);
        assert!(reply.contains("an agent, check or setup command cannot steer or follow goals"), "{reply}");
    }
    assert_eq!(ground.server.everything().await, before);
    ground.server.stop().await;
}
