//! The routes of the HTTP interface. The server has exactly these, and the OpenAPI document describes them; tests hold both.

/// Where all routes begin.
pub const PREFIX: &str = "/api/v1";

/// The OpenAPI document.
pub const OPENAPI: &str = include_str!("../openapi.json");

/// A method and a path, with what goes in and comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// `get` or `post`.
    pub method: &'static str,
    /// The path below [`PREFIX`].
    pub path: &'static str,
    /// What it is for.
    pub summary: &'static str,
    /// The name of the type in the request's body.
    pub request: Option<&'static str>,
    pub reply: Body,
    /// The status of success.
    pub status: u16,
    /// Parameters of the query.
    pub query: &'static [&'static str],
    /// Headers that change the reply.
    pub headers: &'static [&'static str],
}

/// The body of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// JSON of this type.
    Json(&'static str),
    /// A JSON array of this type.
    List(&'static str),
    /// JSON of this type, or server-sent events where the client accepts them.
    JsonOrEvents(&'static str),
    /// Another media type.
    Other(&'static str),
}

const fn get(path: &'static str, summary: &'static str, reply: Body) -> Route {
    Route { method: "get", path, summary, request: None, reply, status: 200, query: &[], headers: &[] }
}

const fn post(
    path: &'static str,
    summary: &'static str,
    request: Option<&'static str>,
    reply: &'static str,
) -> Route {
    let reply = Body::Json(reply);
    Route { method: "post", path, summary, request, reply, status: 200, query: &[], headers: &[] }
}

/// What the server offers, in the order of the document.
pub const ROUTES: &[Route] = &[
    Route {
        query: &["phase", "repository", "cursor", "limit"],
        ..get("/goals", "List goals, the newest first", Body::Json("GoalPage"))
    },
    Route { status: 201, ..post("/goals", "Create a goal", Some("NewGoal"), "GoalReport") },
    Route { headers: &["If-None-Match"], ..get("/goals/{id}", "Show a goal", Body::Json("GoalReport")) },
    Route {
        query: &["cursor", "limit"],
        headers: &["Last-Event-ID"],
        ..get("/goals/{id}/events", "Read or follow the log of a goal", Body::JsonOrEvents("EventPage"))
    },
    post("/goals/{id}/answer", "Answer a question of a goal", Some("NewAnswer"), "GoalReport"),
    post("/goals/{id}/tell", "Send a message to the agent of a goal", Some("NewMessage"), "GoalReport"),
    post("/goals/{id}/pause", "Pause a goal", None, "GoalReport"),
    post("/goals/{id}/resume", "Resume a goal", None, "GoalReport"),
    post("/goals/{id}/cancel", "Cancel a goal", None, "GoalReport"),
    post("/goals/{id}/retry", "Open a goal again that has ended", Some("NewRetry"), "GoalReport"),
    get("/goals/{id}/diff", "Show what a goal changed", Body::Other("text/x-diff")),
    get(
        "/goals/{id}/divergence",
        "Compare the work of a goal with the branch that is checked out",
        Body::Json("DivergenceReport"),
    ),
    post("/goals/{id}/merge", "Merge the work of a goal", Some("NewMerge"), "MergeReport"),
    Route {
        headers: &["Range"],
        ..get("/goals/{id}/attempts/{n}/log", "Read the output of an attempt", Body::Other("text/plain"))
    },
    Route {
        query: &["cursor"],
        headers: &["Last-Event-ID"],
        ..get("/events", "Follow all goals", Body::Other("text/event-stream"))
    },
    get("/questions", "List open questions", Body::List("QuestionLine")),
    get("/projects", "List repositories with goals", Body::List("ProjectLine")),
    get("/queue", "Show what runs and what waits", Body::Json("QueueReport")),
    get("/agents", "List agents", Body::List("AgentLine")),
    get("/accounts", "List accounts", Body::List("AccountLine")),
    post("/accounts/{name}/open", "Open an account again", None, "OpenedAccount"),
    Route { query: &["by", "since"], ..get("/cost", "Show what was spent", Body::Json("CostReport")) },
    get("/healthz", "Show whether the server works; needs no token", Body::Json("HealthReport")),
    get("/metrics", "Show metrics in the format of Prometheus", Body::Other("text/plain")),
    get("/openapi.json", "Show this document", Body::Other("application/json")),
    Route {
        reply: Body::Other("application/json"),
        ..post("/mcp", "Call a tool as the agent of an attempt, in JSON-RPC", None, "")
    },
    post(
        "/sign-in",
        "Sign in to the page with the code of a link; needs no token",
        Some("NewSignIn"),
        "PageSession",
    ),
    post(
        "/sign-out",
        "End a session of the page; all of them with the operator's token",
        None,
        "EndedSessions",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_exactly_these_routes() {
        let page = include_str!("../../../docs/http.md");
        let listed: Vec<&str> =
            page.lines().filter(|line| line.starts_with("| `GET ") || line.starts_with("| `POST ")).collect();
        let row = |route: &Route| {
            format!("| `{} {}` | {} |", route.method.to_uppercase(), route.path, route.summary)
        };
        assert_eq!(listed, ROUTES.iter().map(row).collect::<Vec<_>>());
    }
}
