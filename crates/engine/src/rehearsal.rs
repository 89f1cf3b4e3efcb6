//! Trying the sandbox with the rules of a real goal, without a goal.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use towline_core::SandboxSettings;
use towline_sandbox::{Machine, Private, Room, Signals};
use towline_workspace::Repository;

use crate::confinement::expanded;

/// An agent's place that does not exist: its settings and surroundings.
pub struct Rehearsal<'a> {
    /// The file of this program.
    pub program: &'a Path,
    pub directory: &'a Path,
    /// The state directory.
    pub state: Option<PathBuf>,
    pub repository: Option<&'a Repository>,
    pub environment: BTreeMap<String, String>,
    pub settings: &'a SandboxSettings,
}

impl Rehearsal<'_> {
    /// Starts this program as an agent would, with a home below `temporary` that is removed at the end. Fails with what is wrong.
    pub fn run(self, machine: &Machine, temporary: &Path) -> Result<(), String> {
        let stage = stage(temporary)
            .map_err(|error| format!("cannot make a directory in {}: {error}", temporary.display()))?;
        let failed = |error: io::Error| format!("cannot make {}: {error}", stage.display());
        let argv = [self.program.display().to_string(), "--version".to_owned()];
        let room = Private::make(&stage).map(|private| self.room(private));
        let room = room.and_then(|room| room.prepare(machine.sandbox()).map(|()| room)).map_err(failed);
        let result = room.and_then(|room| machine.rehearse(&room, &argv));
        // What cannot be removed is in a directory for such things.
        let _ = towline_files::remove_tree(&stage);
        result
    }

    fn room(self, private: Private) -> Room {
        let settings = self.settings;
        let expanded = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().filter_map(|path| expanded(path, &self.environment)).collect()
        };
        let mut read: Vec<PathBuf> =
            self.repository.iter().flat_map(|repository| repository.lends_objects()).collect();
        read.extend(expanded(&settings.read));
        let mut hide = expanded(&settings.hide);
        hide.extend(self.state);
        Room {
            private,
            directory: self.directory.to_owned(),
            read,
            write: [vec![self.directory.to_owned()], expanded(&settings.write)].concat(),
            hide,
            network: settings.network,
            users_home: None,
            own: Vec::new(),
            filled: None,
            fills_caches: false,
            signals: Signals::AreForTheProgram,
            environment: self.environment,
        }
    }
}

/// A new directory that nobody else can enter. One of an earlier process, or of somebody else, would not do.
fn stage(temporary: &Path) -> io::Result<PathBuf> {
    let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
    for number in 0..10 {
        let place = temporary.join(format!("towline-doctor-{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
            made => return made.map(|()| place),
        }
    }
    Err(taken)
}
