//! The output of a running call, reported at intervals instead of piece by piece.

use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use towline_provider::Call;

use super::hands::Hands;
use crate::lock::lock;
use crate::tools::Outcome;

/// The shortest time between two reports.
const INTERVAL: Duration = Duration::from_millis(250);

/// The longest text of a report: the end of the output.
const TAIL_BYTES: usize = 8 * 1024;

/// The end of the output so far.
#[derive(Debug, Default)]
struct Tail(String);

impl Tail {
    fn push(&mut self, text: &str) {
        self.0.push_str(text);
        if self.0.len() > TAIL_BYTES * 2 {
            let from = self.0.ceil_char_boundary(self.0.len() - TAIL_BYTES);
            self.0.drain(..from);
        }
    }

    fn text(&self) -> String {
        self.0[self.0.ceil_char_boundary(self.0.len().saturating_sub(TAIL_BYTES))..].to_owned()
    }
}

/// Runs a call and reports the end of its output while it runs.
pub(super) async fn run_with_progress(hands: &Hands, call: &Call, report: impl Fn(&str)) -> Outcome {
    let (tail, news) = (Mutex::new(Tail::default()), Notify::new());
    let mut progress = |text: &str| {
        lock(&tail).push(text);
        news.notify_one();
    };
    let mut run = pin!(hands.run(call, &mut progress));
    let mut earliest = Instant::now();
    let mut due: Option<Instant> = None;
    loop {
        tokio::select! {
            biased;
            outcome = &mut run => return outcome,
            () = news.notified(), if due.is_none() => due = Some(earliest.max(Instant::now())),
            () = sleep_until(due.unwrap_or(earliest)), if due.is_some() => {
                let text = lock(&tail).text();
                report(&text);
                (earliest, due) = (Instant::now() + INTERVAL, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_holds_the_end_of_a_long_output() {
        let mut tail = Tail::default();
        for number in 0..100_000 {
            tail.push(&format!("{number} ü\n"));
        }
        let text = tail.text();
        assert!(text.ends_with("99998 ü\n99999 ü\n") && text.len() <= TAIL_BYTES, "{}", text.len());
        assert!(tail.0.len() <= TAIL_BYTES * 2);
    }
}
