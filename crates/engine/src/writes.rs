//! Notices that another process has written to the store.
//!
//! Every process appends to the write-ahead log of the database, so that file shows it. Our own writes are noticed, too, which costs a look
//! and does no harm. Where the system reports no writes, it is looked once a minute.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use towline_files::Changes;

use crate::engine::{Shared, TRACES};
use crate::watch::AsyncWatch;

/// Writes that come within this time are noticed together: agents that work make the engine write all the time.
const TOGETHER: Duration = Duration::from_millis(100);

/// When to wait again for a writer that takes longer than the store waits.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// How often to look where the system reports no writes.
const UNREPORTED_PAUSE: Duration = Duration::from_secs(60);

/// Can be read when a file of the directory was written to.
fn writes_below(directory: &Path) -> io::Result<AsyncWatch> {
    let watch = AsyncWatch::new()?;
    watch.watch.add(directory, Changes::Writes)?;
    Ok(watch)
}

/// Passes writes on as long as the engine lives.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let mut closing = shared.signals.closing();
    let writes = match writes_below(shared.home.root()) {
        Ok(writes) => writes,
        Err(error) => {
            tracing::warn!(target: TRACES, %error, "writes of other processes are noticed once a minute");
            while !shared.signals.is_closing() {
                shared.signals.note_foreign_write();
                // Over when the engine is closed.
                let _ = timeout(UNREPORTED_PAUSE, closing.wait_for(|is_closing| *is_closing)).await;
            }
            return;
        }
    };
    // What was written before the watch began.
    shared.signals.note_foreign_write();
    loop {
        tokio::select! {
            write = writes.changed(TOGETHER) => if write.is_err() { return },
            _ = closing.wait_for(|is_closing| *is_closing) => return,
        }
        // A write is reported before it is on the disk, and can be read only then. After an error it is looked at all the same, and
        // waited for again.
        while !shared.signals.is_closing() {
            let settled = shared.store.settled().await;
            shared.signals.note_foreign_write();
            match settled {
                Err(error) if error.is_passing() => tokio::time::sleep(RETRY_PAUSE).await,
                _ => break,
            }
        }
    }
}
