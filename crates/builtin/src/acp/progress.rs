//! The output of a running call, reported at intervals instead of piece by piece.

use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use towline_provider::Call;

use super::hands::Hands;
use crate::lock::lock;
use crate::tools::{Outcome, whole_characters};

/// The shortest time between two reports.
const INTERVAL: Duration = Duration::from_millis(250);

/// The longest text of a report: the end of the output.
const TAIL_BYTES: usize = 8 * 1024;

/// The end of the output so far.
#[derive(Debug, Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn push(&mut self, piece: &[u8]) {
        self.0.extend_from_slice(piece);
        if self.0.len() > TAIL_BYTES * 2 {
            self.0.drain(..self.0.len() - TAIL_BYTES);
        }
    }

    fn text(&self) -> String {
        let tail = &self.0[self.0.len().saturating_sub(TAIL_BYTES)..];
        String::from_utf8_lossy(whole_characters(tail)).into_owned()
    }
}

/// Runs a call and reports the end of its output while it runs.
pub(super) async fn run_with_progress(hands: &Hands, call: &Call, report: impl Fn(&str)) -> Outcome {
    let (tail, news) = (Mutex::new(Tail::default()), Notify::new());
    let mut progress = |piece: &[u8]| {
        lock(&tail).push(piece);
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
            tail.push(format!("{number} ü\n").as_bytes());
        }
        let text = tail.text();
        assert!(text.ends_with("99998 ü\n99999 ü\n") && text.len() <= TAIL_BYTES, "{}", text.len());
        assert!(tail.0.len() <= TAIL_BYTES * 2);
    }
}
