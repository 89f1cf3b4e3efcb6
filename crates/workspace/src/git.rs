//! The one place that starts the `git` program.
//!
//! Every command gets the same clean view: no `GIT_*` variables of the caller, no hooks, no prompts, no
//! background maintenance, the C locale. Only what is done in the user's name (a merge) has the user's hooks and
//! identity, too. In a repository of Towline's own no configuration counts but the one that Towline has written there. Each
//! command is a process group of its own and is ended as one at its time limit. Failures become errors with the next step;
//! lock contention with other git processes is waited out for a bounded time. What the commands mean is the callers' business.

mod command;
mod waiting;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

pub(crate) use self::command::GitCommand;
pub use self::waiting::Stop;
use towline_core::Author;

use crate::WorkspaceError;

/// Settings that hold for every command, over any configuration file. The stat settings undo ones that would
/// let a changed file pass as unchanged. A commit-graph is a copy of what commits contain, and nobody compares the two.
const SETTINGS: [&str; 14] = [
    "core.commitGraph=false",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.safecrlf=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "advice.addEmbeddedRepo=false",
    "color.ui=false",
];

/// Further settings for a repository of our own: files beside the objects that an agent could have put there count for
/// nothing, and neither do the user's files at their usual places, of which the repository has a copy.
const OWN_SETTINGS: [&str; 7] = [
    "core.multiPackIndex=false",
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "pack.useBitmaps=false",
    "fetch.fsckObjects=true",
    // A pack that does not pass is dropped as a whole; loose objects of it would stay.
    "fetch.unpackLimit=1",
    "uploadpack.allowAnySHA1InWant=true",
];

/// A path at which nothing can be.
const NO_FILE: &str = "/dev/null/none";

/// Settings for what is done in the user's name: everything else is as they have it.
const USERS_SETTINGS: [&str; 4] =
    ["core.commitGraph=false", "gc.auto=0", "maintenance.auto=false", "color.ui=false"];

/// Variables that lead git to another repository or another view of it: those that it counts as local to one. They are set when
/// Towline is started from a git hook.
pub const LOCATION_VARIABLES: [&str; 15] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Variables that set who makes a commit.
const IDENTITY_VARIABLES: [&str; 4] =
    ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];

/// Who we are in commits: name and address.
const OUR_IDENTITY: [&str; 2] = ["Towline", "towline@localhost"];

/// Variables that only set where the user's configuration and git's own programs are: the same repository must
/// mean the same to us as to the user.
const ALLOWED_VARIABLES: [&str; 4] =
    ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH"];

/// How long one command may take: more than a checkout of the largest repositories needs. An agent can leave a FIFO
/// where git expects a file, and nobody would ever write to it.
const TIME_LIMIT: Duration = Duration::from_secs(15 * 60);

/// A place to run git in: a directory and, unless it is to be discovered, the repository.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    /// The working tree.
    pub(crate) directory: PathBuf,
    git_dir: Option<PathBuf>,
    index: Option<PathBuf>,
    /// Directories with objects that are seen as well.
    borrowed: Vec<PathBuf>,
    /// The commit whose attributes count instead of those in the working tree.
    attributes: Option<String>,
    stop: Option<Stop>,
    acts_for: ActsFor,
    /// Settings for these commands, over all others.
    settings: &'static [&'static str],
    /// Who makes commits instead of Towline.
    author: Option<Author>,
    time_limit: Duration,
}

/// In whose name a command acts, and by whose configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ActsFor {
    /// In ours, by the user's.
    Towline,
    /// In ours, by nothing but what we have written into a repository of our own.
    TowlineAlone,
    User,
}

impl Git {
    /// Git finds the repository upward from `directory`; only for finding it in the first place.
    pub(crate) fn discovering(directory: &Path) -> Self {
        let directory = directory.to_path_buf();
        Self {
            directory,
            git_dir: None,
            index: None,
            borrowed: Vec::new(),
            attributes: None,
            stop: None,
            acts_for: ActsFor::Towline,
            settings: &[],
            author: None,
            time_limit: TIME_LIMIT,
        }
    }

    /// The repository is named, so that a damaged or missing `.git` can never make git act on another one.
    pub(crate) fn at(git_dir: &Path, work_tree: &Path) -> Self {
        Self { git_dir: Some(git_dir.to_path_buf()), ..Self::discovering(work_tree) }
    }

    /// The same place with another index file.
    pub(crate) fn with_index(&self, index: &Path) -> Self {
        Self { index: Some(index.to_path_buf()), ..self.clone() }
    }

    /// The same repository and index over another working tree.
    pub(crate) fn with_work_tree(&self, work_tree: &Path) -> Self {
        Self { directory: work_tree.to_path_buf(), ..self.clone() }
    }

    /// The same place, where objects in other directories are seen as well.
    pub(crate) fn borrowing(&self, objects: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut git = self.clone();
        git.borrowed.extend(objects);
        git
    }

    /// The same place, where the attributes of a commit count instead of those in the working tree. Git before 2.41 reads the
    /// working tree all the same.
    pub(crate) fn with_attributes_of(&self, commit: &str) -> Self {
        Self { attributes: Some(commit.to_owned()), ..self.clone() }
    }

    /// The same place, whose commands end when somebody wants it.
    pub(crate) fn until(&self, stop: Option<Stop>) -> Self {
        Self { stop, ..self.clone() }
    }

    /// The same place with further settings.
    pub(crate) fn with_settings(&self, settings: &'static [&'static str]) -> Self {
        Self { settings, ..self.clone() }
    }

    /// The same place, where the user's configuration outside the repository does not count.
    pub(crate) fn alone(&self) -> Self {
        Self { acts_for: ActsFor::TowlineAlone, ..self.clone() }
    }

    /// The same place, where commits have this author and committer.
    pub(crate) fn with_author(&self, author: Option<&Author>) -> Self {
        Self { author: author.cloned(), ..self.clone() }
    }

    /// The same place, in the user's name: with their hooks and as the author that they are.
    pub(crate) fn for_user(&self) -> Self {
        Self { acts_for: ActsFor::User, ..self.clone() }
    }

    /// Starts to put a command together.
    pub(crate) fn command(&self, name: &'static str) -> GitCommand<'_> {
        GitCommand::new(self, name)
    }

    /// The ids that name no object here.
    pub(crate) fn missing<'a>(
        &self,
        ids: impl Iterator<Item = &'a str>,
    ) -> Result<BTreeSet<String>, WorkspaceError> {
        let input: String = ids.map(|id| format!("{id}\n")).collect();
        if input.is_empty() {
            return Ok(BTreeSet::new());
        }
        let found = self.command("cat-file").arg("--batch-check").input(input.into_bytes()).line()?;
        Ok(found.lines().filter_map(|line| line.strip_suffix(" missing")).map(str::to_owned).collect())
    }

    /// Runs the user's editor on a file, and waits until it is closed.
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is the owner of programs that git would start"
    )]
    pub(crate) fn edit(&self, editor: &str, file: &Path) -> Result<(), WorkspaceError> {
        let mut program = Command::new("/bin/sh");
        // As git does it: the setting may have arguments, and the file is one more.
        program.arg("-c").arg(format!("{editor} \"$@\"")).arg(editor).arg(file).current_dir(&self.directory);
        let ended = program.status().map_err(|source| self.not_started(source))?;
        if ended.success() {
            return Ok(());
        }
        Err(WorkspaceError::Git {
            command: "commit".to_owned(),
            directory: self.directory.clone(),
            detail: format!("the editor `{editor}` ended with {ended}"),
            hint: "set another one: git config core.editor".to_owned(),
        })
    }

    fn not_started(&self, source: io::Error) -> WorkspaceError {
        let directory = self.directory.clone();
        // The system reports a missing directory and a missing program alike.
        if directory.is_dir() {
            WorkspaceError::GitNotStarted { directory, source }
        } else {
            WorkspaceError::Io { action: "enter", path: directory, source }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this module is the owner of the git program")]
    fn program(&self) -> Command {
        let mut program = Command::new(git_program());
        for (variable, value) in std::env::vars_os() {
            let is_one_of = |names: &[&str]| names.iter().any(|name| variable == *name);
            let allowed = match self.acts_for {
                ActsFor::Towline => is_one_of(&ALLOWED_VARIABLES),
                ActsFor::TowlineAlone => is_one_of(&["GIT_EXEC_PATH"]),
                ActsFor::User => !is_one_of(&LOCATION_VARIABLES),
            };
            let is_secret = || {
                let (name, value) = (variable.to_string_lossy(), value.to_string_lossy());
                self.acts_for != ActsFor::User && towline_mask::is_secret_variable(&name, &value)
            };
            // Other processes of the user can read the environment of git.
            if (variable.as_encoded_bytes().starts_with(b"GIT_") && !allowed) || is_secret() {
                program.env_remove(&variable);
            }
        }
        program
            .current_dir(&self.directory)
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            // Otherwise `git replace` could give the base another content than its id promises, and grafts another history.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_GRAFT_FILE", NO_FILE);
        let (settings, more): (&[&str], &[&str]) = match self.acts_for {
            ActsFor::User => (&USERS_SETTINGS, &[]),
            ActsFor::Towline => (&SETTINGS, &[]),
            ActsFor::TowlineAlone => (&SETTINGS, &OWN_SETTINGS),
        };
        if self.acts_for != ActsFor::User {
            let who = self.author.as_ref().map_or(OUR_IDENTITY, |author| [&author.name, &author.email]);
            program.envs(IDENTITY_VARIABLES.into_iter().zip(who.into_iter().cycle()));
            program.envs(search_path().map(|path| ("PATH", path)));
            // A filter like `python3 -m nbstripout` would take the module from the directory that git is in.
            program.env("PYTHONSAFEPATH", "1");
        }
        if self.acts_for == ActsFor::TowlineAlone {
            program.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_ATTR_NOSYSTEM", "1");
            program.env("GIT_CONFIG_SYSTEM", "/dev/null").env("GIT_CONFIG_GLOBAL", "/dev/null");
        }
        for setting in settings.iter().chain(more).chain(self.settings) {
            program.arg("-c").arg(setting);
        }
        if let Some(commit) = &self.attributes {
            program.env("GIT_ATTR_SOURCE", commit);
        }
        if !self.borrowed.is_empty() {
            let quoted: Vec<Vec<u8>> = self.borrowed.iter().map(|objects| borrowed_path(objects)).collect();
            program.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", OsString::from_vec(quoted.join(&b':')));
        }
        if let Some(git_dir) = &self.git_dir {
            program.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", &self.directory);
        }
        if let Some(index) = &self.index {
            program.env("GIT_INDEX_FILE", index);
        }
        program
    }
}

/// The git program, looked up once: what is put on the search path later does not count.
fn git_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let path = search_path().unwrap_or_default();
        let found = std::env::split_paths(&path).map(|place| place.join("git")).find(|git| git.is_file());
        // Without one, starting it fails.
        found.unwrap_or_else(|| PathBuf::from("git"))
    })
}

/// Where programs are looked for.
fn search_path() -> Option<OsString> {
    std::env::var_os("PATH").map(|path| absolute_places(&path))
}

/// A search path without places that depend on the directory that git is in: a filter would come from the agent's files.
fn absolute_places(path: &OsStr) -> OsString {
    let places = std::env::split_paths(path).filter(|place| place.is_absolute());
    // Only a name with a colon in it could not be joined, and none of these has one.
    std::env::join_paths(places).unwrap_or_default()
}

/// Looks the git program up now, before anybody else's program runs.
pub fn find_git() {
    git_program();
}

/// A directory with objects as git reads it in lists of such. The slash at its end means nothing to git. Without it, git-lfs
/// would find the store of large files beside the directory and make hard links to its files, through which the owner's files
/// can be changed.
pub(crate) fn borrowed_path(objects: &Path) -> Vec<u8> {
    quoted_path(&objects.join(""))
}

/// A path as git reads it in lists: between quotation marks when something in it would end or hide it.
pub(crate) fn quoted_path(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes();
    if !bytes.iter().any(|byte| b":\"\\\n\t".contains(byte)) && !bytes.starts_with(b"#") {
        return bytes.to_vec();
    }
    let mut quoted = vec![b'"'];
    for byte in bytes {
        match byte {
            b'\n' => quoted.extend(b"\\n"),
            b'\t' => quoted.extend(b"\\t"),
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}

/// Splits the output of a `-z` command.
pub(crate) fn records(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|record| !record.is_empty())
}

/// The parts of a record like `100644 blob <hash><tab>path`: what comes before the path, and the path.
pub(crate) fn about_and_path(record: &[u8]) -> Option<(&[u8], &[u8])> {
    let tab = record.iter().position(|byte| *byte == b'\t')?;
    Some((&record[..tab], &record[tab + 1..]))
}

/// A path as people read it; bytes that are not UTF-8 are replaced.
pub(crate) fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the standard library cannot make a named pipe")]
    fn a_command_that_waits_for_ever_is_ended_at_its_limit() {
        let scratch = tempfile::tempdir().unwrap();
        let made = Command::new("mkfifo").arg(scratch.path().join("pipe")).status().unwrap();
        assert!(made.success());
        let limit = Duration::from_millis(50);
        let git = Git { time_limit: limit, ..Git::discovering(scratch.path()) };
        match git.command("hash-object").arg("pipe").run() {
            Err(WorkspaceError::TimedOut { command, directory, limit: named }) => {
                assert_eq!(
                    (command.as_str(), directory.as_path(), named),
                    ("hash-object", scratch.path(), limit)
                );
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn programs_are_looked_for_in_absolute_places_alone() {
        let path = absolute_places(OsStr::new(".:/usr/bin::bin:/opt/a b:./x"));
        assert_eq!(path, OsStr::new("/usr/bin:/opt/a b"));
    }

    #[test]
    fn more_input_and_output_than_pipes_hold_passes_through() {
        let scratch = tempfile::tempdir().unwrap();
        let input: Vec<u8> =
            (0..200_000).flat_map(|number: u32| format!("{number}\n").into_bytes()).collect();
        let git = Git::discovering(scratch.path());
        let output = git.command("stripspace").input(input.clone()).run().unwrap();
        assert_eq!(output, input);
    }
}
