//! The user's git configuration: what of it is frozen with a goal, and what a private clone gets.
//!
//! Everything is by allow-list. What runs programs (hooks, drivers, helpers) is left out, except filters, without which
//! files cannot be read and written as the user has them.

use std::path::{Path, PathBuf};

use towline_core::{Author, Commit, GitSettings};

use crate::git::{Git, records};
use crate::{Repository, WorkspaceError, unless_git_failed};

/// The most that is read of the user's own ignore rules and attributes.
const LONGEST_RULES: u64 = 1024 * 1024;

/// Settings that decide how files are written and read.
const FILES: [&str; 13] = [
    "core.autocrlf",
    "core.bigfilethreshold",
    "core.checkroundtripencoding",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.precomposeunicode",
    "core.protecthfs",
    "core.protectntfs",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
];

/// What git-lfs would read from the file `.lfsconfig` in a tree. It counts as the base has it, like attributes.
const IN_LFSCONFIG: [&str; 3] = ["lfs.fetchinclude", "lfs.fetchexclude", "lfs.url"];

/// Settings of git-lfs that a repository of our own always has, so that no `.lfsconfig` counts there: those before a goal's own
/// settings, and those over them.
const OWN_LFS_DEFAULTS: [(&str, &str); 2] = [("lfs.fetchinclude", ""), ("lfs.fetchexclude", "")];
const OWN_LFS_SETTINGS: [(&str, &str); 1] = [("lfs.skipdownloaderrors", "false")];

/// Sections that show who commits and how commits are written, for the agent's own commits.
const IDENTITY: [&str; 4] = ["user.", "author.", "committer.", "i18n."];

/// The address that pushes of an agent go to. Nothing is there, and the name explains why.
const NO_PUSH: &str = "file:///pushing-is-disabled/use-towline-merge";

/// What git takes a value for where it expects yes or no; none when it takes it for neither.
pub(crate) fn git_bool(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" | "" => Some(false),
        number => number.parse::<i64>().ok().map(|number| number != 0),
    }
}

/// A git configuration in the order of its files: full name and value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Configuration(Vec<(String, String)>);

impl Configuration {
    /// Everything that holds in this place.
    pub(crate) fn of(git: &Git) -> Result<Self, WorkspaceError> {
        Ok(Self::read(&git.command("config").args(["--list", "-z"]).run()?))
    }

    /// What a file of a commit contains; nothing if it is not there or not a configuration.
    fn of_file(git: &Git, commit: &Commit, path: &str) -> Result<Self, WorkspaceError> {
        let file = format!("--blob={commit}:{path}");
        let listing = unless_git_failed(git.command("config").args([&file, "--list", "-z"]).run())?;
        Ok(listing.map(|listing| Self::read(&listing)).unwrap_or_default())
    }

    fn read(listing: &[u8]) -> Self {
        let entry = |record: &[u8]| {
            let text = String::from_utf8_lossy(record);
            // A name without a value means that it is true.
            let (name, value) = text.split_once('\n').unwrap_or((&text, "true"));
            (name.to_owned(), value.to_owned())
        };
        Self(records(listing).map(entry).collect())
    }

    /// The value that counts: the last one.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The values that count of all names that are meant. Git refuses to replace one of several values of a name.
    fn effective(&self, is_meant: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let mut names: Vec<&str> =
            self.0.iter().map(|(name, _)| name.as_str()).filter(|name| is_meant(name)).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().filter_map(|name| Some((name.to_owned(), self.get(name)?.to_owned()))).collect()
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name).and_then(git_bool) == Some(true)
    }

    /// The names of the remotes that blobs are fetched from when they are needed.
    fn promisors(&self) -> Vec<&str> {
        let named = self.0.iter().filter(|(_, value)| git_bool(value) == Some(true));
        let mut names: Vec<&str> =
            named.filter_map(|(name, _)| name.strip_prefix("remote.")?.strip_suffix(".promisor")).collect();
        names.extend(self.get("extensions.partialclone"));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The settings of a remote, for fetching objects that a partial clone lacks.
    fn of_promisors(&self) -> Vec<(String, String)> {
        let keys = ["url", "promisor", "partialclonefilter"];
        let of_remote = |remote| keys.map(|key| format!("remote.{remote}.{key}"));
        let names = self.promisors().into_iter().flat_map(of_remote);
        let names = names.chain(["extensions.partialclone".to_owned()]);
        names.filter_map(|name| self.get(&name).map(str::to_owned).map(|value| (name, value))).collect()
    }

    /// Who the user is in commits: by their environment first, as git has it.
    fn author(&self) -> Option<Author> {
        let value = |variable: &str, key: &str| {
            let from_config = || self.get(&format!("author.{key}")).or(self.get(&format!("user.{key}")));
            std::env::var(variable).ok().or_else(|| from_config().map(str::to_owned))
        };
        // Git takes angle brackets and line ends out of both.
        let cleaned = |text: String| text.replace(['<', '>', '\n'], "").trim().to_owned();
        let name = value("GIT_AUTHOR_NAME", "name").map(cleaned).filter(|name| !name.is_empty())?;
        Some(Author { name, email: value("GIT_AUTHOR_EMAIL", "email").map(cleaned)? })
    }

    /// What decides how files are written and read, filters included.
    fn of_files(&self) -> Vec<(String, String)> {
        let is_meant =
            |name: &str| FILES.contains(&name) || name.starts_with("filter.") || name.starts_with("lfs.");
        self.effective(is_meant)
    }

    /// What a private clone gets: who commits, how files are written, where to fetch from.
    pub(crate) fn for_clone(&self, users: &Place<'_>) -> Vec<(String, String)> {
        let identity = |name: &str| {
            IDENTITY.iter().any(|section| name.starts_with(section)) && name != "user.signingkey"
        };
        let mut settings = self.effective(identity);
        settings.extend(self.of_files());
        settings.extend(self.remotes(users));
        settings.extend(self.of_promisors().into_iter().filter(|(name, _)| !name.ends_with(".url")));
        let fixed = [
            ("commit.gpgsign", "false"),
            ("tag.gpgsign", "false"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            // `git submodule update` then takes what the user has of a submodule from there.
            ("submodule.alternatelocation", "superproject"),
            ("submodule.alternateerrorstrategy", "info"),
        ];
        settings.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
        // For commands that need what only the user's own checkout has, like a virtual environment.
        settings.push(("towline.checkout".to_owned(), users.root.display().to_string()));
        settings
    }

    /// The same without the names and passwords in the addresses of remotes.
    pub(crate) fn without_credentials(mut self) -> Self {
        for (name, value) in &mut self.0 {
            if remote_setting(name).is_some() {
                *value = address_without_credentials(value);
            }
        }
        self
    }

    /// Remotes with their addresses to fetch from, and what branches follow. Nothing can be pushed to them, and none of them is
    /// the user's repository.
    fn remotes(&self, users: &Place<'_>) -> Vec<(String, String)> {
        let mut settings = Vec::new();
        let mut remotes = Vec::new();
        for (name, value) in &self.0 {
            match remote_setting(name) {
                Some((remote, "url")) if !users.is_at(value) => {
                    settings.push((name.clone(), users.address_from_elsewhere(value)));
                    remotes.push(remote);
                }
                None if is_followed(name) => settings.push((name.clone(), value.clone())),
                _ => {}
            }
        }
        for (name, value) in &self.0 {
            if let Some((remote, "fetch" | "tagopt")) = remote_setting(name)
                && remotes.contains(&remote)
            {
                settings.push((name.clone(), value.clone()));
            }
        }
        remotes.dedup();
        settings
            .extend(remotes.iter().map(|remote| (format!("remote.{remote}.pushurl"), NO_PUSH.to_owned())));
        settings
    }
}

/// The remote and the key of a setting like `remote.origin.url`.
fn remote_setting(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("remote.").and_then(|rest| rest.rsplit_once('.'))
}

/// Takes out what comes before the host. Of SSH the name stays, which is no secret and without which nobody gets in.
fn address_without_credentials(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let Some((user, host)) = host.rsplit_once('@') else { return address.to_owned() };
    match user.split(':').next() {
        Some(name) if scheme.ends_with("ssh") => format!("{scheme}://{name}@{host}{path}"),
        _ => format!("{scheme}://{host}{path}"),
    }
}

/// Whether a setting names what a branch follows.
fn is_followed(name: &str) -> bool {
    name.starts_with("branch.") && (name.ends_with(".remote") || name.ends_with(".merge"))
}

/// Where the user's repository is.
pub(crate) struct Place<'a> {
    pub(crate) root: &'a Path,
    pub(crate) common_dir: &'a Path,
}

impl Place<'_> {
    /// Whether an address is the user's repository itself.
    fn is_at(&self, address: &str) -> bool {
        let path = self.root.join(address.strip_prefix("file://").unwrap_or(address));
        let real = |path: &Path| path.canonicalize().ok();
        let own = real(self.common_dir);
        own.is_some() && [path.clone(), path.join(".git")].iter().any(|path| real(path) == own)
            || real(&path).is_some_and(|path| Some(path) == real(self.root))
    }

    /// A path that is relative to the user's repository means nothing elsewhere.
    fn address_from_elsewhere(&self, address: &str) -> String {
        let path = self.root.join(address);
        let is_relative = !address.contains(':') && !address.starts_with('/');
        if is_relative && (address.starts_with('.') || path.exists()) {
            return path.canonicalize().unwrap_or(path).display().to_string();
        }
        address.to_owned()
    }
}

impl Repository {
    /// What decides how git reads and writes files here, to be frozen with a goal that begins at `base`.
    pub fn git_settings(&self, base: &Commit) -> Result<GitSettings, WorkspaceError> {
        let configuration = Configuration::of(&self.git())?;
        let in_tree = Configuration::of_file(&self.plain_git(), base, ".lfsconfig")?;
        let mut settings = self.frozen(&configuration);
        let is_set = |name: &str| configuration.get(name).is_some();
        settings.config.extend(in_tree.effective(|name| IN_LFSCONFIG.contains(&name) && !is_set(name)));
        Ok(settings)
    }

    pub(crate) fn frozen(&self, configuration: &Configuration) -> GitSettings {
        let common = &self.common_dir;
        let mut config = configuration.of_files();
        config.extend(configuration.of_promisors());
        let is_sparse = configuration.is_true("core.sparsecheckout");
        GitSettings {
            config,
            excludes: both(configuration, "core.excludesfile", "ignore", &common.join("info/exclude")),
            attributes: both(
                configuration,
                "core.attributesfile",
                "attributes",
                &common.join("info/attributes"),
            ),
            sparse: is_sparse.then(|| rules(&self.git_dir.join("info/sparse-checkout"))),
            author: configuration.author(),
        }
    }
}

/// The settings of a repository of our own. The last value of a name counts.
pub(crate) fn for_own(settings: &GitSettings) -> Vec<(String, String)> {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let defaults = OWN_LFS_DEFAULTS.map(owned).into_iter();
    defaults.chain(settings.config.iter().cloned()).chain(OWN_LFS_SETTINGS.map(owned)).collect()
}

/// The value of a frozen setting.
pub(crate) fn value_of<'a>(settings: &'a GitSettings, name: &str) -> Option<&'a str> {
    settings.config.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// A command that converts files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter<'a> {
    /// The name by which attributes choose it.
    pub(crate) name: &'a str,
    /// `clean`, `smudge` or `process`.
    pub(crate) key: &'a str,
    pub(crate) command: &'a str,
}

/// The commands of all filters.
pub(crate) fn filters(settings: &GitSettings) -> impl Iterator<Item = Filter<'_>> {
    settings.config.iter().filter_map(|(setting, command)| {
        let (name, key) = setting.strip_prefix("filter.")?.rsplit_once('.')?;
        ["clean", "smudge", "process"].contains(&key).then_some(Filter { name, key, command })
    })
}

/// The rules in the user's own file, by its setting or at its usual place, and then those of the repository.
fn both(configuration: &Configuration, setting: &str, usual: &str, repository: &Path) -> String {
    let named = configuration.get(setting).map(home_expanded);
    let users = named.or_else(|| Some(users_git_directory()?.join(usual)));
    let mut text = users.map(|path| rules(&path)).unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text + &rules(repository)
}

fn rules(path: &Path) -> String {
    // A file that is not there or cannot be read has no rules, as for git itself. One behind a symlink is the user's choice.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let text = towline_files::read(&real, LONGEST_RULES).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

fn home_expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    }
}

fn users_git_directory() -> Option<PathBuf> {
    let configured = std::env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let usual = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    Some(configured.or_else(usual)?.join("git"))
}

/// Settings as a file that git reads.
pub(crate) fn as_file(settings: &[(String, String)]) -> String {
    let mut text = String::new();
    for (name, value) in settings {
        let Some((section, key)) = name.rsplit_once('.') else { continue };
        match section.split_once('.') {
            Some((section, part)) => {
                let part = part.replace('\\', "\\\\").replace('"', "\\\"");
                text.push_str(&format!("[{section} \"{part}\"]\n"));
            }
            None => text.push_str(&format!("[{section}]\n")),
        }
        let escaped =
            value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
        text.push_str(&format!("\t{key} = \"{escaped}\"\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(settings: &[(&str, &str)]) -> Configuration {
        Configuration(settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    #[test]
    fn yes_and_no_are_known_in_every_spelling_of_git() {
        for (values, meaning) in [
            (["true", "Yes", "on", "1", "2"].as_slice(), Some(true)),
            (&["false", "no", "OFF", "0", ""], Some(false)),
            (&["maybe", "input"], None),
        ] {
            for value in values {
                assert_eq!(git_bool(value), meaning, "{value}");
            }
        }
    }

    #[test]
    fn settings_survive_their_way_through_a_file() {
        let settings = configuration(&[
            ("core.autocrlf", "input"),
            ("filter.lfs.clean", "git-lfs clean -- %f"),
            ("filter.a.b \"c\\.process", "run \"it\" \\ # not a comment; \n\tnext"),
            ("remote.origin.url", "https://example.org/a b.git"),
        ]);
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config"), as_file(&settings.0)).unwrap();
        let git = Git::discovering(dir.path());
        let listing = git.command("config").args(["--file", "config", "--list", "-z"]).run().unwrap();
        assert_eq!(Configuration::read(&listing).0, settings.0);
    }

    #[test]
    fn a_clone_gets_addresses_to_fetch_from_and_none_to_push_to() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let own = root.display().to_string();
        let configuration = configuration(&[
            ("user.name", "Someone"),
            ("core.worktree", "/elsewhere"),
            ("core.hookspath", "/hooks"),
            ("core.fsmonitor", "program"),
            ("alias.x", "!program"),
            ("remote.origin.url", "https://example.org/a.git"),
            ("remote.origin.pushurl", "git@example.org:a.git"),
            ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
            ("remote.self.url", own.as_str()),
            ("branch.main.remote", "origin"),
            ("branch.main.merge", "refs/heads/main"),
        ]);
        let settings = configuration.for_clone(&Place { root: &root, common_dir: &root.join(".git") });
        let settings = Configuration(settings);
        let get = |name: &str| settings.get(name);
        assert_eq!(get("user.name"), Some("Someone"));
        assert_eq!(get("remote.origin.url"), Some("https://example.org/a.git"));
        assert_eq!(get("remote.origin.pushurl"), Some(NO_PUSH));
        assert_eq!(get("branch.main.merge"), Some("refs/heads/main"));
        for left_out in ["core.worktree", "core.hookspath", "core.fsmonitor", "alias.x", "remote.self.url"] {
            assert_eq!(get(left_out), None, "{left_out}");
        }
        assert_eq!(configuration.of_files(), []);
    }

    #[test]
    fn a_checkout_gets_addresses_without_credentials() {
        for (address, without) in [
            ("https://example.org/a.git", "https://example.org/a.git"),
            ("https://someone:p@ss@example.org:8443/a@b.git", "https://example.org:8443/a@b.git"),
            ("https://token@example.org", "https://example.org"),
            ("ssh://git:word@example.org/a.git", "ssh://git@example.org/a.git"),
            ("git@example.org:a.git", "git@example.org:a.git"),
            ("/srv/a@b.git", "/srv/a@b.git"),
        ] {
            let settings = configuration(&[("remote.origin.url", address)]);
            assert_eq!(settings.without_credentials().get("remote.origin.url"), Some(without));
        }
    }
}
