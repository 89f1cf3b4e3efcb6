//! The keys that sign proofs: one is active, and earlier ones stay for verification.
//!
//! In `keys/` of the state directory, `keys.json` lists the public keys, and the active one has its private part in a file beside it.
//! The private part of a retired key is removed.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use towline_api::KeyReport;
use towline_engine::Home;
use towline_proof::{KeyError, PublicKey, SigningKey};

use crate::context::Context;
use crate::error::Error;

/// The longest list of keys, and the longest private key.
const LONGEST_LIST: u64 = 1024 * 1024;
const LONGEST_KEY: u64 = 4 * 1024;

/// A public key of this state directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ListedKey {
    public_key: String,
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retired_at: Option<Timestamp>,
}

/// The directory with the keys.
pub(crate) struct Keys {
    home: Home,
    folder: PathBuf,
}

/// Rights of others than the owner: any to a private key, and writing to what lists the keys.
const OPEN_TO_OTHERS: u32 = 0o077;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Others than the owner can read or change a key.
#[derive(Debug, thiserror::Error)]
#[error("{} has mode {mode:o}, so others can read or change the keys that sign proofs", path.display())]
struct OpenToOthers {
    path: PathBuf,
    mode: u32,
}

/// What may be wrong with it.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// All keys, the newest first. None are made.
pub fn keys(context: &Context) -> Result<Vec<KeyReport>, Error> {
    match existing(context)? {
        Some(keys) => keys.reports(),
        None => Ok(Vec::new()),
    }
}

/// Makes another key the active one.
pub fn rotate_keys(context: &Context, now: Timestamp) -> Result<KeyReport, Error> {
    let keys = Keys::of(&context.home()?);
    keys.rotate(now).map_err(|error| keys.broken(&error))?;
    let reports = keys.reports()?.into_iter().next();
    reports.ok_or_else(|| Error::internal("the new key is not in the list of keys"))
}

/// The keys of the state directory, if there is one.
pub(crate) fn existing(context: &Context) -> Result<Option<Keys>, Error> {
    let root = context.home_path()?;
    if root.symlink_metadata().is_err() {
        return Ok(None);
    }
    Ok(Some(Keys::of(&Home::open(&root).map_err(|error| {
        Error::internal(format!("cannot use the state directory {}: {error}", root.display()))
    })?)))
}

impl Keys {
    pub(crate) fn of(home: &Home) -> Self {
        Self { home: home.clone(), folder: home.keys() }
    }

    /// The active key; made when there is none yet.
    pub(crate) fn signing(&self, now: Timestamp) -> Result<SigningKey, Error> {
        self.active_or_new(now).map_err(|error| self.broken(&error))
    }

    /// All public keys, also the retired ones.
    pub(crate) fn public(&self) -> Result<Vec<PublicKey>, Error> {
        let read = || -> Result<Vec<PublicKey>, Failure> {
            let entries = self.entries()?;
            Ok(entries.iter().map(ListedKey::key).collect::<Result<_, _>>()?)
        };
        read().map_err(|error| self.broken(&error))
    }

    fn reports(&self) -> Result<Vec<KeyReport>, Error> {
        let read = || -> Result<Vec<KeyReport>, Failure> {
            let entries = self.entries()?;
            Ok(entries.iter().rev().map(ListedKey::report).collect::<Result<_, _>>()?)
        };
        read().map_err(|error| self.broken(&error))
    }

    fn active_or_new(&self, now: Timestamp) -> Result<SigningKey, Failure> {
        let _lock = self.lock()?;
        let entries = self.entries()?;
        match entries.last() {
            Some(active) => {
                let key = active.key()?;
                must_be_closed(&self.private(&key), OPEN_TO_OTHERS)?;
                let stored = towline_files::read(&self.private(&key), LONGEST_KEY)?;
                let signing = SigningKey::read(&stored)?;
                if signing.public()? != key {
                    return Err("the private key is not that of the active key".into());
                }
                Ok(signing)
            }
            None => self.add(entries, now),
        }
    }

    fn rotate(&self, now: Timestamp) -> Result<(), Failure> {
        let _lock = self.lock()?;
        let mut entries = self.entries()?;
        if let Some(last) = entries.last_mut() {
            last.retired_at = Some(now);
        }
        let retired = entries.iter().map(ListedKey::key).collect::<Result<Vec<_>, _>>()?;
        self.add(entries, now)?;
        // Also those that a rotation left when it was killed.
        for key in retired {
            towline_files::remove_tree(&self.private(&key))?;
        }
        Ok(())
    }

    /// Makes a key and lists it after these: first its private part, so that every listed key has had one.
    fn add(&self, mut entries: Vec<ListedKey>, now: Timestamp) -> Result<SigningKey, Failure> {
        let (signing, stored) = SigningKey::generate()?;
        let key = signing.public()?;
        towline_files::replace_durably(&self.private(&key), &stored)?;
        entries.push(ListedKey { public_key: key.pem(), created_at: now, retired_at: None });
        towline_files::replace_durably(&self.list(), &serde_json::to_vec_pretty(&entries)?)?;
        Ok(signing)
    }

    /// Held while keys are made.
    fn lock(&self) -> io::Result<File> {
        self.home.make(&self.folder)?;
        let lock = towline_files::append(&self.folder.join("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    /// From the oldest to the active one.
    fn entries(&self) -> Result<Vec<ListedKey>, Failure> {
        // A user who can write there can replace these keys.
        must_be_closed(&self.folder, WRITABLE_BY_OTHERS)?;
        must_be_closed(&self.list(), WRITABLE_BY_OTHERS)?;
        match towline_files::read_if_present(&self.list(), LONGEST_LIST)? {
            Some(bytes) => Ok(serde_json::from_slice(&bytes)?),
            None => Ok(Vec::new()),
        }
    }

    fn list(&self) -> PathBuf {
        self.folder.join("keys.json")
    }

    fn private(&self, key: &PublicKey) -> PathBuf {
        self.folder.join(format!("{}.private", key.id()))
    }

    fn broken(&self, error: &Failure) -> Error {
        broken(&self.folder, error)
    }
}

/// Fails if others than the owner have these rights to a file that is there.
fn must_be_closed(path: &Path, rights: u32) -> Result<(), Failure> {
    match path.metadata() {
        Ok(about) if about.mode() & rights != 0 => {
            Err(Box::new(OpenToOthers { path: path.to_owned(), mode: about.mode() & 0o7777 }))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn broken(folder: &Path, error: &Failure) -> Error {
    if error.is::<OpenToOthers>() {
        return Error::usage(error.to_string()).hint(format!(
            "run `chmod -R go= '{}'`; if somebody else can have read or changed it, make a new key with `towline keys rotate`",
            folder.display()
        ));
    }
    Error::internal(format!("cannot use the keys in {}: {error}", folder.display())).hint(
        "restore that directory from a backup, or move it away; without it, earlier proofs need `--key` with their public key",
    )
}

impl ListedKey {
    fn key(&self) -> Result<PublicKey, KeyError> {
        PublicKey::read_all(&self.public_key)?.into_iter().next().ok_or(KeyError::NotPublic)
    }

    fn report(&self) -> Result<KeyReport, KeyError> {
        let key = self.key()?;
        Ok(KeyReport {
            id: key.id().to_string(),
            active: self.retired_at.is_none(),
            created_at: self.created_at,
            retired_at: self.retired_at,
            public_key: key.pem(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn scratch() -> (tempfile::TempDir, Keys) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::create(dir.path().join("state")).unwrap();
        (dir, Keys::of(&home))
    }

    #[test]
    fn the_first_key_is_made_on_first_use_for_its_owner_alone() {
        let (_dir, keys) = scratch();
        assert_eq!(keys.reports().unwrap(), []);
        let first = keys.signing(at(0)).unwrap().public().unwrap();
        assert_eq!(keys.signing(at(1)).unwrap().public().unwrap(), first, "it stays");
        let reports = keys.reports().unwrap();
        let facts: Vec<_> = reports.iter().map(|key| (key.active, key.created_at, key.retired_at)).collect();
        assert_eq!(facts, [(true, at(0), None)]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&keys.folder), 0o700);
        for entry in fs::read_dir(&keys.folder).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), 0o600);
        }
    }

    #[test]
    fn a_retired_key_verifies_and_signs_no_more() {
        let (_dir, keys) = scratch();
        let first = keys.signing(at(0)).unwrap().public().unwrap();
        keys.rotate(at(5)).unwrap();
        let second = keys.signing(at(6)).unwrap().public().unwrap();
        assert_ne!(first, second);
        assert_eq!(keys.public().unwrap(), [first, second]);
        let facts: Vec<_> = keys.reports().unwrap().into_iter().map(|key| (key.id, key.retired_at)).collect();
        assert_eq!(facts, [(second.id().to_string(), None), (first.id().to_string(), Some(at(5)))]);
        assert!(!keys.private(&first).exists() && keys.private(&second).exists());
    }

    #[test]
    fn a_private_key_of_somebody_else_does_not_sign() {
        let (_dir, keys) = scratch();
        let active = keys.signing(at(0)).unwrap().public().unwrap();
        let (_, other) = SigningKey::generate().unwrap();
        towline_files::replace(&keys.private(&active), &other).unwrap();
        let error = keys.signing(at(1)).err().unwrap().to_string();
        assert!(error.contains("the private key is not that of the active key"), "{error}");
        fs::remove_file(keys.private(&active)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", keys.private(&active)).unwrap();
        assert!(keys.signing(at(1)).is_err(), "a symlink is not followed");
    }

    #[test]
    fn keys_that_others_can_read_or_change_neither_sign_nor_verify() {
        let (_dir, keys) = scratch();
        let active = keys.signing(at(0)).unwrap().public().unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let (folder, list, private) = (keys.folder.clone(), keys.list(), keys.private(&active));
        for (path, closed, open) in [
            (&folder, 0o700, 0o777),
            (&list, 0o600, 0o666),
            (&private, 0o600, 0o666),
            (&private, 0o600, 0o640),
        ] {
            set(path, open);
            let error = keys.signing(at(1)).err().unwrap().to_string();
            assert!(error.contains(&format!("{} has mode {open:o}", path.display())), "{error}");
            assert_eq!(keys.public().is_err(), *path != private, "the private key does not verify");
            set(path, closed);
            assert!(keys.signing(at(1)).is_ok());
        }
        set(&folder, 0o755);
        set(&list, 0o644);
        assert!(keys.signing(at(1)).is_ok(), "public keys may be read");
    }

    #[test]
    fn no_keys_are_made_by_looking() {
        let (_dir, keys) = scratch();
        assert_eq!(keys.public().unwrap(), []);
        assert!(!keys.folder.exists());
    }
}
