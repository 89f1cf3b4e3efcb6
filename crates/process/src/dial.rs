//! The connection to a supervisor that somebody else started.

use std::io;
use std::path::Path;

use tokio::net::UnixStream;

use crate::files;
use crate::platform::ProcessId;

/// Connects to the socket in a run's directory, if it is this process that listens there.
pub(crate) async fn dial(dir: &Path, supervisor: ProcessId) -> io::Result<UnixStream> {
    let stream = connect_socket(dir).await?;
    let listener = stream.peer_cred()?.pid().and_then(|pid| u32::try_from(pid).ok());
    // The number and the start time belong together as long as it runs.
    if listener == Some(supervisor.pid) && supervisor.is_running() {
        Ok(stream)
    } else {
        Err(io::Error::other("another process than the supervisor listens there"))
    }
}

/// Whether nobody listens, or not now, as against that we may not ask.
pub(crate) fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind;
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::WouldBlock)
}

/// The path of a socket is limited to about a hundred bytes, directories are not: the way through a descriptor
/// of the directory is always short.
#[cfg(target_os = "linux")]
async fn connect_socket(dir: &Path) -> io::Result<UnixStream> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{Mode, OFlags};

    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(dir, flags, Mode::empty())?;
    UnixStream::connect(format!("/proc/self/fd/{}/{}", directory.as_raw_fd(), files::SOCKET)).await
}

#[cfg(not(target_os = "linux"))]
async fn connect_socket(dir: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(dir.join(files::SOCKET)).await
}
