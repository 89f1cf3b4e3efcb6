//! Delivers notifications: rows that were stored with the events they are about go to the user's command and webhook.
//!
//! A row stays until its webhook has accepted it, so a server that is killed delivers it later; a receiver knows a delivery that comes
//! twice by its number. Commands run once: what came of a try is remembered until the store has taken it, and a server that ends waits
//! for commands that run.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use jiff::{SignedDuration, Timestamp};
use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use ring::hmac;
use tokio::sync::watch;
use tokio::time::Instant;
use towline_app::{Context, missing_webhook_secret, notification, run_notify_command};
use towline_config::{Channel, NotifySettings};
use towline_core::{Envelope, Event, GoalId, Phase, Seq, hexadecimal};
use towline_store::{GoalRecord, NoticeId, NoticeOutcome, PendingNotice, Store, StoreError};

/// How many notifications are looked at: more than are delivered at once, so that those of other goals are found behind them.
const PAGE: usize = 1_024;
/// How many are delivered at once.
const AT_ONCE: usize = 32;
/// How many events of a log are read at once.
const LOG_PAGE: usize = 512;
/// How long a receiver may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause after the first failed try. It doubles up to an hour.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(5);
/// The pause before it is looked again for what an earlier server left.
const UNKNOWN_PAUSE: SignedDuration = SignedDuration::from_secs(60);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(3_600);
/// How often a webhook is tried: for about a day.
const MOST_TRIES: u32 = 32;

/// When a delivery is tried again, if it is.
type Delivered = Result<Option<SignedDuration>, StoreError>;

/// Deliveries that go on side by side: a receiver that does not answer must not hold up those of other goals.
#[derive(Default)]
struct Deliveries<'a> {
    deliveries: FuturesUnordered<BoxFuture<'a, (GoalId, Delivered)>>,
    /// Their goals. Each has one at a time, so that its notifications keep their order.
    goals: BTreeSet<GoalId>,
}

impl Deliveries<'_> {
    /// The next one that has ended; none if there is none.
    async fn next(&mut self) -> Option<Delivered> {
        let (goal, delivered) = self.deliveries.next().await?;
        self.goals.remove(&goal);
        Some(delivered)
    }
}

/// Delivers notifications.
pub struct Courier {
    context: Context,
    store: Arc<dyn Store>,
    client: Client,
    now: fn() -> Timestamp,
    /// Called with a goal and what is wrong with its notification.
    report: fn(GoalId, &str),
    /// What came of tries that the store could not record. They are not repeated.
    unstored: Mutex<BTreeMap<NoticeId, NoticeOutcome>>,
}

impl Courier {
    /// A courier who delivers what this store has.
    pub fn new(context: Context, store: Arc<dyn Store>, now: fn() -> Timestamp) -> Result<Self, String> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Someone else may have been faster, and theirs is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let client = Client::builder()
            .user_agent(concat!("towline/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE)
            .build();
        Ok(Self {
            client: client.map_err(|error| error.to_string())?,
            context,
            store,
            now,
            report: |_, _| {},
            unstored: Mutex::default(),
        })
    }

    /// Has the first and the last failure of each notification reported.
    #[must_use]
    pub fn reporting(self, report: fn(GoalId, &str)) -> Self {
        Self { report, ..self }
    }

    /// Delivers what is due whenever something was recorded or a try is due, until `stop` comes to its end. Then it starts no more,
    /// and waits for the deliveries under way.
    pub async fn run(self, mut changes: watch::Receiver<()>, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let mut under_way = Deliveries::default();
        let mut tries: BTreeSet<Instant> = BTreeSet::new();
        // The store fails for now: nothing is started before this time.
        let mut store_pause = Instant::now();
        loop {
            changes.borrow_and_update();
            if Instant::now() >= store_pause && self.start_due(&mut under_way).await.is_err() {
                store_pause = later(FIRST_PAUSE).unwrap_or(store_pause);
                tries.insert(store_pause);
            }
            tries.retain(|at| *at > Instant::now());
            // An earlier server may have left some whose time is not known here.
            if tries.is_empty() && under_way.goals.is_empty() && self.has_undelivered().await {
                tries.extend(later(UNKNOWN_PAUSE));
            }
            let next = tries.first().copied();
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { break },
                Some(delivered) = under_way.next() => match delivered {
                    Ok(pause) => tries.extend(pause.and_then(later)),
                    Err(_) => {
                        store_pause = later(FIRST_PAUSE).unwrap_or(store_pause);
                        tries.insert(store_pause);
                    }
                },
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
                () = &mut stop => break,
            }
        }
        // A command that runs would otherwise run again.
        while under_way.next().await.is_some() {}
    }

    async fn has_undelivered(&self) -> bool {
        self.store.notices(Timestamp::MAX, 1).await.is_ok_and(|notices| !notices.is_empty())
    }

    /// Begins to deliver what is due, of each goal one after the other.
    async fn start_due<'a>(&'a self, under_way: &mut Deliveries<'a>) -> Result<(), StoreError> {
        for notice in self.store.notices((self.now)(), PAGE).await? {
            if under_way.goals.len() < AT_ONCE && under_way.goals.insert(notice.goal) {
                let delivery = async move { (notice.goal, self.deliver(&notice).await) };
                under_way.deliveries.push(delivery.boxed());
            }
        }
        Ok(())
    }

    /// Whether the question that this is about was announced before: the phase changes again when the agent that asks is gone.
    async fn was_announced(&self, notice: &PendingNotice) -> Result<bool, StoreError> {
        let Phase::Blocked { question: asked, .. } = &notice.phase else { return Ok(false) };
        let mut after = Seq(0);
        loop {
            let page = self.store.events(notice.goal, after, LOG_PAGE).await?;
            let Some(last) = page.last() else { return Ok(false) };
            after = last.seq;
            let mut earlier = page.iter().filter(|event| event.seq < notice.seq);
            let is_same = |event: &Envelope| matches!(&event.event, Event::PhaseChanged { phase: Phase::Blocked { question, .. } } if question == asked);
            if earlier.any(is_same) {
                return Ok(true);
            }
            if after >= notice.seq {
                return Ok(false);
            }
        }
    }

    /// Delivers one, unless only the record of that is missing. Returns when it is tried again, if it is.
    async fn deliver(&self, notice: &PendingNotice) -> Delivered {
        let unstored = self.unstored().remove(&notice.id);
        let outcome = match unstored {
            Some(outcome) => outcome,
            None => self.try_once(notice).await?,
        };
        if let Err(error) = self.store.settle_notice(notice.id, outcome).await {
            self.unstored().insert(notice.id, outcome);
            return Err(error);
        }
        Ok(match outcome {
            NoticeOutcome::Settled => None,
            NoticeOutcome::Again(at) => Some(at.duration_since((self.now)()).max(SignedDuration::ZERO)),
        })
    }

    fn unstored(&self) -> MutexGuard<'_, BTreeMap<NoticeId, NoticeOutcome>> {
        self.unstored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries to deliver one.
    async fn try_once(&self, notice: &PendingNotice) -> Result<NoticeOutcome, StoreError> {
        let delivered = match self.store.load(notice.goal).await {
            Ok(_) if self.was_announced(notice).await? => Ok(()),
            Ok(record) => self.send(notice, &record).await,
            // Nothing can be reported about a goal that cannot be read.
            Err(error) if !error.is_passing() => Ok(()),
            Err(error) => return Err(error),
        };
        Ok(match delivered {
            Ok(()) => NoticeOutcome::Settled,
            Err(why) if notice.tries + 1 < MOST_TRIES => {
                if notice.tries == 0 {
                    (self.report)(notice.goal, &format!("its webhook failed and is tried again: {why}"));
                }
                let now = (self.now)();
                NoticeOutcome::Again(now.checked_add(pause_after(notice.tries)).unwrap_or(now))
            }
            Err(why) => {
                let tries = notice.tries + 1;
                (self.report)(
                    notice.goal,
                    &format!("its webhook failed {tries} times and is given up: {why}"),
                );
                NoticeOutcome::Settled
            }
        })
    }

    /// Runs the command and calls the webhook for this goal.
    async fn send(&self, notice: &PendingNotice, record: &GoalRecord) -> Result<(), String> {
        // The secret may have been added to the `env` file since the start.
        let context = self.context.current();
        // A configuration that is broken for now is not a reason to drop a notification.
        let settings = context.operators_configuration().map_err(|error| error.to_string())?.notify;
        let channel = channel_for(&settings, &record.goal.origin.channel);
        let Some(notification) =
            notification(&record.goal, &record.state, &notice.phase, &context.secrets, (self.now)())
        else {
            return Ok(());
        };
        if let Some(command) = channel.command.as_ref().filter(|_| notice.tries == 0) {
            run_notify_command(command, &notification, &context.secrets).await;
        }
        let Some(webhook) = &channel.webhook else { return Ok(()) };
        let body = serde_json::to_string(&notification).map_err(|error| error.to_string())?;
        let body = context.secrets.json(&body);
        // A receiver that expects a signature must not get a body without one.
        if let Some(name) = missing_webhook_secret(&context, &settings) {
            return Err(format!("{name} is not set"));
        }
        let secret = settings.secret_env.as_deref().and_then(|name| context.variable(name));
        let headers = headers(notice, &notification.kind, &body, (self.now)(), secret);
        let sent = self.client.post(webhook).headers(headers).body(body).send().await;
        let status = sent.map_err(|error| error.without_url().to_string())?.status();
        if status.is_success() { Ok(()) } else { Err(status.to_string()) }
    }
}

/// The channel of the goal's origin where one is set for it, and otherwise the one for all.
fn channel_for(settings: &NotifySettings, origin: &str) -> Channel {
    let own = settings.channels.get(origin).cloned().unwrap_or_default();
    Channel {
        command: own.command.or_else(|| settings.all.command.clone()),
        webhook: own.webhook.or_else(|| settings.all.webhook.clone()),
    }
}

/// The moment after this pause.
fn later(pause: SignedDuration) -> Option<Instant> {
    Some(Instant::now() + Duration::try_from(pause).ok()?)
}

fn pause_after(tries: u32) -> SignedDuration {
    FIRST_PAUSE.checked_mul(1 << tries.min(10)).unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE)
}

/// What a receiver needs to know the kind, to recognise a second delivery, and to see that it comes from here.
fn headers(
    notice: &PendingNotice,
    kind: &str,
    body: &str,
    now: Timestamp,
    secret: Option<&str>,
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut add = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    let time = now.as_second().to_string();
    add("towline-event", kind.to_owned());
    add("towline-delivery", format!("{}-{}", notice.goal, notice.seq));
    add("towline-timestamp", time.clone());
    if let Some(secret) = secret {
        add("towline-signature", signature(secret, &time, body));
    }
    headers
}

/// `sha256=` and the HMAC of the time, a dot and the body, in hexadecimal digits.
fn signature(secret: &str, time: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("{time}.{body}").as_bytes());
    format!("sha256={}", hexadecimal(tag.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_one_that_others_compute() {
        // printf '%s' '1800000000.{"kind":"done"}' | openssl dgst -sha256 -hmac secret
        let expected = "sha256=36a9ce511d30aebc5bbad2ccf83734402aeea4b698a4abcc931305b589d6ad63";
        assert_eq!(signature("secret", "1800000000", "{\"kind\":\"done\"}"), expected);
    }

    #[test]
    fn pauses_double_up_to_an_hour() {
        let pauses: Vec<i64> = [0, 1, 2, 9, 31].map(|tries| pause_after(tries).as_secs()).into();
        assert_eq!(pauses, [5, 10, 20, 2_560, 3_600]);
    }

    #[test]
    fn the_channel_of_the_origin_wins_and_the_rest_is_for_all() {
        let webhook = |name: &str| Channel { command: None, webhook: Some(name.to_owned()) };
        let all = Channel { command: Some("true".into()), ..webhook("all") };
        let settings = NotifySettings {
            all,
            secret_env: None,
            channels: [("slack".to_owned(), webhook("slack"))].into(),
        };
        let slack = channel_for(&settings, "slack");
        assert_eq!((slack.command.as_deref(), slack.webhook.as_deref()), (Some("true"), Some("slack")));
        assert_eq!(channel_for(&settings, "cli").webhook.as_deref(), Some("all"));
    }
}
