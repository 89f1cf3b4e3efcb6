//! What this machine offers, found out by trying.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use towline_core::Sandbox;

use crate::bubblewrap::{self, Tools};
use crate::inside::{LAYER, PROGRAM, SUBCOMMAND};
use crate::landlock::{self, Gap};
use crate::obstacle::{NoSandbox, Obstacle};
use crate::room::{OURS, Room};

/// Where bubblewrap is looked for: not in the user's `PATH`, where an agent may have put a program of that name.
const BUBBLEWRAP: [&str; 5] = [
    "/usr/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
    "/run/wrappers/bin/bwrap",
    "/bin/bwrap",
];

/// How much of what a sandbox complains about is reported.
const LONGEST_COMPLAINT: usize = 400;
/// Far more than a sandbox needs to run a program that ends at once.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to look whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What a program prints in a sandbox that works, and what else it may find there.
const SIGN: &str = "inside";

/// The sandbox of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    towline: PathBuf,
    means: Means,
}

/// What it is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Means {
    Bubblewrap { program: PathBuf, can_layer: bool },
    Landlock { gaps: Vec<Gap>, instead_of: Obstacle },
}

/// Where a machine has what sandboxes are made with. Tests have others than [`Places::default`].
pub struct Places {
    /// Files that may be bubblewrap.
    pub bubblewrap: Vec<PathBuf>,
    /// What the kernel's Landlock lacks; none if there is no Landlock.
    pub landlock: fn() -> Option<Vec<Gap>>,
}

impl Default for Places {
    fn default() -> Self {
        Self { bubblewrap: BUBBLEWRAP.map(PathBuf::from).into(), landlock: landlock::gaps }
    }
}

impl Machine {
    /// Tries a sandbox with `towline`, the file of this program: bubblewrap first, then Landlock.
    pub fn look(towline: &Path) -> Result<Self, NoSandbox> {
        Self::look_in(&Places::default(), towline)
    }

    /// The same with what is in these places.
    pub fn look_in(places: &Places, towline: &Path) -> Result<Self, NoSandbox> {
        if !cfg!(target_os = "linux") {
            return Err(NoSandbox { bubblewrap: Obstacle::OtherSystem, landlock: Obstacle::OtherSystem });
        }
        let towline = towline.canonicalize().unwrap_or_else(|_| towline.to_owned());
        let obstacle = match try_bubblewrap(&places.bubblewrap, &towline) {
            Ok(means) => return Ok(Self { towline, means }),
            Err(obstacle) => obstacle,
        };
        match try_landlock(places.landlock, &towline) {
            Ok(gaps) => Ok(Self { towline, means: Means::Landlock { gaps, instead_of: obstacle } }),
            Err(landlock) => Err(NoSandbox { bubblewrap: obstacle, landlock }),
        }
    }

    /// What it is.
    pub const fn sandbox(&self) -> Sandbox {
        match self.means {
            Means::Bubblewrap { .. } => Sandbox::Bubblewrap,
            Means::Landlock { .. } => Sandbox::Landlock,
        }
    }

    /// Whether programs can change the user's caches for themselves. Otherwise they can only read them.
    pub const fn can_layer(&self) -> bool {
        matches!(self.means, Means::Bubblewrap { can_layer: true, .. })
    }

    /// Why it is not a better one.
    pub const fn instead_of(&self) -> Option<&Obstacle> {
        match &self.means {
            Means::Bubblewrap { .. } => None,
            Means::Landlock { instead_of, .. } => Some(instead_of),
        }
    }

    /// What rooms ask for and this kernel does not enforce.
    pub fn gaps(&self) -> &[Gap] {
        match &self.means {
            Means::Bubblewrap { .. } => &[],
            Means::Landlock { gaps, .. } => gaps,
        }
    }

    /// What is started in place of a program that is confined to this room; the program's own command line follows.
    pub fn wrapper(&self, room: &Room) -> Vec<String> {
        match &self.means {
            Means::Bubblewrap { program, can_layer } => {
                let tools = Tools { bubblewrap: program, towline: &self.towline, can_layer: *can_layer };
                bubblewrap::wrapper(tools, room)
            }
            Means::Landlock { .. } => landlock::wrapper(&self.towline, room),
        }
    }

    /// Runs a program in this room, and fails with what it complains about. Only for what ends at once.
    pub fn rehearse(&self, room: &Room, argv: &[String]) -> Result<(), String> {
        let mut words = self.wrapper(room).into_iter().chain(argv.iter().cloned());
        let mut command = command(Path::new(&words.next().unwrap_or_default()));
        command.args(words).envs(&room.environment).current_dir(&room.directory);
        run(command).map(drop)
    }
}

/// The first that is there, tried.
fn try_bubblewrap(places: &[PathBuf], towline: &Path) -> Result<Means, Obstacle> {
    let program = places.iter().find(|path| path.is_file()).ok_or(Obstacle::NotInstalled)?;
    let works = |can_layer| run_sign(smallest(program, towline, can_layer));
    let can_layer = works(true).is_ok();
    if !can_layer {
        works(false).map_err(|complaint| Obstacle::Forbidden { complaint })?;
    }
    Ok(Means::Bubblewrap { program: program.clone(), can_layer })
}

/// The smallest sandbox that has everything which can fail.
fn smallest(bubblewrap: &Path, towline: &Path, can_layer: bool) -> Command {
    let mut command = command(bubblewrap);
    command.args(["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]);
    command.args(["--cap-drop", "ALL"]);
    if can_layer {
        command.args(["--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_DAC_OVERRIDE"]);
    }
    command.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run"]);
    let [caches, layers] = ["caches/trial", "layers"].map(|name| format!("{OURS}/{name}"));
    let place = "/run/trial";
    command.args(["--dir", &caches, "--dir", &layers, "--dir", place, "--ro-bind"]);
    command.args([towline, towline]);
    // A cache with something in it, which can be changed in its layer.
    command.args(["--symlink", "/", &format!("{caches}/entry")]);
    command.arg("--").arg(towline).arg(SUBCOMMAND);
    let mut script = format!("echo {SIGN}");
    if can_layer {
        command.args([LAYER, "trial", place]);
        script = format!("test -L {place}/entry && echo {SIGN} > {place}/sign && cat {place}/sign");
    }
    command.args([PROGRAM, "/bin/sh", "-c", &script]);
    command
}

/// Landlock must let a program run, and keep it from what no rule allows: here from everything that can be changed.
fn try_landlock(gaps: fn() -> Option<Vec<Gap>>, towline: &Path) -> Result<Vec<Gap>, Obstacle> {
    let gaps = gaps().ok_or(Obstacle::NoLandlock)?;
    let mut command = command(towline);
    command.arg(SUBCOMMAND).args(landlock::trial());
    let script = format!("if echo {SIGN} >/dev/null; then echo open; else echo {SIGN}; fi");
    command.args([PROGRAM, "/bin/sh", "-c", &script]);
    run_sign(command).map_err(|complaint| Obstacle::Forbidden { complaint })?;
    Ok(gaps)
}

/// Something may take the place of the sandbox and report success.
fn run_sign(command: Command) -> Result<(), String> {
    match run(command)?.trim() {
        SIGN => Ok(()),
        other => Err(format!("a program in it printed {other:?} instead of {SIGN:?}")),
    }
}

#[expect(clippy::disallowed_methods, reason = "no supervisor is needed for what ends at once")]
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/bin:/bin");
    command
}

/// What it prints; or what it complains about.
fn run(mut command: Command) -> Result<String, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        format!("{} cannot be started: {error}", Path::new(command.get_program()).display())
    })?;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => thread::sleep(LOOK_EVERY),
            Ok(None) | Err(_) => {
                // It may have ended just now, and then there is nothing to end.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it did not end within {} seconds", PATIENCE.as_secs()));
            }
        }
    };
    if status.success() {
        return Ok(beginning(child.stdout.take()));
    }
    let complaint = beginning(child.stderr.take());
    Err(if complaint.is_empty() { status.to_string() } else { complaint })
}

fn beginning(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    // Of a pipe that breaks, what came before counts.
    let _ = pipe.map(|pipe| pipe.take(LONGEST_COMPLAINT as u64).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(folder: &Path, script: &str) -> PathBuf {
        let path = folder.join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("executable");
        path
    }

    #[test]
    fn a_machine_with_neither_has_no_sandbox_and_reports_both_reasons() {
        let places = Places { bubblewrap: Vec::new(), landlock: || None };
        let none = Machine::look_in(&places, Path::new("/bin/true")).expect_err("there is none");
        assert_eq!(none, NoSandbox { bubblewrap: Obstacle::NotInstalled, landlock: Obstacle::NoLandlock });
        let shown = none.to_string();
        assert!(
            shown.starts_with("bubblewrap: `bwrap` is not installed; Landlock: the kernel has none"),
            "{shown}"
        );
    }

    #[test]
    fn what_only_pretends_to_make_a_sandbox_is_none_and_complaints_are_reported() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        for (script, complaint) in [
            ("exit 0", "a program in it printed \"\" instead of \"inside\""),
            ("echo no user namespaces >&2; exit 1", "no user namespaces"),
            ("exit 3", "exit status: 3"),
        ] {
            let program = program(scratch.path(), script);
            let places = Places { bubblewrap: vec![program.clone()], landlock: || Some(Vec::new()) };
            let none = Machine::look_in(&places, &program).expect_err("there is none");
            let forbidden = Obstacle::Forbidden { complaint: complaint.to_owned() };
            assert_eq!(none, NoSandbox { bubblewrap: forbidden.clone(), landlock: forbidden });
        }
    }
}
