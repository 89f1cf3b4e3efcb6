//! Evidence of failed requests that several agents report: retries and used-up quotas.

use jiff::Timestamp;
use towline_core::End;

/// More refused credentials in a row than the refresh of a token causes.
const AUTH_RETRIES: u32 = 2;

/// Reset times before 2020 or after 2100 are another unit or a bug.
const PLAUSIBLE_SECONDS: std::ops::Range<i64> = 1_577_836_800..4_102_444_800;

/// A used-up quota.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rejected {
    /// When it renews, if the provider reported that.
    pub(crate) until: Option<Timestamp>,
}

/// Failed requests in a row that the agent retried.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Retries {
    /// The status of the last one.
    pub(crate) status: Option<u16>,
    /// How many of the last ones were refused credentials.
    pub(crate) auth: u32,
    pub(crate) count: u32,
}

impl Retries {
    /// Counts a request that failed with this status.
    pub(crate) fn add(&mut self, status: Option<u16>) {
        let auth = if matches!(status, Some(401 | 403)) { self.auth + 1 } else { 0 };
        *self = Self { status, auth, count: self.count + 1 };
    }
}

/// The end of an attempt without a completed turn.
pub(crate) fn without_result(retries: &Retries, rejected: Option<&Rejected>, message: String) -> End {
    match rejected {
        _ if retries.auth >= AUTH_RETRIES => End::Auth { message },
        Some(rejected) => End::RateLimited { until: rejected.until },
        None => End::Crashed { message },
    }
}

/// The time at which a quota renews, if it is plausible.
pub(crate) fn reset_time(seconds: i64) -> Option<Timestamp> {
    PLAUSIBLE_SECONDS.contains(&seconds).then(|| Timestamp::from_second(seconds).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_implausible_reset_time_is_ignored() {
        assert_eq!(reset_time(1_794_711_639), Timestamp::from_second(1_794_711_639).ok());
        for nonsense in [0, -1, 18_000, 1_794_740_000_000, i64::MAX] {
            assert_eq!(reset_time(nonsense), None, "{nonsense}");
        }
    }
}
