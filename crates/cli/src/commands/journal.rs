//! What the terminal of a server shows: a line for each thing that matters, and nothing while nothing happens.

use std::sync::Arc;

use towline_app::Context;
use towline_engine::{Clock, PoolEvents, SystemClock};
use towline_store::Store;
use towline_view::{ShownQuestions, is_worth_a_line, journal_line, what_happened};

/// Prints what happens to goals until the engine has ended, or its log cannot be read any more.
pub(super) async fn write(
    mut events: PoolEvents,
    store: Arc<dyn Store>,
    context: Context,
    print: impl Fn(&str),
) {
    let mut questions = ShownQuestions::default();
    while let Ok(Some((_, envelope))) = events.next().await {
        if !is_worth_a_line(&envelope.event) || questions.has_shown(envelope.goal, &envelope.event) {
            continue;
        }
        // A goal that was removed meanwhile has nothing to show.
        let Ok(record) = store.load(envelope.goal).await else { continue };
        // What happened was masked when it was stored, so a project that does not answer holds up no line of the others.
        let _ = context.know_secrets_of(&record.goal).await;
        let now = SystemClock.now();
        if let Some(what) = what_happened(&envelope.event, &record, now) {
            print(&journal_line(envelope.at, envelope.goal, &what, now));
        }
    }
}
