//! Reads in directories that may not answer, such as those of a network file system whose server is gone: each on a thread that may
//! block, and waited for only for a moment.
//!
//! Nothing ends a thread that waits for such a directory. So each directory has at most one, whoever asks and however often, and all
//! of them together have a bounded number.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::watch;
use tokio::task::{block_in_place, spawn_blocking};
use tokio::time::{Instant, timeout_at};

use crate::contained::{contained, is_panic_contained};

/// How long a directory may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many directories are read at the same time: the runtime has 512 threads that may block.
const MOST_READS: usize = 64;

/// The reads of a process. Copies share them.
#[derive(Debug, Clone, Default)]
pub struct Reads(Arc<Outstanding>);

#[derive(Debug, Default)]
struct Outstanding {
    /// The reads that have not returned yet, by their directories.
    reads: Mutex<BTreeMap<String, Begun>>,
    /// Changes when a read has returned.
    returned: watch::Sender<()>,
    /// Changes when a read has returned after somebody gave it up.
    answered: watch::Sender<()>,
}

#[derive(Debug)]
struct Begun {
    at: Instant,
    is_given_up: bool,
}

/// Why a directory could not be read in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    Silent,
    /// So many others are being read that nobody knows.
    Crowded,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Silent => "it does not answer",
            Self::Crowded => "too many other directories do not answer",
        })
    }
}

/// Does what may block for long. The other tasks of a server's runtime go on meanwhile.
pub(crate) fn apart<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        _ => work(),
    }
}

impl Reads {
    /// Reads something in a directory, if it answers in time. While an earlier read of it is late, it is not asked again.
    pub async fn read<T: Send + 'static>(
        &self,
        directory: &str,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let (place, deadline) = self.place(directory).await?;
        let is_contained = is_panic_contained();
        let reading = spawn_blocking(move || {
            let value = if is_contained { contained(read) } else { read() };
            drop(place);
            value
        });
        match timeout_at(deadline, reading).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(failed)) => match failed.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends.
                Err(_) => Err(NoAnswer::Silent),
            },
            Err(_) => Err(self.give_up(directory)),
        }
    }

    /// Changes when a directory has answered that was given up: time to look at it again.
    pub(crate) fn answered(&self) -> watch::Receiver<()> {
        self.0.answered.subscribe()
    }

    /// Waits until nobody reads the directory, and there is room for one more.
    async fn place(&self, directory: &str) -> Result<(Permit, Instant), NoAnswer> {
        let mut returned = self.0.returned.subscribe();
        let own = Instant::now() + PATIENCE;
        loop {
            returned.borrow_and_update();
            let deadline = {
                let mut reads = self.0.reads();
                match reads.get(directory) {
                    Some(begun) => begun.at + PATIENCE,
                    None if reads.len() >= MOST_READS => own,
                    None => {
                        let at = Instant::now();
                        reads.insert(directory.to_owned(), Begun { at, is_given_up: false });
                        let outstanding = Arc::clone(&self.0);
                        return Ok((Permit { outstanding, directory: directory.to_owned() }, at + PATIENCE));
                    }
                }
            };
            if timeout_at(deadline, returned.changed()).await.is_err() {
                return Err(self.give_up(directory));
            }
        }
    }

    /// Has everybody who looks notified when the directory can be looked at again.
    fn give_up(&self, directory: &str) -> NoAnswer {
        let mut reads = self.0.reads();
        if let Some(begun) = reads.get_mut(directory) {
            begun.is_given_up = true;
            NoAnswer::Silent
        } else if reads.len() >= MOST_READS {
            reads.values_mut().for_each(|begun| begun.is_given_up = true);
            NoAnswer::Crowded
        } else {
            // It has returned in this very moment.
            self.0.answered.send_replace(());
            NoAnswer::Silent
        }
    }
}

impl Outstanding {
    fn reads(&self) -> MutexGuard<'_, BTreeMap<String, Begun>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to read a directory, for as long as that takes.
struct Permit {
    outstanding: Arc<Outstanding>,
    directory: String,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let begun = self.outstanding.reads().remove(&self.directory);
        self.outstanding.returned.send_replace(());
        if begun.is_some_and(|begun| begun.is_given_up) {
            self.outstanding.answered.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::future::join_all;

    use super::*;

    /// A read that does not return before the sender is dropped.
    fn stuck() -> (mpsc::Sender<()>, impl FnOnce() + Send + 'static) {
        let (release, held) = mpsc::channel();
        (release, move || {
            let _ = held.recv();
        })
    }

    #[tokio::test]
    async fn a_directory_that_does_not_answer_is_asked_once_and_again_when_it_has_answered() {
        let reads = Reads::default();
        let mut answered = reads.answered();
        let (release, stuck) = stuck();
        let never = || panic!("it is asked a second time");
        // Whoever comes while it is not late yet waits for it as well.
        let (first, second) = tokio::join!(reads.read("/hung", stuck), reads.read("/hung", never));
        assert_eq!((first, second), (Err(NoAnswer::Silent), Err(NoAnswer::Silent)));
        let begun = Instant::now();
        for _ in 0..100 {
            assert_eq!(reads.clone().read("/hung", never).await, Err(NoAnswer::Silent));
            assert_eq!(reads.read("/other", || 7).await, Ok(7));
        }
        assert!(begun.elapsed() < PATIENCE * 20, "nobody waits for it again");
        assert_eq!((reads.0.reads().len(), answered.has_changed().expect("a sender")), (1, false));
        drop(release);
        answered.changed().await.expect("a sender");
        assert_eq!(reads.read("/hung", || 8).await, Ok(8));
        assert!(!answered.has_changed().expect("a sender"), "only what was late is reported");
    }

    #[tokio::test]
    async fn directories_that_do_not_answer_use_up_no_more_than_their_share_of_threads() {
        let reads = Reads::default();
        let mut answered = reads.answered();
        let (mut releases, mut hung) = (Vec::new(), Vec::new());
        for number in 0..MOST_READS + 8 {
            let (release, stuck) = stuck();
            releases.push(release);
            let reads = reads.clone();
            hung.push(async move { reads.read(&format!("/hung/{number}"), stuck).await });
        }
        let silent = join_all(hung).await.into_iter().filter(|read| *read == Err(NoAnswer::Silent)).count();
        assert_eq!((silent, reads.0.reads().len()), (MOST_READS, MOST_READS));
        assert_eq!(reads.read("/other", || 7).await, Err(NoAnswer::Crowded));
        assert_eq!(tokio::task::spawn_blocking(|| 7).await.expect("a thread for others"), 7);
        drop(releases);
        answered.changed().await.expect("a sender");
        assert_eq!(reads.read("/other", || 7).await, Ok(7));
    }
}
