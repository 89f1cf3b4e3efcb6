//! Makes room for a run: ends what an earlier, interrupted one left there, and removes its files.
//!
//! A supervisor outlives whoever started it. A verdict that is begun again after a crash must not share its checkout with
//! commands of the first try.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::timeout;
use towline_process::{Notice, ProcessError};

use crate::CheckError;
use crate::blocking::blocking;
use crate::run_logs::is_run;

/// How long the end of a run may take, by its supervisor and then without it.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// Ends and removes all earlier runs below `log_dir`. All of them are ended before the first is removed: nothing of an
/// earlier try may be running from here on.
pub(crate) async fn clear(log_dir: &Path) -> Result<(), CheckError> {
    clear_except(log_dir, None).await
}

/// The same for all runs but one.
pub(crate) async fn clear_except(log_dir: &Path, except_dir: Option<&Path>) -> Result<(), CheckError> {
    let mut runs = earlier_runs(log_dir).await?;
    runs.retain(|dir| Some(&**dir) != except_dir);
    for dir in &runs {
        end(dir).await?;
    }
    blocking(move || {
        runs.iter()
            .try_for_each(|dir| towline_files::remove_tree(dir).map_err(|error| logs("remove", dir, error)))
    })
    .await
}

/// Ends whatever still runs of what was started with logs below `log_dir`. The logs stay.
pub async fn end_runs(log_dir: &Path) -> Result<(), CheckError> {
    let runs = earlier_runs(log_dir).await?;
    let living = blocking(move || {
        // One that cannot be looked at may be alive.
        let is_alive = |dir: &PathBuf| !matches!(towline_process::supervisor_process(dir), Ok(None));
        Ok(runs.into_iter().filter(is_alive).collect::<Vec<_>>())
    });
    for dir in living.await? {
        end(&dir).await?;
    }
    Ok(())
}

/// The directories of earlier runs below `log_dir`.
pub(crate) async fn earlier_runs(log_dir: &Path) -> Result<Vec<PathBuf>, CheckError> {
    let below = log_dir.to_owned();
    blocking(move || run_dirs(&below).map_err(|source| logs("list", &below, source))).await
}

/// Directories that were made for runs. Symlinks are not followed: what they lead to is not ours.
fn run_dirs(log_dir: &Path) -> io::Result<Vec<PathBuf>> {
    match log_dir.symlink_metadata() {
        Ok(about) if about.is_dir() => {}
        Ok(_) => return Err(io::Error::from(io::ErrorKind::NotADirectory)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(log_dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name().to_str().is_some_and(is_run) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

async fn end(dir: &Path) -> Result<(), CheckError> {
    if !dir.join("launch.json").exists() {
        return Ok(());
    }
    match timeout(END_PATIENCE, end_by_request(dir)).await {
        // Killed before; what it left is looked for elsewhere.
        Ok(Ok(()) | Err(ProcessError::Lost { .. })) => Ok(()),
        Ok(Err(_)) | Err(_) => end_from_outside(dir.to_owned()).await,
    }
}

async fn end_by_request(dir: &Path) -> Result<(), ProcessError> {
    let mut supervisor = towline_process::connect(dir).await?;
    // Of no use to anybody, so without grace. Whether it worked is seen in the wait.
    let _ = supervisor.kill().await;
    while let Notice::Grown { .. } = supervisor.next().await? {}
    Ok(())
}

async fn end_from_outside(dir: PathBuf) -> Result<(), CheckError> {
    blocking(move || {
        let living =
            towline_process::supervisor_process(&dir).map_err(|source| logs("read", &dir, source))?;
        let Some(supervisor) = living else { return Ok(()) };
        Ok(towline_process::end_supervisor(supervisor, END_PATIENCE)?)
    })
    .await
}

fn logs(action: &'static str, path: &Path, source: io::Error) -> CheckError {
    CheckError::Logs { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[tokio::test]
    async fn a_run_with_read_only_directories_in_it_is_removed() {
        towline_testkit::scratch::become_ordinary_user();
        let scratch = tempfile::tempdir().unwrap();
        let run = scratch.path().join("1-tests-0123456789abcdef0123456789abcdef");
        std::fs::create_dir_all(run.join("closed/inner")).unwrap();
        std::fs::set_permissions(run.join("closed"), Permissions::from_mode(0o500)).unwrap();
        clear(scratch.path()).await.unwrap();
        assert!(!run.exists());
    }

    #[tokio::test]
    async fn nothing_but_directories_of_earlier_runs_is_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let (log_dir, users) = (scratch.path().join("checks"), scratch.path().join("users"));
        let run = "1-tests-0123456789abcdef0123456789abcdef";
        for dir in [log_dir.join(run), log_dir.join("notes"), users.join(run)] {
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("file"), "").unwrap();
        }
        symlink(users.join(run), log_dir.join("2-tests-0123456789abcdef0123456789abcdef")).unwrap();
        clear(&log_dir).await.unwrap();
        assert!(!log_dir.join(run).exists());
        assert!(log_dir.join("notes/file").exists() && users.join(run).join("file").exists());

        symlink(&users, scratch.path().join("symlink")).unwrap();
        clear(&scratch.path().join("symlink")).await.unwrap_err();
        assert!(users.join(run).join("file").exists());
        clear(&scratch.path().join("missing")).await.unwrap();
    }
}
