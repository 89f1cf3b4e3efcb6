//! The routes: what `towline_api::routes` lists, with their handlers.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};
use towline_api::routes::PREFIX;

use crate::app::App;
use crate::authority::SIGN_IN;
use crate::guard::guard;
use crate::{events, goals, health, log, mcp, page, steer, views, work};

/// A handler by its method and path.
type Handler = (&'static str, &'static str, MethodRouter<Arc<App>>);

/// All handlers.
fn handlers() -> Vec<Handler> {
    vec![
        ("get", "/goals", get(goals::list)),
        ("post", "/goals", post(goals::create)),
        ("get", "/goals/{id}", get(goals::show)),
        ("get", "/goals/{id}/events", get(events::of_goal)),
        ("post", "/goals/{id}/answer", post(steer::answer)),
        ("post", "/goals/{id}/tell", post(steer::tell)),
        ("post", "/goals/{id}/pause", post(steer::pause)),
        ("post", "/goals/{id}/resume", post(steer::resume)),
        ("post", "/goals/{id}/cancel", post(steer::cancel)),
        ("post", "/goals/{id}/retry", post(steer::retry)),
        ("get", "/goals/{id}/diff", get(work::diff)),
        ("get", "/goals/{id}/divergence", get(work::divergence)),
        ("post", "/goals/{id}/merge", post(work::merge)),
        ("get", "/goals/{id}/attempts/{n}/log", get(log::log)),
        ("get", "/events", get(events::of_pool)),
        ("get", "/questions", get(views::questions)),
        ("get", "/projects", get(views::projects)),
        ("get", "/queue", get(views::queue)),
        ("get", "/agents", get(views::agents)),
        ("get", "/accounts", get(views::accounts)),
        ("post", "/accounts/{name}/open", post(views::open_account)),
        ("get", "/cost", get(views::cost)),
        ("get", "/healthz", get(health::healthz)),
        ("get", "/metrics", get(health::metrics)),
        ("get", "/openapi.json", get(health::openapi)),
        ("post", "/mcp", post(mcp::call)),
        ("post", SIGN_IN, post(page::sign_in)),
        ("post", "/sign-out", post(page::sign_out)),
    ]
}

/// The whole interface, behind its guard.
pub(crate) fn router(app: Arc<App>) -> Router {
    let api = handlers()
        .into_iter()
        .fold(Router::new(), |router, (_, path, handler)| router.route(&format!("{PREFIX}{path}"), handler));
    api.fallback(page::file).layer(from_fn_with_state(Arc::clone(&app), guard)).with_state(app)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_routes_are_those_that_the_document_describes() {
        let served: BTreeSet<_> = handlers().iter().map(|(method, path, _)| (*method, *path)).collect();
        let described: BTreeSet<_> =
            towline_api::routes::ROUTES.iter().map(|route| (route.method, route.path)).collect();
        assert_eq!(served, described);
    }
}
