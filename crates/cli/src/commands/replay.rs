//! `towline replay`: an attempt once more, from the raw bytes that its agent left.

use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use towline_app::{ReplayOutcome, ReplayViewer, replay};
use towline_core::Envelope;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{self, Layout};
use crate::view::{Paint, Story, Telling};

/// Replay an attempt.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline replay 1a2b3c4d                  the last attempt, as fast as possible
  towline replay 1a2b3c4d --speed 10       ten times as fast as it was
  towline replay 1a2b3c4d --attempt 1 --check")]
pub(crate) struct Replay {
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

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(speed),
        _ => Err("a speed is a number above 0, such as 1 or 0.5 or 10".to_owned()),
    }
}

/// Replays the attempt.
pub(crate) async fn run(context: &Context, args: Replay) -> Result<ExitCode, Failure> {
    let story = Story::new(Paint::for_stdout(context), Telling::Whole);
    let mut showing = Showing { story, json: args.json, silent: args.check, speed: args.speed, last: None };
    let replayed = replay(context, &args.id, args.attempt, &mut showing).await?;
    report(&args, &replayed);
    Ok(if replayed.outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERS) })
}

/// Shows events at their pace.
struct Showing {
    story: Story,
    json: bool,
    silent: bool,
    speed: Option<f64>,
    last: Option<Timestamp>,
}

impl ReplayViewer for Showing {
    /// Takes note of what happened before: questions are numbered from the goal's first on.
    fn pass(&mut self, event: &Envelope) {
        self.story.lines(event);
    }

    async fn show(&mut self, event: &Envelope, at: Timestamp) {
        if self.silent {
            return;
        }
        self.keep_pace(at).await;
        if self.json {
            output::tell_json(Layout::Line, &Envelope { at, ..event.clone() });
        } else {
            self.story.lines(event).iter().flat_map(|line| output::fitted(line)).for_each(output::tell);
        }
    }
}

impl Showing {
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

/// Prints what came of it.
fn report(args: &Replay, replayed: &ReplayOutcome) {
    let attempt = replayed.attempt;
    match &replayed.outcome {
        _ if args.check && args.json => output::tell_json(Layout::Pretty, &replayed.report()),
        Ok(same) if args.check => {
            output::tell(format_args!("attempt {attempt}: {same} events, all as stored"));
        }
        Ok(_) => {}
        Err(difference) => output::say(format_args!(
            "attempt {attempt}: its bytes do not mean what is stored, {}",
            difference.words(replayed.wording)
        )),
    }
}
