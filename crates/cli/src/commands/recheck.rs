//! Running a goal's checks once more, on screen, until a person has had enough of it.

use towline_check::{CheckError, Progress};
use towline_core::Verdict;
use towline_engine::{Custody, Recheck};

use crate::commands::foreground::{Interrupts, Wish, suspend};
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::view::{Paint, Story, Telling};

/// Whether a person or a program reads what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    Person,
    Program,
}

impl Reader {
    /// By the flag for JSON.
    pub(super) const fn of(json: bool) -> Self {
        if json { Self::Program } else { Self::Person }
    }
}

/// Runs the checks and shows how they go; no verdict when a person stopped them.
pub(super) async fn recheck(
    context: &Context,
    custody: &Custody,
    what: Recheck<'_>,
    reader: Reader,
) -> Result<Option<Verdict>, Failure> {
    let mut interrupts = Interrupts::listen()?;
    let stop = async {
        while interrupts.next().await == Wish::Suspend {
            suspend();
        }
        output::say(format_args!("stopping the checks"));
    };
    let paint = Paint::for_stdout(context);
    let (story, goal) = (Story::new(paint, Telling::Short), custody.record.goal.id);
    let show = |progress| match progress {
        _ if reader == Reader::Program => {}
        // A recheck runs in a clean checkout from the start.
        Progress::Confirming | Progress::Adopted { .. } => {}
        Progress::Started { name, .. } => output::print(paint.dim(&format!("  … {}", output::brief(&name)))),
        Progress::Finished { result } => story.check(&result, goal).iter().for_each(output::print),
    };
    match custody.check(what, stop, show).await? {
        Ok(mut verdict) => {
            // It is stored by an engine that knows no agents, nor what is secret for them.
            let mask = output::mask();
            verdict.for_each_text(&mut |text| mask.apply(text));
            Ok(Some(verdict))
        }
        Err(CheckError::Stopped) => Ok(None),
        Err(error) => Err(Failure::internal(format!("the checks could not be run: {error}"))),
    }
}
