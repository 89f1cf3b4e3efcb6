//! `stream_event` and `rate_limit_event`: what is visible of a request while it runs.

use towline_core::{AgentEvent, Limit, LimitStatus};

use super::protocol::ClaudeProtocol;
use super::wire;
use crate::failures::{Rejected, Retries, reset_time};
use crate::lines::{Reading, Unknown};
use crate::protocol::Action;

impl ClaudeProtocol {
    pub(super) fn on_stream_event(&mut self, line: wire::StreamLine<'_>) -> Reading {
        let parent = line.parent_tool_use_id.as_ref().map(wire::Text::as_str);
        let event = match line.event.kind.as_str() {
            "content_block_delta" => line.event.delta.and_then(text_delta),
            "message_start" => {
                if parent.is_none() {
                    self.request_worked();
                }
                line.event.message.and_then(|message| self.usage.began(parent, &message))
            }
            "message_delta" => {
                if line.event.delta.is_some_and(|delta| delta.stop_reason.is_some()) {
                    self.usage.finished(parent);
                }
                line.event.usage.and_then(|used| self.usage.grew(parent, used))
            }
            "content_block_start" | "content_block_stop" | "message_stop" | "ping" | "error" => None,
            unknown => return Err(Unknown(format!("stream_event/{unknown}"))),
        };
        let parent = parent.map(str::to_owned);
        Ok(event.map(|event| Action::Emit { event, parent }).into_iter().collect())
    }

    pub(super) fn on_rate_limit(&mut self, line: wire::RateLimitLine<'_>) -> Reading {
        let info = line.rate_limit_info;
        let status = match info.status.as_str() {
            "allowed" => LimitStatus::Allowed,
            "allowed_warning" => LimitStatus::Warning,
            // Work continues, on paid extra usage.
            "rejected" if info.is_using_overage == Some(true) => LimitStatus::Warning,
            "rejected" => LimitStatus::Rejected,
            unknown => return Err(Unknown(format!("rate_limit_event/{unknown}"))),
        };
        let resets_at = info.resets_at.and_then(|seconds| reset_time(seconds as i64));
        self.evidence.rejected = (status == LimitStatus::Rejected).then_some(Rejected { until: resets_at });
        let utilization = info.utilization.filter(|used| used.is_finite() && *used >= 0.0);
        let scope = wire::owned(info.rate_limit_type);
        Ok(vec![Action::emit(AgentEvent::RateLimit(Limit { scope, status, utilization, resets_at }))])
    }

    /// The model answers: earlier failures are over, and a turn is running.
    pub(super) fn request_worked(&mut self) {
        self.evidence.in_turn = true;
        self.evidence.retries = Retries::default();
        self.evidence.unanswered = 0;
        self.evidence.assistant_error = None;
        self.evidence.rejected = None;
    }
}

fn text_delta(delta: wire::Delta<'_>) -> Option<AgentEvent> {
    let is_text = delta.kind.is_some_and(|kind| kind.as_str() == "text_delta");
    let text = wire::owned(delta.text)?;
    (is_text && !text.is_empty()).then_some(AgentEvent::MessageDelta { text })
}
