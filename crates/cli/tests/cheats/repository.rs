//! What the user has: the repository with everything git knows of it, the files, and what is beside them. Taken before and
//! after a trick, and compared.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::process::{Output, Stdio};

use towline_testkit::scratch::clean_command;

/// Git's own questions about a damaged repository may hang, too.
const GIT_SECONDS: &str = "20";

/// Parts of `.git` that are compared by asking git, or that hold what Towline may write: objects, its refs and branches.
const NOT_COMPARED: [&str; 6] =
    ["objects", "logs", "refs/towline", "refs/heads/towline", "packed-refs", "index"];

/// A description of each thing, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Belongings(BTreeMap<String, String>);

impl Belongings {
    /// What is in this repository, and in a folder beside it.
    pub(crate) fn of(repository: &Path, beside: &Path) -> Self {
        let mut found = BTreeMap::new();
        walk(repository, "", &[".git"], &mut found);
        walk(&repository.join(".git"), ".git/", &NOT_COMPARED, &mut found);
        walk(&repository.join(".git/objects/info"), ".git/objects/info/", &[], &mut found);
        walk(&repository.join(".git/logs/refs"), ".git/logs/refs/", &["heads", "towline"], &mut found);
        walk(beside, "beside the repository: ", &[], &mut found);
        for (name, arguments) in [
            ("refs", &["for-each-ref", "--format=%(refname) %(objectname)"][..]),
            ("index", &["ls-files", "--stage", "-v"]),
            ("fsck", &["fsck", "--full", "--strict", "--no-dangling", "--no-progress"]),
        ] {
            let output = git(repository, arguments);
            let text = String::from_utf8_lossy(&output.stdout);
            let lines: Vec<&str> = text.lines().filter(|line| !is_towlines(line)).collect();
            // An odd file in a candidate, such as a symlink named .gitignore, is worth a warning and damages nothing.
            let problems = String::from_utf8_lossy(&output.stderr);
            let problem =
                problems.lines().filter(|line| !line.starts_with("warning in ")).collect::<String>();
            found.insert(format!("git {name}"), format!("{}\n{}{problem}", output.status, lines.join("\n")));
        }
        Self(found)
    }

    /// What has changed since, one line for each thing.
    pub(crate) fn changes_to(&self, after: &Self) -> Vec<String> {
        let names: std::collections::BTreeSet<&String> = self.0.keys().chain(after.0.keys()).collect();
        let differing = names.into_iter().filter(|name| self.0.get(*name) != after.0.get(*name));
        let side = |side: &Self, name: &String| side.0.get(name).cloned().unwrap_or("nothing".into());
        differing
            .map(|name| format!("{name}: before {}; after {}", side(self, name), side(after, name)))
            .collect()
    }
}

/// Refs that Towline may write.
fn is_towlines(line: &str) -> bool {
    line.starts_with("refs/towline/") || line.starts_with("refs/heads/towline/")
}

/// Runs git on the user's repository, without its hooks and monitors.
pub(crate) fn git(repository: &Path, arguments: &[&str]) -> Output {
    clean_command("timeout")
        .args([
            "--signal=KILL",
            GIT_SECONDS,
            "git",
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args(["-c", "core.commitGraph=false"])
        .args(arguments)
        .current_dir(repository)
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("LC_ALL", "C"),
        ])
        .stdin(Stdio::null())
        .output()
        .expect("git starts")
}

/// Describes every entry below a folder that is not a folder itself.
fn walk(folder: &Path, prefix: &str, without: &[&str], found: &mut BTreeMap<String, String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if without.contains(&name.as_str()) {
            continue;
        }
        let Ok(metadata) = entry.path().symlink_metadata() else { continue };
        let inside: Vec<&str> =
            without.iter().filter_map(|path| path.strip_prefix(&format!("{name}/"))).collect();
        if metadata.is_dir() {
            walk(&entry.path(), &format!("{prefix}{name}/"), &inside, found);
        } else {
            found.insert(format!("{prefix}{name}"), describe(&entry.path(), &metadata));
        }
    }
}

fn describe(path: &Path, metadata: &fs::Metadata) -> String {
    let kind = metadata.file_type();
    if kind.is_symlink() {
        return format!("a symlink to {:?}", fs::read_link(path).unwrap_or_default());
    }
    if kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device() {
        return format!("a special file {kind:?}");
    }
    let content = fs::read(path).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    let mode = metadata.permissions().mode() & 0o7777;
    format!("a file of mode {mode:o} with {} bytes, hash {:x}", content.len(), hasher.finish())
}
