//! What this machine offers, found out by trying.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use towline_core::Sandbox;

use crate::bubblewrap::{self, Tools};
use crate::inside::{LAYER, PROGRAM, SUBCOMMAND};
use crate::room::{OURS, Room};

/// Where bubblewrap is looked for: not in the user's `PATH`, where an agent may have put a program of that name.
const BUBBLEWRAP: [&str; 5] = [
    "/usr/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
    "/run/wrappers/bin/bwrap",
    "/bin/bwrap",
];

/// How much of what bubblewrap complains about is reported.
const LONGEST_COMPLAINT: usize = 400;

/// The sandbox of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    bubblewrap: PathBuf,
    towline: PathBuf,
    can_layer: bool,
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSandbox {
    /// The program is missing.
    #[error("bubblewrap (`bwrap`) is not installed")]
    NotInstalled,
    /// It is there and cannot make a sandbox.
    #[error("bubblewrap cannot make a sandbox on this machine: {complaint}")]
    Forbidden { complaint: String },
    /// Another system.
    #[error("there is no sandbox on this system")]
    OtherSystem,
}

impl Machine {
    /// Tries a sandbox with `towline`, the file of this program.
    pub fn look(towline: &Path) -> Result<Self, NoSandbox> {
        if !cfg!(target_os = "linux") {
            return Err(NoSandbox::OtherSystem);
        }
        let bubblewrap = BUBBLEWRAP.map(PathBuf::from).into_iter().find(|path| path.is_file());
        let bubblewrap = bubblewrap.ok_or(NoSandbox::NotInstalled)?;
        let towline = towline.canonicalize().unwrap_or_else(|_| towline.to_owned());
        let mut machine = Self { bubblewrap, towline, can_layer: true };
        if machine.try_it().is_err() {
            machine.can_layer = false;
            machine.try_it().map_err(|complaint| NoSandbox::Forbidden { complaint })?;
        }
        Ok(machine)
    }

    /// What it is.
    pub const fn sandbox(&self) -> Sandbox {
        Sandbox::Bubblewrap
    }

    /// Whether programs can change the user's caches for themselves. Otherwise they can only read them.
    pub const fn can_layer(&self) -> bool {
        self.can_layer
    }

    /// What is started in place of a program that is confined to this room; the program's own command line follows.
    pub fn wrapper(&self, room: &Room) -> Vec<String> {
        bubblewrap::wrapper(self.tools(), room)
    }

    fn tools(&self) -> Tools<'_> {
        Tools { bubblewrap: &self.bubblewrap, towline: &self.towline, can_layer: self.can_layer }
    }

    /// Runs `true` in the smallest sandbox that has everything which can fail.
    fn try_it(&self) -> Result<(), String> {
        #[expect(clippy::disallowed_methods, reason = "no supervisor is needed for what ends at once")]
        let mut command = Command::new(&self.bubblewrap);
        command.args([
            "--unshare-user",
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--die-with-parent",
        ]);
        command.args(["--cap-drop", "ALL"]);
        if self.can_layer {
            command.args(["--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_DAC_OVERRIDE"]);
        }
        command.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run"]);
        let [caches, layers, place] =
            ["caches/trial", "layers", "place"].map(|name| format!("{OURS}/{name}"));
        command.args(["--dir", &caches, "--dir", &layers, "--dir", &place, "--ro-bind"]);
        command.args([&self.towline, &self.towline]).arg("--").arg(&self.towline).arg(SUBCOMMAND);
        if self.can_layer {
            command.args([LAYER, "trial", &place]);
        }
        command.args([PROGRAM, "true"]).env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
        let output = command.output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let complaint: String =
            String::from_utf8_lossy(&output.stderr).trim().chars().take(LONGEST_COMPLAINT).collect();
        Err(if complaint.is_empty() { output.status.to_string() } else { complaint })
    }
}
