//! Who sends a request, and what they may do.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use towline_api::routes::PREFIX;
use towline_core::{AttemptId, GoalId};
use towline_engine::{attempt_of_token, contained, is_signed_in};
use towline_store::{GoalSummary, Listed, Listing};

use crate::app::App;
use crate::page;
use crate::peer::{self, Connection};
use crate::problem::Problem;

/// After so many wrong tokens in a while, more are told to wait. Right ones are not.
const MOST_FAILURES: u32 = 20;
const WHILE: Duration = Duration::from_secs(10);
/// The route that takes the code of a link instead of a token.
pub(crate) const SIGN_IN: &str = "/sign-in";
/// The route of an agent's tools.
const TOOLS: &str = "/mcp";
/// The longest token that is looked at.
const LONGEST_TOKEN: usize = 256;

/// Who sends a request.
#[derive(Clone)]
pub(crate) enum Authority {
    Operator,
    /// The agent of a living attempt of this goal.
    Agent {
        goal: GoalId,
        token: String,
    },
    /// Anybody, where nothing has to be proven.
    Anybody,
}

/// Decides who sends a request, and refuses what they may not do.
pub(crate) async fn admit(
    app: &App,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    connection: Option<Connection>,
) -> Result<Authority, Problem> {
    must_be_for_us(app, uri, headers)?;
    let path = uri.path().strip_prefix(PREFIX).unwrap_or_default();
    if path == "/healthz" || page::is_for_page(method, uri.path()) {
        return Ok(Authority::Anybody);
    }
    if path == SIGN_IN && *method == Method::POST {
        must_be_outside(app, connection).await?;
        return Ok(Authority::Anybody);
    }
    let token = token(headers)?;
    if app.token.fits(token) || is_signed_in(&app.state.home, token, app.now()) {
        if *method != Method::GET && *method != Method::HEAD {
            must_be_outside(app, connection).await?;
        }
        return Ok(Authority::Operator);
    }
    let Some(goal) = goal_of_token(app, token).await? else {
        return Err(refuse_guess(app, "the token is not valid, or its attempt or session is over"));
    };
    // Logs and verdicts have what hidden checks are and print, so agents have their tools alone. Some clients of MCP ask for a
    // stream first. There is none: the router replies that the method is not allowed.
    if path != TOOLS {
        let what = "the token of an attempt calls its tools at `/mcp`, and nothing else";
        return Err(Problem::new(StatusCode::FORBIDDEN, what));
    }
    Ok(Authority::Agent { goal, token: token.to_owned() })
}

/// Refuses a wrong token or code; after many of them whatever comes next.
pub(crate) fn refuse_guess(app: &App, what: &str) -> Problem {
    match app.failures.note() {
        ..=MOST_FAILURES => Problem::new(StatusCode::UNAUTHORIZED, what),
        _ => Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong tokens"),
    }
}

/// Refuses requests for another server, as a page in a browser makes them after its name was bound to our address, and those of
/// pages of other servers.
fn must_be_for_us(app: &App, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    // A whole address is for proxies, and this is none.
    if uri.scheme().is_some() || uri.authority().is_some() {
        let what = "the request names a whole address; send the path alone";
        return Err(Problem::new(StatusCode::BAD_REQUEST, what));
    }
    let foreign = || {
        Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "the `Host` of the request is not a name of this server",
        )
    };
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).ok_or_else(foreign)?.to_ascii_lowercase();
    // With two, a proxy may have looked at the other one.
    if hosts.next().is_some() {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "the request has more than one `Host`"));
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => &host,
    };
    if !app.hosts.iter().any(|known| known == name) {
        return Err(foreign().hint("add the name to `hosts` in `[server]` of the user's configuration"));
    }
    let is_own = |origin: &str| {
        let origin = origin.to_ascii_lowercase();
        ["http://", "https://"].iter().any(|scheme| origin.strip_prefix(scheme) == Some(&host))
    };
    let has_foreign_origin =
        headers.get_all(header::ORIGIN).iter().any(|origin| !origin.to_str().is_ok_and(is_own));
    if has_foreign_origin {
        return Err(Problem::new(StatusCode::FORBIDDEN, "pages of other servers may not use this one"));
    }
    Ok(())
}

pub(crate) fn token(headers: &HeaderMap) -> Result<&str, Problem> {
    let missing = || {
        Problem::new(StatusCode::UNAUTHORIZED, "the request has no token").hint(
            "send the content of `operator-token` in the state directory as `Authorization: Bearer TOKEN`",
        )
    };
    let value = headers.get(header::AUTHORIZATION).ok_or_else(missing)?;
    let (scheme, token) = value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or_else(missing)?;
    let token = token.trim();
    let is_token = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= LONGEST_TOKEN;
    if is_token { Ok(token) } else { Err(missing()) }
}

/// The session of the page that sends a request that was let in; none for other tokens.
pub(crate) fn session(app: &App, headers: &HeaderMap) -> Option<String> {
    let token = token(headers).ok()?;
    is_signed_in(&app.state.home, token, app.now()).then(|| token.to_owned())
}

/// The goal whose living attempt has this token.
async fn goal_of_token(app: &App, token: &str) -> Result<Option<GoalId>, Problem> {
    let listing = Listing { phases: vec!["running", "blocked"], ..Listing::all() };
    let listed = towline_store::list_all(app.store(), listing).await?;
    let living = |goal: GoalSummary| Some((goal.id, AttemptId::of(goal.id, goal.phase.living_attempt()?)));
    let living: Vec<(GoalId, AttemptId)> =
        listed.into_iter().filter_map(Listed::readable).filter_map(living).collect();
    let attempts = living.iter().map(|(_, attempt)| *attempt);
    let found = attempt_of_token(&app.state.home, token, attempts);
    Ok(living.iter().find(|(_, attempt)| Some(*attempt) == found).map(|(goal, _)| *goal))
}

/// Refuses changes by what an agent, a check or a setup command started: such a process can read the operator's files.
pub(crate) async fn must_be_outside(app: &App, connection: Option<Connection>) -> Result<(), Problem> {
    let Some(connection) = connection else { return Ok(()) };
    let root = app.state.home.root().to_path_buf();
    let looked = app.tasks.spawn_blocking(move || contained(|| peer::refusal(&root, connection))).await;
    match looked {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(Problem::new(StatusCode::FORBIDDEN, why)),
        Err(error) => Err(Problem::internal(format!("cannot find out who asks: {error}"))),
    }
}

/// Wrong tokens of the last while.
#[derive(Default)]
pub(crate) struct Failures(Mutex<Option<(Instant, u32)>>);

impl Failures {
    /// Counts one more, and returns how many there are.
    fn note(&self) -> u32 {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = match *failures {
            Some((since, count)) if since.elapsed() < WHILE => (since, count.saturating_add(1)),
            _ => (Instant::now(), 1),
        };
        *failures = Some((since, count));
        count
    }
}
