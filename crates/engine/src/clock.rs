//! The one place where the engine learns what time it is.

use jiff::Timestamp;

/// Wall time, as a value that tests can replace.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock at the edge")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
