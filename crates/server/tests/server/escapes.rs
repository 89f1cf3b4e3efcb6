//! Paths, options of git and control characters in every parameter: nothing leads anywhere else, nothing is an error of the server, and
//! nothing has changed.

use serde_json::{Value, json};
use towline_api::routes::{ROUTES, Route};

use crate::client::{Ask, Got};
use crate::server::Server;

/// In paths and queries.
const ESCAPES: [&str; 17] = [
    "..",
    ".",
    "%2e%2e",
    "..%2f..%2fetc%2fpasswd",
    "..%5c..%5cetc%5cpasswd",
    "%2fetc%2fpasswd",
    "%252e%252e%252fetc%252fpasswd",
    "%00",
    "%0d%0aSet-Cookie:%20x=1",
    "%ff",
    "%c0%ae%c0%ae",
    "a%2fb",
    "%2e%2e%2ftoken",
    "--output=%2ftmp%2fx",
    "@",
    "%20",
    "99999999999999999999999999",
];

/// A refusal, or an empty list; never a failure of the server or a file.
fn leads_nowhere(what: &str, got: &Got) {
    assert!((400..500).contains(&got.status) || got.status == 200, "{what}: {got:?}");
    if got.status != 200 {
        got.refused(got.status);
    }
    assert!(!got.body.contains("root:") && !got.headers.contains_key("set-cookie"), "{what}: {got:?}");
}

/// The path of a route with this in place of the parameter, and good values in place of the others.
fn with(route: &Route, parameter: &str, value: &str, goal: &str) -> String {
    let path = route.path.replace(parameter, value);
    path.replace("{id}", goal).replace("{n}", "1").replace("{name}", "main")
}

fn ask(server: &Server, route: &Route, path: &str) -> Ask {
    match route.method {
        "get" => server.get(path),
        _ => server.post(path).json(&json!({"text": "x"})),
    }
}

#[tokio::test]
async fn no_part_of_a_path_leads_anywhere_else() {
    let server = Server::start().await;
    let goal = server.goal().await.id.to_string();
    let before = server.everything().await;
    let parameters = ["{id}", "{n}", "{name}"];
    for route in ROUTES {
        for parameter in parameters.iter().filter(|parameter| route.path.contains(*parameter)) {
            for escape in ESCAPES {
                let path = with(route, parameter, escape, &goal);
                let got = ask(&server, route, &path).send().await;
                leads_nowhere(&path, &got);
                assert_ne!(got.status, 200, "{path}: {got:?}");
            }
        }
    }
    assert_eq!(server.everything().await, before);
    server.stop().await;
}

#[tokio::test]
async fn no_parameter_of_a_query_leads_anywhere_else() {
    let server = Server::start().await;
    let goal = server.goal().await.id.to_string();
    let before = server.everything().await;
    for route in ROUTES {
        for name in route.query {
            for escape in ESCAPES {
                let path = format!("{}?{name}={escape}", with(route, "", "", &goal));
                let got = ask(&server, route, &path).send().await;
                leads_nowhere(&path, &got);
                match (*name, got.status) {
                    // A filter that no goal fits.
                    ("repository", 200) => assert_eq!(got.json()["goals"], json!([]), "{path}"),
                    (_, status) => assert!(matches!(status, 400 | 422), "{path}: {got:?}"),
                }
            }
        }
    }
    assert_eq!(server.everything().await, before);
    server.stop().await;
}

#[tokio::test]
async fn the_place_of_a_client_that_comes_back_is_a_number() {
    let server = Server::start().await;
    let goal = server.goal().await.id;
    for path in ["/events".to_owned(), format!("/goals/{goal}/events")] {
        for place in ["../..", "-1", "1.5", "0x10", "18446744073709551616", "1;2"] {
            let following = server.get(&path).header("accept", "text/event-stream");
            following.header("last-event-id", place).send().await.refused(400);
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn an_idempotency_key_is_no_path() {
    let server = Server::start().await;
    let goal = server.goal().await.id;
    let cancelled = server.post(&format!("/goals/{goal}/cancel")).send().await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    let before = server.everything().await;
    for key in ["../../operator-token", "/etc/passwd", "..", "'; DROP TABLE replies; --", "%2e%2e", "a\tb"] {
        // It does not fit the phase, so that only the key could change something.
        let again = server.post(&format!("/goals/{goal}/resume")).header("idempotency-key", key);
        let (first, second) = (again.clone().send().await, again.send().await);
        assert_eq!(first.refused(409), second.refused(409), "{key}");
        assert_eq!(second.headers["idempotency-replayed"], "true", "{key}");
    }
    for key in ["", "\u{e4}", &"x".repeat(256)] {
        let got = server.post(&format!("/goals/{goal}/retry")).header("idempotency-key", key).send().await;
        got.refused(400);
    }
    assert_eq!(server.everything().await, before);
    server.stop().await;
}

#[tokio::test]
async fn a_goal_is_created_for_a_directory_of_this_machine_and_nothing_else() {
    let server = Server::start().await;
    let before = server.everything().await;
    let here = server.project.path().display().to_string();
    let wrong =
        ["", ".", "..", "../..", "relative", "~", "file:///tmp", "\0", "/etc/passwd", "/proc/self/mem"];
    let wrong = wrong.map(str::to_owned).into_iter().chain([
        format!("{here}\0/etc"),
        format!("{here}/towline.toml"),
        format!("{here}/no/such"),
        format!("{here}/towline.toml/.."),
        format!("--upload-pack={here}"),
        server.home.root().display().to_string(),
    ]);
    for repository in wrong {
        let new = json!({"prompt": "x", "repository": repository});
        leads_nowhere(&repository, &server.post("/goals").json(&new).send().await);
        server.post("/goals").json(&new).send().await.refused(422);
    }
    assert_eq!(server.everything().await, before);
    server.stop().await;
}

#[tokio::test]
async fn no_text_of_a_goal_leads_anywhere_else() {
    let server = Server::start().await;
    let before = server.everything().await;
    let refused = |field: &str, value: Value| {
        let mut new = json!({"prompt": "x", "repository": server.project.path()});
        new[field] = value;
        server.post("/goals").json(&new)
    };
    for text in ["--upload-pack=x", "-", "..", "HEAD:../../etc/passwd", "\0", "a\nb", "@{-9}", ""] {
        let base = refused("base", json!(text)).send().await;
        assert_eq!(base.status, 422, "base {text:?}: {base:?}");
        let agent = refused("agents", json!([text])).send().await;
        assert_eq!(agent.status, 422, "agents {text:?}: {agent:?}");
        let after = refused("after", json!([{"goal": text}])).send().await;
        assert_eq!(after.status, 400, "after {text:?}: {after:?}");
    }
    for glob in ["../**", "src/../../**", "[", ""] {
        for list in ["touches", "unprotect"] {
            let got = refused(list, json!([glob])).send().await;
            assert_eq!(got.status, 422, "{list} {glob:?}: {got:?}");
        }
    }
    assert_eq!(server.everything().await, before);
    server.stop().await;
}
