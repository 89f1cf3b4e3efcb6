//! `towline replay`: an attempt once more, from the raw bytes that its agent left.

use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use towline_core::{AttemptNo, Envelope, Event, RawRef, Seq, Source};
use towline_engine::replay::{Comparison, Difference, Over, Replay, ReplayError, Replayed, Taken, Wording};
use towline_mask::shows_marker;
use towline_store::GoalRecord;

use crate::context::Context;
use crate::failure::Failure;
use crate::find::{self, Found};
use crate::output::{self, Layout};
use crate::view::{Paint, Story, Telling};

/// Replay an attempt.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline replay 1a2b3c4d                  the last attempt, as fast as possible
  towline replay 1a2b3c4d --speed 10       ten times as fast as it was
  towline replay 1a2b3c4d --attempt 1 --check")]
pub(crate) struct Args {
    /// The goal's id, or a prefix of it
    id: String,
    /// Which attempt [default: the last]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// How fast: 1 is the pace of then, 10 ten times as fast [default: as fast as possible]
    #[arg(long, value_name = "X", value_parser = speed, conflicts_with = "check")]
    speed: Option<f64>,
    /// Only say whether the bytes still mean what is stored: exits with 0 when they do, and with 3 when they do not
    #[arg(long)]
    check: bool,
    /// Print each event as a line of JSON
    #[arg(long)]
    json: bool,
}

/// The exit code when the bytes do not mean what is stored.
const DIFFERS: u8 = 3;
/// How many events are read at once.
const PAGE: usize = 500;

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(speed),
        _ => Err("a speed is a number above 0, such as 1 or 0.5 or 10".to_owned()),
    }
}

/// An event as `--json` prints it.
#[derive(Serialize)]
struct Line<'a> {
    at: Timestamp,
    attempt: AttemptNo,
    source: Source,
    parent: Option<&'a str>,
    raw: Option<RawRef>,
    event: &'a Event,
}

/// The outcome of `--check --json`.
#[derive(Serialize)]
struct Outcome<'a> {
    goal: String,
    attempt: AttemptNo,
    same: u64,
    difference: Option<DifferenceLine<'a>>,
}

#[derive(Serialize)]
struct DifferenceLine<'a> {
    stored: Option<&'a Event>,
    replayed: Option<&'a Event>,
}

/// Replays the attempt.
pub(crate) async fn run(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let found = find::goal(context, &args.id).await?;
    let number = attempt(&found.record, args.attempt)?;
    let replay = open(&found, number)?;
    let mut showing = Showing::new(context, &args, number);
    let outcome = compare(&found, Comparison::new(number, replay), &mut showing).await?;
    Ok(report(&args, &found.record, number, &outcome, showing.wording))
}

fn attempt(record: &GoalRecord, wanted: Option<u32>) -> Result<AttemptNo, Failure> {
    match wanted {
        Some(number) => find::attempt(record, number),
        None => match record.state.last_attempt() {
            Some(last) => Ok(last.n),
            None => Err(Failure::not_found("the goal has had no attempt yet")),
        },
    }
}

fn open(found: &Found, number: AttemptNo) -> Result<Replay, Failure> {
    let record = &found.record;
    let is_over = record.state.attempt(number).is_some_and(|attempt| attempt.end.is_some());
    let over = if is_over { Over::Recorded } else { Over::NotYet };
    Replay::open(&found.state.home, record.goal.id, number, over).map_err(|error| {
        let short = record.goal.id.short();
        match &error {
            ReplayError::NotStarted { .. } => {
                Failure::not_found(error.to_string()).hint(format!("see why: towline show {short}"))
            }
            ReplayError::Removed { .. } => Failure::not_found(error.to_string()).hint(format!(
                "`towline gc` removes them after the time that `retention.logs` says; the story is still there: \
                 towline logs {short}"
            )),
            ReplayError::NotOver { .. } => {
                Failure::usage(error.to_string()).hint(format!("follow it: towline logs -f {short}"))
            }
            ReplayError::Unreadable { .. } => {
                let hint = format!(
                    "the bytes are there all the same: towline logs --raw --attempt {number} {short}"
                );
                Failure::internal(error.to_string()).hint(hint)
            }
        }
    })
}

/// Holds the stored log against the replay, and shows what happened meanwhile.
async fn compare(
    found: &Found,
    mut comparison: Comparison,
    showing: &mut Showing,
) -> Result<Result<u64, Difference>, Failure> {
    let mut after = Seq(0);
    loop {
        let page = found.state.store.events(found.record.goal.id, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(comparison.finish()) };
        after = last.seq;
        for stored in &page {
            match comparison.take(stored) {
                Ok(Taken::Elsewhere) => showing.pass(stored),
                Ok(Taken::Beside) => showing.show(stored, stored.at).await,
                Ok(Taken::Same(fresh)) => showing.show(stored, fresh.at.unwrap_or(stored.at)).await,
                Err(difference) => {
                    if hides(found, showing.attempt).await? {
                        showing.wording = Wording::Kind;
                    } else {
                        showing.show_differing(&difference, comparison, stored).await;
                    }
                    return Ok(Err(difference));
                }
            }
        }
    }
}

/// Whether what is stored of the attempt hides something: then the bytes may not be shown either, because whoever reads
/// them now may not know what is secret in them.
async fn hides(found: &Found, attempt: AttemptNo) -> Result<bool, Failure> {
    let mut after = Seq(0);
    loop {
        let page = found.state.store.events(found.record.goal.id, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(false) };
        after = last.seq;
        let mut of_attempt = page.iter().filter(|event| event.attempt == Some(attempt));
        if of_attempt.any(|event| shows_marker(&serde_json::to_string(&event.event).unwrap_or_default())) {
            return Ok(true);
        }
    }
}

/// Shows events at their pace.
struct Showing {
    story: Story,
    attempt: AttemptNo,
    json: bool,
    silent: bool,
    speed: Option<f64>,
    last: Option<Timestamp>,
    /// How much may be said of what the bytes say.
    wording: Wording,
}

impl Showing {
    fn new(context: &Context, args: &Args, attempt: AttemptNo) -> Self {
        let story = Story::new(Paint::for_stdout(context), Telling::Whole);
        Self {
            story,
            attempt,
            json: args.json,
            silent: args.check,
            speed: args.speed,
            last: None,
            wording: Wording::All,
        }
    }

    /// Takes note of what happened before: questions are numbered from the goal's first on.
    fn pass(&mut self, event: &Envelope) {
        self.story.lines(event);
    }

    /// Shows all that the bytes say from where they differ on.
    async fn show_differing(&mut self, difference: &Difference, rest: Comparison, stored: &Envelope) {
        let first = difference.fresh.as_deref().cloned();
        for fresh in first.into_iter().chain(rest.rest()) {
            let Replayed { at, source, parent, raw, event } = fresh;
            let at = at.unwrap_or(stored.at);
            self.show(&Envelope { at, source, parent, raw, event, ..stored.clone() }, at).await;
        }
    }

    async fn show(&mut self, event: &Envelope, at: Timestamp) {
        if self.silent {
            return;
        }
        self.keep_pace(at).await;
        if self.json {
            let Envelope { source, parent, raw, event, .. } = event;
            let parent = parent.as_deref();
            let (source, raw, attempt) = (*source, *raw, self.attempt);
            output::tell_json(Layout::Line, &Line { at, attempt, source, parent, raw, event });
        } else {
            self.story.lines(event).iter().flat_map(|line| output::fitted(line)).for_each(output::tell);
        }
    }

    /// Waits as long as it took then.
    async fn keep_pace(&mut self, at: Timestamp) {
        let last = self.last.replace(self.last.map_or(at, |last| last.max(at)));
        if let (Some(speed), Some(last)) = (self.speed, last)
            && let Ok(pause) = Duration::try_from(at.duration_since(last))
        {
            tokio::time::sleep(pause.div_f64(speed)).await;
        }
    }
}

/// Says what came of it.
fn report(
    args: &Args,
    record: &GoalRecord,
    attempt: AttemptNo,
    outcome: &Result<u64, Difference>,
    wording: Wording,
) -> ExitCode {
    let code = if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERS) };
    match outcome {
        _ if args.check && args.json => {
            let difference = outcome.as_ref().err().map(|difference| DifferenceLine {
                stored: difference.stored.as_ref().map(|stored| &stored.event),
                replayed: difference
                    .fresh
                    .as_ref()
                    .filter(|_| wording == Wording::All)
                    .map(|fresh| &fresh.event),
            });
            let same = outcome.as_ref().map_or_else(|difference| difference.same, |same| *same);
            let goal = record.goal.id.to_string();
            output::tell_json(Layout::Pretty, &Outcome { goal, attempt, same, difference });
        }
        Ok(same) if args.check => {
            output::tell(format_args!("attempt {attempt}: {same} events, all as stored"))
        }
        Ok(_) => {}
        Err(difference) => output::say(format_args!(
            "attempt {attempt}: its bytes do not mean what is stored, {}",
            difference.words(wording)
        )),
    }
    code
}
