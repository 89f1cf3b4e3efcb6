//! Work that blocks, away from the asynchronous threads.

use crate::CheckError;

/// Runs `work` on a thread that may block, and waits for it. The work goes on to its end even when nobody waits.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CheckError> + Send + 'static,
) -> Result<T, CheckError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(CheckError::Lost { message: error.to_string() }),
    }
}
