//! Work that blocks, away from the asynchronous threads.

use std::future::Future;

use towline_workspace::Stop as StopGit;

use crate::CheckError;
use crate::stop::Stop;

/// Runs `work` on a thread that may block, and waits for it. The work goes on to its end even when nobody waits.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CheckError> + Send + 'static,
) -> Result<T, CheckError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(CheckError::Lost { message: error.to_string() }),
    }
}

/// The same for work with git, which ends when the caller wants to stop.
pub(crate) async fn stoppable<T: Send + 'static, F: Future<Output = ()>>(
    stop: &mut Stop<F>,
    work: impl FnOnce(&StopGit) -> Result<T, CheckError> + Send + 'static,
) -> Result<T, CheckError> {
    let halt = StopGit::default();
    let of_git = halt.clone();
    let mut work = std::pin::pin!(blocking(move || work(&of_git)));
    tokio::select! {
        done = &mut work => return done,
        () = stop.wait() => halt.stop(),
    }
    work.await
}
