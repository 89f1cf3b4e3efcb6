//! What a goal changed, and taking it into a branch.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use towline_api::NewMerge;
use towline_app::{Detail, Merge, MergeStyle, diff as change_of, divergence as compare, merge as merge_work};

use crate::app::{App, in_background};
use crate::problem::Problem;
use crate::query;
use crate::reply::{self, Handled};
use crate::steer::begin_in_repository;

pub(crate) async fn diff(State(app): State<Arc<App>>, Path(id): Path<String>) -> Handled {
    let (goal, context) = begin_in_repository(&app, &id).await?;
    let worker = context.clone();
    let change =
        in_background(&app, async move { change_of(&worker, &goal.to_string(), Detail::Patch).await });
    let text = change.await??.text;
    Ok(reply::text_of("text/x-diff; charset=utf-8", context.secrets.mask().text(&text).into_owned()))
}

pub(crate) async fn divergence(State(app): State<Arc<App>>, Path(id): Path<String>) -> Handled {
    let (goal, context) = begin_in_repository(&app, &id).await?;
    let worker = context.clone();
    let compared = in_background(&app, async move { compare(&worker, &goal.to_string()).await });
    reply::json(&context, StatusCode::OK, &compared.await??)
}

pub(crate) async fn merge(State(app): State<Arc<App>>, Path(id): Path<String>, body: Bytes) -> Handled {
    let new: NewMerge = query::json_or_default(&body)?;
    let style = match (new.squash, new.no_ff) {
        (false, false) => MergeStyle::FastForward,
        (true, false) => MergeStyle::Squash,
        (false, true) => MergeStyle::MergeCommit,
        (true, true) => return Err(Problem::unprocessable("`squash` and `no_ff` exclude each other")),
    };
    let request = Merge {
        into: new.into,
        candidate: new.candidate,
        message: new.message,
        edit: false,
        style,
        unproven: new.unproven,
        verify: true,
        dry_run: new.dry_run,
    };
    let (goal, context) = begin_in_repository(&app, &id).await?;
    let (worker, owner) = (context.clone(), Arc::clone(&app));
    let merged = in_background(&app, async move {
        merge_work(&worker, &goal.to_string(), &request, owner.stopped(), |_| {}).await
    });
    let ended = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server ended while the checks ran");
    let merged = merged.await??.ok_or_else(ended)?;
    reply::json(&context, StatusCode::OK, &merged.report)
}
