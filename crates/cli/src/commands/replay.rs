//! `towline replay`: an attempt once more, from the raw bytes that its agent left.

use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use towline_app::{Context, Error, ReplayOutcome, replay};
use towline_core::Envelope;
use towline_engine::{Clock, SystemClock};
use towline_terminal::{Detail, Story};

use crate::output::{self, Layout};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline replay 1a2b3c4d                  the last attempt, as fast as possible
  towline replay 1a2b3c4d --speed 10       ten times the original speed
  towline replay 1a2b3c4d --attempt 1 --check")]
pub(crate) struct Replay {
    /// The goal's id, a prefix of it, or `@`
    id: String,
    /// The number of the attempt [default: the last]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// The speed: 1 is the original pace, 10 ten times as fast [default: as fast as possible]
    #[arg(long, value_name = "X", value_parser = speed, conflicts_with = "check")]
    speed: Option<f64>,
    /// Only compare the events with the stored ones; exits with 0 if they are the same, and with 3 if not
    #[arg(long)]
    check: bool,
    /// Print each event as a line of JSON
    #[arg(long)]
    json: bool,
}

/// The exit code when the bytes do not mean what is stored.
const DIFFERS: u8 = 3;

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(speed),
        _ => Err("a speed is a number above 0, such as 1 or 0.5 or 10".to_owned()),
    }
}

/// Replays the attempt.
pub(crate) async fn run(context: &Context, args: Replay) -> Result<ExitCode, Error> {
    let mut story = Story::new(output::paint(context), Detail::Whole);
    let mut last = None;
    let show = async |event: &Envelope, at: Option<Timestamp>| {
        // Every event counts, printed or not: questions are numbered from the goal's first on.
        let lines = story.lines(event, SystemClock.now());
        let Some(at) = at.filter(|_| !args.check) else { return };
        keep_pace(args.speed, &mut last, at).await;
        if args.json {
            output::print_json_or_exit(Layout::Line, &Envelope { at, ..event.clone() });
        } else {
            output::print_fitted(&lines);
        }
    };
    let replayed = replay(context, &args.id, args.attempt, show).await?;
    report(&args, &replayed);
    Ok(if replayed.outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERS) })
}

/// Waits as long as it took then.
async fn keep_pace(speed: Option<f64>, last: &mut Option<Timestamp>, at: Timestamp) {
    let before = last.replace(last.map_or(at, |last| last.max(at)));
    if let (Some(speed), Some(before)) = (speed, before)
        && let Ok(pause) = Duration::try_from(at.duration_since(before))
    {
        tokio::time::sleep(pause.div_f64(speed)).await;
    }
}

/// Prints what came of it.
fn report(args: &Replay, replayed: &ReplayOutcome) {
    let attempt = replayed.attempt;
    match &replayed.outcome {
        _ if args.check && args.json => output::print_json_or_exit(Layout::Pretty, &replayed.report()),
        Ok(same) if args.check => {
            output::print_or_exit(format_args!("attempt {attempt}: {same} events, all as stored"));
        }
        Ok(_) => {}
        Err(difference) => output::eprint(format_args!(
            "attempt {attempt}: its bytes do not mean what is stored, {}",
            difference.words(replayed.wording)
        )),
    }
}
