//! How full the quotas are.

use jiff::Timestamp;
use towline_core::{AgentEvent, Limit, LimitStatus};

use super::protocol::CodexProtocol;
use super::wire::{LimitsNews, Window};
use crate::failures::{Rejected, reset_time};
use crate::protocol::Action;

/// From here on a quota is nearly used up.
const NEARLY_FULL: f64 = 90.0;
/// From here on a quota is used up.
const FULL: f64 = 100.0;

impl CodexProtocol {
    /// Reported only when something has changed, because the agent repeats it with every request.
    pub(super) fn on_limits(&mut self, news: &LimitsNews) -> Vec<Action> {
        let limits = &news.rate_limits;
        let windows = (limits.primary, limits.secondary);
        if windows == (None, None) || self.last_limits == Some(windows) {
            return Vec::new();
        }
        self.last_limits = Some(windows);
        let windows: Vec<Window> = [limits.primary, limits.secondary].into_iter().flatten().collect();
        let is_full = |window: &&Window| window.used_percent >= FULL;
        let is_rejected =
            limits.rate_limit_reached_type.is_some() || windows.iter().any(|window| is_full(&window));
        // Work can continue when the last full quota renews.
        let until = windows.iter().filter(is_full).filter_map(resets_at).max();
        self.evidence.rejected = is_rejected.then_some(Rejected { until });
        windows.iter().map(|window| Action::emit(AgentEvent::RateLimit(limit(window)))).collect()
    }
}

fn limit(window: &Window) -> Limit {
    let used = window.used_percent;
    let status = if used >= FULL {
        LimitStatus::Rejected
    } else if used >= NEARLY_FULL {
        LimitStatus::Warning
    } else {
        LimitStatus::Allowed
    };
    let utilization = Some(used / FULL).filter(|used| used.is_finite() && *used >= 0.0);
    Limit { scope: window.window_duration_mins.map(scope), status, utilization, resets_at: resets_at(window) }
}

fn scope(minutes: i64) -> String {
    match minutes {
        300 => "five_hour".to_owned(),
        10_080 => "seven_day".to_owned(),
        other => format!("{other}_minute"),
    }
}

fn resets_at(window: &Window) -> Option<Timestamp> {
    window.resets_at.and_then(reset_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(used_percent: f64, resets_at: i64) -> Window {
        Window { used_percent, window_duration_mins: Some(300), resets_at: Some(resets_at) }
    }

    #[test]
    fn windows_have_the_names_that_all_agents_share() {
        let reset = Timestamp::from_second(1_794_740_000).ok();
        let cases =
            [(43.0, LimitStatus::Allowed), (90.0, LimitStatus::Warning), (100.0, LimitStatus::Rejected)];
        for (used, status) in cases {
            let wanted = Limit {
                scope: Some("five_hour".into()),
                status,
                utilization: Some(used / 100.0),
                resets_at: reset,
            };
            assert_eq!(limit(&window(used, 1_794_740_000)), wanted);
        }
        assert_eq!((scope(10_080), scope(60)), ("seven_day".to_owned(), "60_minute".to_owned()));
    }
}
