//! Whether the server works, and how much.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;
use towline_api::HealthReport;
use towline_store::{Listed, Listing, list_all};

use crate::app::{App, Count};
use crate::problem::Problem;
use crate::reply::{self, Handled};

/// How long the number of goals is believed.
const FRESH: Duration = Duration::from_secs(10);
/// How many notifications are counted.
const MOST_NOTICES: usize = 1_000;
/// Notifications that are tried again later are due by then.
const MUCH_LATER: SignedDuration = SignedDuration::from_hours(24 * 365);

/// How many goals are in each phase, by their repository.
pub(crate) type Counts = Arc<BTreeMap<(String, &'static str), u64>>;

/// What the server has counted since it began.
#[derive(Default)]
pub(crate) struct Counters {
    /// Replies by the first digit of their status.
    replies: [Count; 5],
    store_errors: Count,
    /// Counting all goals reads all of them, so it is not done for each request.
    goals: Mutex<Option<(Instant, Counts)>>,
}

impl Counters {
    /// Counts a reply.
    pub(crate) fn note(&self, status: StatusCode, store_failed: bool) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = self.replies.get(class) {
            count.add();
        }
        if store_failed {
            self.store_errors.add();
        }
    }
}

/// How many goals there are, as of a moment ago.
pub(crate) async fn counts(app: &App) -> Result<Counts, Problem> {
    let mut known = app.counters.goals.lock().await;
    if let Some((at, counts)) = known.as_ref()
        && at.elapsed() < FRESH
    {
        return Ok(Arc::clone(counts));
    }
    let mut counts = BTreeMap::new();
    for goal in list_all(app.store(), Listing::all()).await?.into_iter().filter_map(Listed::readable) {
        *counts.entry((goal.repository, goal.phase.name())).or_default() += 1;
    }
    let counts = Arc::new(counts);
    *known = Some((Instant::now(), Arc::clone(&counts)));
    Ok(counts)
}

pub(crate) async fn healthz(State(app): State<Arc<App>>) -> Handled {
    if app.store().last_place().await.is_err() {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the store cannot be read"));
    }
    let report = HealthReport { status: "ok".to_owned(), version: app.version.clone() };
    reply::json(&app.context(), StatusCode::OK, &report)
}

pub(crate) async fn openapi() -> Handled {
    Ok(reply::text_of("application/json", towline_api::routes::OPENAPI))
}

pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Handled {
    let mut text = Metrics::default();
    text.begin("towline_goals", "gauge", "Goals by phase.");
    let mut phases: BTreeMap<&str, u64> = BTreeMap::new();
    for ((_, phase), count) in counts(&app).await?.iter() {
        *phases.entry(phase).or_default() += count;
    }
    for (phase, count) in &phases {
        text.row(&format!("towline_goals{{phase=\"{phase}\"}}"), *count);
    }
    let working = app.store().pool(0).await?.working.len();
    text.single("towline_goals_running", "gauge", "Goals that hold a slot.", working);
    let queued = phases.get("queued").copied().unwrap_or_default();
    text.single("towline_goals_queued", "gauge", "Goals that wait for their start.", queued);
    let spent = spent_today(&app).await?;
    text.single("towline_spend_today_usd", "gauge", "US dollars spent today, estimates included.", spent);
    let later = app.now().checked_add(MUCH_LATER).unwrap_or(Timestamp::MAX);
    let notices = app.store().notices(later, MOST_NOTICES).await?.len();
    text.single("towline_notices_pending", "gauge", "Notifications to be delivered.", notices);
    let errors = app.counters.store_errors.get();
    text.single(
        "towline_store_errors_total",
        "counter",
        "Requests that failed because of the store.",
        errors,
    );
    text.begin("towline_http_requests_total", "counter", "Replies by the class of their status.");
    for (class, count) in (1..).zip(&app.counters.replies) {
        text.row(&format!("towline_http_requests_total{{class=\"{class}xx\"}}"), count.get());
    }
    text.single("towline_http_streams", "gauge", "Open streams of events.", app.streams.open());
    Ok(reply::text_of("text/plain; version=0.0.4; charset=utf-8", text.0))
}

async fn spent_today(app: &App) -> Result<f64, Problem> {
    let now = app.now();
    let midnight = now.to_zoned(TimeZone::system()).start_of_day();
    let from = midnight.map_or(now, |midnight| midnight.timestamp());
    Ok(app.store().spent(Some((from, now))).await?.in_all().dollars())
}

/// Text in the format of Prometheus.
#[derive(Default)]
struct Metrics(String);

impl Metrics {
    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn row(&mut self, name: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{name} {value}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.begin(name, kind, help);
        self.row(name, value);
    }
}
