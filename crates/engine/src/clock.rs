//! The one place where the engine learns what time it is.

use std::io;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::net::unix::pipe::Receiver;

/// The pause before an alarm that the system does not set is tried again.
const ALARM_PAUSE: Duration = Duration::from_secs(1);

/// Wall time, as a value that tests can replace.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// An alarm by this clock. Called inside a runtime.
    fn alarm(&self) -> io::Result<Box<dyn Alarm>>;
}

/// Waits for a time of day.
pub trait Alarm: Send {
    /// Waits until it is this time, forever if there is none. It may end earlier, for example when the clock is set. Safe to drop
    /// while waiting.
    fn ring(&mut self, at: Option<Timestamp>) -> BoxFuture<'_, ()>;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock at the edge")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn alarm(&self) -> io::Result<Box<dyn Alarm>> {
        let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // Whatever can be waited for and read is as good as a pipe.
        let timer = Receiver::from_owned_fd_unchecked(timer)?;
        Ok(Box::new(SystemAlarm { timer, set_to: None }))
    }
}

/// A timer of the system: it also counts while the machine is suspended, and rings when the clock is set.
struct SystemAlarm {
    timer: Receiver,
    set_to: Option<Timestamp>,
}

impl SystemAlarm {
    fn set(&mut self, at: Option<Timestamp>) -> io::Result<()> {
        if self.set_to != at {
            self.set_to = at;
            let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
            timerfd_settime(&self.timer, flags, &timer_value(at))?;
        }
        Ok(())
    }

    /// Waits until the timer has expired, or was cancelled because the clock was set.
    async fn wait(&self) -> io::Result<()> {
        loop {
            self.timer.readable().await?;
            match self.timer.try_read(&mut [0_u8; 8]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read.map(drop),
            }
        }
    }
}

impl Alarm for SystemAlarm {
    fn ring(&mut self, at: Option<Timestamp>) -> BoxFuture<'_, ()> {
        async move {
            let rang = match (self.set(at), at) {
                (Ok(()), None) => std::future::pending().await,
                (Ok(()), Some(_)) => self.wait().await,
                (error, _) => error,
            };
            self.set_to = None;
            if rang.is_err_and(|error| !is_by_set_clock(&error)) {
                tokio::time::sleep(ALARM_PAUSE).await;
            }
        }
        .boxed()
    }
}

/// Whether the timer was cancelled because the clock was set.
fn is_by_set_clock(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::CANCELED.raw_os_error())
}

/// Nothing but zeros turns a timer off, so the beginning of all time is a little later.
fn timer_value(at: Option<Timestamp>) -> Itimerspec {
    let off = Timespec { tv_sec: 0, tv_nsec: 0 };
    let it_value = at.map_or(off, |at| Timespec {
        tv_sec: at.as_second().max(1),
        tv_nsec: at.subsec_nanosecond().max(0).into(),
    });
    Itimerspec { it_interval: off, it_value }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    /// Setting the clock takes a privilege and disturbs the machine, so what the system was asked for is read back.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_system_cancels_the_alarm_when_the_clock_is_set_and_that_ends_the_wait_at_once() {
        let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::NONBLOCK).expect("a timer");
        let timer = Receiver::from_owned_fd_unchecked(timer).expect("a receiver");
        let mut alarm = SystemAlarm { timer, set_to: None };
        alarm.set(Some(SystemClock.now() + Duration::from_secs(3_600))).expect("set");
        let about = format!("/proc/self/fdinfo/{}", alarm.timer.as_raw_fd());
        let about = std::fs::read_to_string(about).expect("what the system knows of the timer");
        let is_set_to = |name: &str, value: &str| {
            about.lines().any(|line| line.split_once(": ").is_some_and(|set| set == (name, value)))
        };
        // The first bit is an absolute time, the second one cancelling.
        assert!(is_set_to("clockid", "0") && is_set_to("settime flags", "03"), "{about}");
        assert!(is_by_set_clock(&io::Error::from(Errno::CANCELED)));
        assert!(!is_by_set_clock(&io::Error::from(Errno::INVAL)));
    }

    #[tokio::test]
    async fn an_alarm_rings_at_its_time_and_can_be_set_again() {
        let mut alarm = SystemClock.alarm().expect("an alarm");
        let soon = || SystemClock.now() + Duration::from_millis(20);
        for _ in 0..2 {
            let at = soon();
            alarm.ring(Some(at)).await;
            assert!(SystemClock.now() >= at);
        }
        alarm.ring(Some(Timestamp::UNIX_EPOCH)).await;
        let later = SystemClock.now() + Duration::from_secs(3_600);
        tokio::select! {
            () = alarm.ring(Some(later)) => panic!("it is not time"),
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
        tokio::select! {
            () = alarm.ring(None) => panic!("it is off"),
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
        alarm.ring(Some(soon())).await;
    }
}
