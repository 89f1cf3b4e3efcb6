//! Who the shim of a run is: `shim.pid`, which tells a living shim from a later process with the same number.

use std::io;
use std::path::Path;

use crate::files;
use crate::platform::ProcessId;

/// The identity the run's shim wrote down at its start; `None` when it never got that far.
pub fn shim_process(dir: &Path) -> io::Result<Option<ProcessId>> {
    let bytes = files::read_if_present(&dir.join(files::SHIM_PID))?;
    bytes.map(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::from)).transpose()
}

pub(crate) fn write_shim_process(dir: &Path, shim: ProcessId) -> io::Result<()> {
    files::replace(dir, files::SHIM_PID, &serde_json::to_vec(&shim)?)
}
