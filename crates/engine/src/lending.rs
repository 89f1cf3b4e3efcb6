//! Copies of the user's sign-in files for an agent in a sandbox, and the way back of one that the agent refreshed.
//!
//! The agent replaces these files by renaming, which it cannot do with a file that is mounted, so it has copies. What it left in the
//! place of a copy is hostile input: only a regular file of a bounded size goes back, only in the place of the file that was
//! copied, only if that has not changed meanwhile, and only with everything in it that was there before.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use towline_sandbox::PrivatePath;

/// The largest file.
const LONGEST: u64 = 8 << 20;
/// The largest record of what was lent.
const LONGEST_RECORD: u64 = 1 << 20;

/// Whether a file that the agent changed goes back to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// It is a credential, which agents refresh.
    ThereAndBack,
    /// What the agent makes of it is its own business.
    There,
}

/// A file of the user's, and where its copy is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Loan {
    pub(crate) users: PathBuf,
    /// A private directory, and the copy below it.
    pub(crate) root: PathBuf,
    pub(crate) copy: PathBuf,
    pub(crate) way: Way,
    /// A hash of what was copied; empty before.
    #[serde(default)]
    digest: String,
}

impl Loan {
    pub(crate) fn new(users: PathBuf, place: PrivatePath, way: Way) -> Self {
        Self { users, root: place.root, copy: place.inner, way, digest: String::new() }
    }

    fn path(&self) -> PathBuf {
        self.root.join(&self.copy)
    }

    /// What the agent has there now, if that is a file.
    fn copied(&self) -> Option<Vec<u8>> {
        let above = self.copy.parent().unwrap_or(Path::new(""));
        towline_files::must_lead_through_directories(&self.root, above).ok()?;
        towline_files::read(&self.path(), LONGEST).ok()
    }

    /// Gives the agent what the user has now, unless it has that or made something else of it.
    fn lend(&mut self) -> io::Result<()> {
        let Ok(users) = towline_files::read_following(&self.users, LONGEST) else {
            // The user has signed out. What the agent got in another way stays.
            if self.way == Way::ThereAndBack && !self.digest.is_empty() {
                towline_files::remove_below(&self.root, &self.copy)?;
            }
            self.digest = String::new();
            return Ok(());
        };
        let digest = digest(&users);
        let is_current = self.digest == digest
            && self.copied().is_some_and(|copy| self.way == Way::There || digest_is(&copy, &digest));
        if is_current {
            return Ok(());
        }
        let above = self.copy.parent().unwrap_or(Path::new(""));
        if towline_files::create_dir_below(&self.root, above).is_err() {
            // Something else is in the way.
            let first = self.copy.components().next();
            let first: &Path = first.as_ref().map_or(Path::new(""), |first| first.as_ref());
            towline_files::remove_below(&self.root, first)?;
            towline_files::create_dir_below(&self.root, above)?;
        }
        if self.path().is_dir() {
            towline_files::remove_below(&self.root, &self.copy)?;
        }
        towline_files::replace(&self.path(), &users)?;
        self.digest = digest;
        Ok(())
    }

    /// Gives the user what the agent refreshed.
    fn give_back(&mut self) -> io::Result<()> {
        let Some(copy) = self.copied().filter(|copy| !digest_is(copy, &self.digest)) else { return Ok(()) };
        let Ok(users) = towline_files::read_following(&self.users, LONGEST) else { return Ok(()) };
        let is_wanted = self.way == Way::ThereAndBack && digest_is(&users, &self.digest);
        if !is_wanted || !is_refreshed(&users, &copy) {
            return Ok(());
        }
        towline_files::replace(&self.users.canonicalize()?, &copy)?;
        self.digest = digest(&copy);
        Ok(())
    }
}

/// Takes back what was lent before, and lends these files. `record` keeps what was lent.
pub(crate) fn lend(record: &Path, mut loans: Vec<Loan>) -> io::Result<()> {
    give_back(record)?;
    let before = read(record);
    for loan in &mut loans {
        let same = before.iter().find(|known| (&known.users, &known.copy) == (&loan.users, &loan.copy));
        loan.digest = same.map(|known| known.digest.clone()).unwrap_or_default();
        loan.lend()?;
    }
    keep(record, &loans)
}

/// Gives the user what the agent refreshed since.
pub(crate) fn give_back(record: &Path) -> io::Result<()> {
    let mut loans = read(record);
    let before = loans.clone();
    loans.iter_mut().try_for_each(Loan::give_back)?;
    if loans == before { Ok(()) } else { keep(record, &loans) }
}

fn read(record: &Path) -> Vec<Loan> {
    let read = towline_files::read(record, LONGEST_RECORD).ok();
    read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn keep(record: &Path, loans: &[Loan]) -> io::Result<()> {
    towline_files::replace(record, &serde_json::to_vec(loans)?)
}

fn digest(bytes: &[u8]) -> String {
    towline_core::hexadecimal(&Sha256::digest(bytes))
}

fn digest_is(bytes: &[u8], wanted: &str) -> bool {
    digest(bytes) == wanted
}

/// What agents change when they refresh a credential: tokens, their times and what they are good for, in lower case and without
/// separators.
const REFRESHED: [&str; 16] = [
    "access",
    "accesstoken",
    "expires",
    "expiresat",
    "expiresin",
    "expirydate",
    "idtoken",
    "lastrefresh",
    "ratelimittier",
    "refresh",
    "refreshtoken",
    "refreshtokenexpiresat",
    "scope",
    "scopes",
    "subscriptiontype",
    "token",
];

/// Whether nothing of a credential is different but what a refresh changes. The user's own agent acts on the rest outside of the
/// sandbox: another provider or address in it could have that run a command.
fn is_refreshed(before: &[u8], after: &[u8]) -> bool {
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes);
    match (read(before), read(after)) {
        (Ok(before), Ok(after)) => differs_in_tokens(&before, &after),
        _ => false,
    }
}

fn differs_in_tokens(before: &Value, after: &Value) -> bool {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return before == after };
    let is_there = |key: &String| after.contains_key(key);
    before.keys().all(is_there)
        && after.iter().all(|(key, after)| match before.get(key) {
            _ if is_of_token(key) => is_plain(after),
            Some(before) => differs_in_tokens(before, after),
            None => false,
        })
}

fn is_of_token(key: &str) -> bool {
    let name: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
    REFRESHED.contains(&name.to_ascii_lowercase().as_str())
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Array(values) => values.iter().all(Value::is_string),
        Value::String(text) => !text.is_empty() && !text.chars().any(char::is_control),
        value => value.is_number(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const FIRST: &str = r#"{"oauth":{"token":"one","expires":1}}"#;
    const SECOND: &str = r#"{"oauth":{"token":"two","expires":2,"id_token":"new"}}"#;

    struct Scene {
        dir: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a scratch directory");
            fs::create_dir_all(dir.path().join("private")).expect("a directory");
            fs::create_dir_all(dir.path().join("users")).expect("a directory");
            fs::write(dir.path().join("users/auth.json"), FIRST).expect("written");
            Self { dir }
        }

        fn users(&self) -> PathBuf {
            self.dir.path().join("users/auth.json")
        }

        fn copy(&self) -> PathBuf {
            self.dir.path().join("private/.agent/auth.json")
        }

        fn record(&self) -> PathBuf {
            self.dir.path().join("lent.json")
        }

        fn lend(&self) {
            let place =
                PrivatePath { root: self.dir.path().join("private"), inner: ".agent/auth.json".into() };
            lend(&self.record(), vec![Loan::new(self.users(), place, Way::ThereAndBack)]).expect("lent");
        }

        /// What the user has after the agent left this in the place of its copy.
        fn after(&self, leave: impl FnOnce(&Path)) -> String {
            self.lend();
            leave(&self.copy());
            give_back(&self.record()).expect("given back");
            fs::read_to_string(self.users()).expect("the user's file")
        }
    }

    fn replace(path: &Path, text: &str) {
        fs::write(path.with_extension("new"), text).expect("written");
        fs::rename(path.with_extension("new"), path).expect("renamed");
    }

    #[test]
    fn a_refreshed_credential_goes_back_for_its_owner_alone_and_is_lent_next_time() {
        let scene = Scene::new();
        assert_eq!(scene.after(|copy| replace(copy, SECOND)), SECOND);
        let mode = fs::metadata(scene.users()).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::remove_file(scene.copy()).expect("removed");
        scene.lend();
        assert_eq!(fs::read_to_string(scene.copy()).expect("a copy"), SECOND);
    }

    #[test]
    fn a_refreshed_credential_goes_back_at_the_next_start_if_the_engine_was_killed() {
        let scene = Scene::new();
        scene.lend();
        replace(&scene.copy(), SECOND);
        scene.lend();
        assert_eq!(fs::read_to_string(scene.users()).expect("there"), SECOND);
        assert_eq!(fs::read_to_string(scene.copy()).expect("there"), SECOND);
    }

    #[test]
    fn what_the_user_did_meanwhile_counts() {
        let scene = Scene::new();
        let own = r#"{"oauth":{"token":"own","expires":3}}"#;
        let users = scene.users();
        assert_eq!(
            scene.after(|copy| {
                replace(copy, SECOND);
                fs::write(&users, own).expect("written");
            }),
            own
        );
        scene.lend();
        assert_eq!(fs::read_to_string(scene.copy()).expect("a copy"), own);
        fs::remove_file(&users).expect("signed out");
        scene.lend();
        assert!(!scene.copy().exists() && !users.exists());
    }

    #[test]
    fn nothing_but_a_whole_credential_goes_back() {
        let large = format!(r#"{{"oauth":{{"token":"{}","expires":1}}}}"#, "x".repeat(9 << 20));
        for text in
            ["", "no JSON", "{}", "[]", r#"{"oauth":{}}"#, r#"{"oauth":{"token":"","expires":1}}"#, &large]
        {
            let scene = Scene::new();
            assert_eq!(scene.after(|copy| replace(copy, text)), FIRST, "{:.80}", text);
        }
    }

    #[test]
    fn nothing_but_tokens_and_their_times_goes_back() {
        for text in [
            r#"{"oauth":{"token":"two","expires":2},"http://127.0.0.1:1":{"type":"wellknown","token":"x"}}"#,
            r#"{"oauth":{"token":"two","expires":2,"type":"wellknown"}}"#,
            r#"{"oauth":{"token":{"command":"sh"},"expires":2}}"#,
        ] {
            let scene = Scene::new();
            assert_eq!(scene.after(|copy| replace(copy, text)), FIRST, "{text}");
        }
    }

    #[test]
    fn no_symlink_directory_or_fifo_goes_back_or_keeps_the_next_copy_away() {
        let secret = tempfile::NamedTempFile::new().expect("a file");
        fs::write(secret.path(), SECOND).expect("written");
        let plants: [&dyn Fn(&Path); 4] = [
            &|copy| symlink(secret.path(), copy).expect("a symlink"),
            &|copy| fs::create_dir(copy).expect("a directory"),
            &|copy| {
                let mode = rustix::fs::Mode::RWXU;
                rustix::fs::mknodat(rustix::fs::CWD, copy, rustix::fs::FileType::Fifo, mode, 0)
                    .expect("a FIFO");
            },
            &|copy| {
                let above = copy.parent().expect("a parent");
                fs::remove_dir(above).expect("empty");
                symlink(secret.path().parent().expect("a parent"), above).expect("a symlink");
            },
        ];
        for plant in plants {
            let scene = Scene::new();
            let left = scene.after(|copy| {
                fs::remove_file(copy).expect("removed");
                plant(copy);
            });
            assert_eq!(left, FIRST);
            scene.lend();
            assert_eq!(fs::read_to_string(scene.copy()).expect("a copy"), FIRST);
        }
        assert_eq!(fs::read_to_string(secret.path()).expect("untouched"), SECOND);
    }
}
