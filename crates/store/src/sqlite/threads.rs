//! Threads that own database connections and take jobs from a bounded queue.
//!
//! SQLite blocks, so it has threads of its own; the async side only sends and waits.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::mpsc;

/// How many jobs may wait before their senders have to.
const QUEUE: usize = 256;

/// The threads' end of the queue, shared by all of them.
pub(super) struct Jobs<J>(Arc<Mutex<mpsc::Receiver<J>>>);

impl<J> Jobs<J> {
    /// Waits for a job; none means that there will be no more.
    pub(super) fn next(&self) -> Option<J> {
        self.receiver().blocking_recv()
    }

    /// A job that waits already.
    pub(super) fn waiting(&self) -> Option<J> {
        self.receiver().try_recv().ok()
    }

    fn receiver(&self) -> std::sync::MutexGuard<'_, mpsc::Receiver<J>> {
        // A thread that panics while it holds the lock was only waiting: the queue is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Threads with their queue. Dropping it lets them finish what is queued and waits for them, so that the database
/// is closed afterwards.
pub(super) struct Threads<J> {
    /// Taken out by `drop`, which is how the threads learn that there will be no more.
    jobs: Option<mpsc::Sender<J>>,
    handles: Vec<JoinHandle<()>>,
}

impl<J: Send + 'static> Threads<J> {
    /// Starts one thread for each body.
    pub(super) fn start<B>(name: &str, bodies: impl IntoIterator<Item = B>) -> io::Result<Self>
    where
        B: FnOnce(Jobs<J>) + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut threads = Self { jobs: Some(sender), handles: Vec::new() };
        for body in bodies {
            let jobs = Jobs(Arc::clone(&receiver));
            let handle = std::thread::Builder::new().name(name.to_owned()).spawn(move || body(jobs))?;
            threads.handles.push(handle);
        }
        Ok(threads)
    }

    /// Queues a job, waiting while the queue is full; gives it back when the threads are gone.
    pub(super) async fn send(&self, job: J) -> Result<(), J> {
        match &self.jobs {
            Some(jobs) => jobs.send(job).await.map_err(|refused| refused.0),
            None => Err(job),
        }
    }
}

impl<J> Drop for Threads<J> {
    fn drop(&mut self) {
        self.jobs = None;
        for handle in self.handles.drain(..) {
            // A panic was printed when it happened, and whoever waited for its job got an error.
            let _ = handle.join();
        }
    }
}
