//! Work whose panic ends nothing else: a request, or the driver of one goal. Whoever waits for it reports that.
//!
//! A panic anywhere else ends the process, because a server without one of its tasks would seem to work. The next one continues the
//! goals. The program's panic hook asks [`is_panic_contained`].

use std::cell::Cell;
use std::pin::pin;

thread_local! {
    /// How many contained pieces of work this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether a panic on this thread ends only the work that it happens in.
pub fn is_panic_contained() -> bool {
    DEPTH.get() > 0
}

/// Does something whose panic is contained.
pub fn contained<T>(work: impl FnOnce() -> T) -> T {
    struct Inside;

    impl Drop for Inside {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }

    DEPTH.set(DEPTH.get() + 1);
    let _inside = Inside;
    work()
}

/// The same for a future, wherever it is polled.
pub async fn contained_future<F: Future>(work: F) -> F::Output {
    let mut work = pin!(work);
    std::future::poll_fn(|context| contained(|| work.as_mut().poll(context))).await
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn only_panics_inside_are_contained_also_after_one() {
        assert!(!is_panic_contained());
        let seen = contained_future(async {
            let before = is_panic_contained();
            tokio::task::yield_now().await;
            (before, is_panic_contained(), contained(is_panic_contained))
        });
        assert_eq!((seen.await, is_panic_contained()), ((true, true, true), false));
        let mut tasks = JoinSet::new();
        tasks.spawn(contained_future(async { panic!("it is a test") }));
        assert!(tasks.join_next().await.is_some_and(|ended| ended.is_err_and(|error| error.is_panic())));
        tasks.spawn(async { is_panic_contained() });
        assert!(!tasks.join_next().await.expect("a task").expect("it returns"));
    }
}
