//! Asks the model, and retries where that can help.

use std::time::Duration;

use serde_json::json;
use towline_provider::{Answer, Delta, ErrorClass, Item, ProviderError, Question, ToolSpec};
use uuid::Uuid;

use super::clock;
use super::turn::Turn;
use super::updates;

/// Pauses before the second and the third try.
const DELAYS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// A rate limit that ends sooner is waited for.
const SHORT_LIMIT: Duration = Duration::from_secs(5);

/// Who receives the pieces of an answer while it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    Client,
    Nobody,
}

/// How many tries of a question failed.
#[derive(Debug, Default)]
struct Tries {
    failed: usize,
    waited_for_limit: bool,
}

impl Turn<'_> {
    /// Asks for the next answer of the conversation.
    pub(super) async fn ask_to_go_on(&self) -> Result<Answer, ProviderError> {
        self.ask(&self.session.items(), &self.session.hands.specs(), Audience::Client).await
    }

    /// Asks until there is an answer, or until another try is pointless.
    pub(super) async fn ask(
        &self,
        items: &[Item],
        tools: &[ToolSpec],
        audience: Audience,
    ) -> Result<Answer, ProviderError> {
        let model = self.session.model_name();
        let question = Question {
            model: &model,
            system: &self.session.system,
            items,
            tools,
            max_output: self.settings.max_output,
        };
        let mut tries = Tries::default();
        loop {
            self.outbox.counted(&self.session.id).await;
            // A try that fails halfway and the next one are two messages.
            let message = Uuid::now_v7().to_string();
            let mut send_delta = |delta: Delta| {
                if audience == Audience::Client {
                    self.outbox.update(&self.session.id, updates::delta(&message, delta));
                }
            };
            let error = match self.session.model.ask(&question, &mut send_delta).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(delay) = tries.delay(&error) else { return Err(error) };
            self.send_retry(&tries, &error, delay);
            tokio::time::sleep(delay).await;
        }
    }

    fn send_retry(&self, tries: &Tries, error: &ProviderError, delay: Duration) {
        let params = json!({
            "sessionId": self.session.id,
            "attempt": tries.failed + 1,
            "delayMs": u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            "status": error.status,
            "message": error.message,
        });
        self.outbox.notify("_towline/retrying", params);
    }
}

impl Tries {
    /// The pause before the next try, or `None` if there is none.
    fn delay(&mut self, error: &ProviderError) -> Option<Duration> {
        let delay = if matches!(error.class, ErrorClass::Server | ErrorClass::Network | ErrorClass::CutOff) {
            DELAYS.get(self.failed).copied().map(clock::jittered)
        } else if error.class == ErrorClass::Limited && !self.waited_for_limit {
            self.waited_for_limit = true;
            let left = error.until.map(|until| until.duration_since(clock::now()));
            left.map(|left| Duration::try_from(left).unwrap_or_default()).filter(|left| *left <= SHORT_LIMIT)
        } else {
            None
        };
        self.failed += 1;
        delay
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn error(class: ErrorClass, seconds: Option<i64>) -> ProviderError {
        let until = seconds.map(|seconds| clock::now() + SignedDuration::from_secs(seconds));
        ProviderError { class, status: None, until, message: String::new() }
    }

    /// How many tries are made if each fails like this.
    fn tries(class: ErrorClass, seconds: Option<i64>) -> usize {
        let mut tries = Tries::default();
        while tries.delay(&error(class, seconds)).is_some() {}
        tries.failed
    }

    #[test]
    fn only_passing_errors_are_retried_and_not_for_ever() {
        use ErrorClass::{Auth, CutOff, Invalid, Limited, Network, Overflow, Refused, Server};
        for class in [Server, Network, CutOff] {
            assert_eq!(tries(class, None), 3, "{class:?}");
        }
        for class in [Auth, Overflow, Refused, Invalid, Limited] {
            assert_eq!(tries(class, None), 1, "{class:?}");
        }
        for (seconds, wanted) in [(4, 2), (-9, 2), (60, 1)] {
            assert_eq!(tries(Limited, Some(seconds)), wanted, "{seconds}");
        }
    }
}
