//! `towline service`: the server as a service of the user's systemd session.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use towline_app::{Action, Context, Error, UNIT, credentials_of_shell, server_here, unit, unit_path};

use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct Service {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Write the unit, and start the server now and at each login
    Install {
        /// Print the unit and change nothing
        #[arg(long)]
        print: bool,
    },
    /// Show whether the service runs
    Status,
    /// Stop the service and remove its unit
    Remove,
}

/// Installs, shows or removes the service.
pub(crate) fn run(context: &Context, service: &Service) -> Result<(), Error> {
    if let What::Install { print: true } = service.what {
        output::print_or_exit(unit(context).trim_end());
        return Ok(());
    }
    must_have_systemd(context)?;
    match service.what {
        What::Install { .. } => install(context),
        What::Status => systemctl(&["status", "--no-pager", UNIT]).map(drop),
        What::Remove => remove(context),
    }
}

/// How long the server may take to start.
const START_PATIENCE: Duration = Duration::from_secs(30);
const START_PAUSE: Duration = Duration::from_millis(100);

fn install(context: &Context) -> Result<(), Error> {
    must_not_run_outside(context)?;
    let path = unit_path(context)?;
    let written = path
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(&path, unit(context)));
    written.map_err(|error| Error::internal(format!("cannot write {}: {error}", path.display())))?;
    systemctl(&["daemon-reload"])?;
    systemctl(&["enable", UNIT])?;
    // One that runs already has the unit of before.
    systemctl(&["restart", UNIT])?;
    await_server(context)?;
    output::print(format_args!("installed {}; the server runs", path.display()));
    let missing = credentials_of_shell(context)?;
    if let (false, Some(file)) = (missing.is_empty(), context.environment_file()) {
        output::print(format_args!(
            "the service does not have these variables of your shell: {}",
            missing.join(", ")
        ));
        output::print(format_args!("  put them into {} (NAME=VALUE on each line, mode 600)", file.display()));
    }
    let user = context.variable("USER").unwrap_or_default();
    if !Path::new("/var/lib/systemd/linger").join(user).exists() {
        output::print("the service ends when you log out; to keep it running: loginctl enable-linger");
    }
    Ok(())
}

/// Fails if a server runs that is not the service's: the service would find its place taken, and end.
fn must_not_run_outside(context: &Context) -> Result<(), Error> {
    match server_here(context)? {
        Some(server) if main_pid()? != Some(server.pid) => {
            let what = format!("a server runs already that is not the service (pid {})", server.pid);
            Err(Error::person(what).hint([("stop it first", Action::Down)]))
        }
        _ => Ok(()),
    }
}

/// Waits until the server of the service is there.
fn await_server(context: &Context) -> Result<(), Error> {
    let begun = Instant::now();
    while server_here(context)?.is_none() {
        if begun.elapsed() > START_PATIENCE {
            return Err(Error::internal("the service is installed, and its server does not start")
                .hint(format!("see why with: journalctl --user -u {UNIT}")));
        }
        std::thread::sleep(START_PAUSE);
    }
    Ok(())
}

/// The process of the service; none if it does not run.
#[expect(clippy::disallowed_methods, reason = "the owner of the calls to systemctl")]
fn main_pid() -> Result<Option<u32>, Error> {
    let arguments = ["--user", "show", "--property=MainPID", "--value", UNIT];
    let shown = Command::new("systemctl").args(arguments).output();
    let shown = shown.map_err(|error| Error::internal(format!("cannot run systemctl: {error}")))?;
    Ok(String::from_utf8_lossy(&shown.stdout).trim().parse().ok().filter(|pid| *pid != 0))
}

fn remove(context: &Context) -> Result<(), Error> {
    let path = unit_path(context)?;
    systemctl(&["disable", "--now", UNIT])?;
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::internal(format!("cannot remove {}: {error}", path.display())));
        }
        _ => {}
    }
    systemctl(&["daemon-reload"])?;
    output::print("the service is removed; goals and their work stay");
    Ok(())
}

/// Fails where no systemd runs for this user.
fn must_have_systemd(context: &Context) -> Result<(), Error> {
    let runs = context
        .variable("XDG_RUNTIME_DIR")
        .is_some_and(|dir| Path::new(dir).join("systemd/private").exists());
    if runs {
        return Ok(());
    }
    Err(Error::usage("no systemd runs for this user").hint(
        "start the server with: towline up; or print the unit for another machine: towline service install --print",
    ))
}

#[expect(clippy::disallowed_methods, reason = "the owner of the calls to systemctl")]
fn systemctl(arguments: &[&str]) -> Result<(), Error> {
    let shown = arguments.join(" ");
    let status = Command::new("systemctl").arg("--user").args(arguments).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::internal(format!("`systemctl --user {shown}` failed ({status})"))),
        Err(error) => Err(Error::internal(format!("cannot run systemctl: {error}"))),
    }
}
