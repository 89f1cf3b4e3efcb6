//! Makes room for a run: ends what an earlier, interrupted one left there, and removes its files.
//!
//! A shim outlives whoever started it. A verdict that is begun again after a crash must not share its checkout with
//! commands of the first try.

use std::io;
use std::path::{Path, PathBuf};

use towline_process::ProcessError;

use crate::CheckError;
use crate::blocking::blocking;
use crate::command::ended;

/// Ends all of them before the first is removed: nothing of an earlier try may be running from here on.
pub(crate) async fn clear(run_dirs: &[PathBuf]) -> Result<(), CheckError> {
    for dir in run_dirs {
        end(dir).await?;
    }
    for dir in run_dirs {
        remove(dir.clone()).await?;
    }
    Ok(())
}

async fn end(dir: &Path) -> Result<(), CheckError> {
    if !dir.join("launch.json").exists() {
        return Ok(());
    }
    match towline_process::connect(dir).await {
        Ok(mut shim) => {
            // Of no use to anybody, so without grace. Whether it worked is seen in the wait.
            let _ = shim.kill().await;
            ended(&mut shim).await?;
            Ok(())
        }
        // Its shim was killed and the command with it. What that had started in the background can no longer be
        // found by descent; the checkout it ran in is deleted under it.
        Err(ProcessError::Lost { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn remove(dir: PathBuf) -> Result<(), CheckError> {
    blocking(move || match std::fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CheckError::Logs { action: "remove", path: dir, source: error })
        }
        _ => Ok(()),
    })
    .await
}
