//! The token of an attempt, derived from the attempt's id and a secret of the state directory. It proves that a request
//! comes from that attempt.
//!
//! Nothing has to be stored for it: any engine can check it, also one that has just adopted the attempt. The driver
//! knows whether the attempt is still alive.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use towline_core::AttemptId;
use uuid::Uuid;

use crate::home::Home;

/// The length of a secret, and of the longest file that is looked at.
const LENGTH: usize = 64;
const LONGEST: u64 = 4 * 1024;

/// The secret of a state directory.
#[derive(Clone)]
pub(crate) struct Secret(String);

impl Secret {
    /// Reads the secret, or makes one, for its owner alone.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let fresh = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        match Self::read(path) {
            Ok(Some(secret)) => return Ok(secret),
            Ok(None) => Self::write_first(path, &fresh)?,
            // Tokens that follow from a secret that anybody can guess prove nothing.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                towline_files::replace(path, fresh.as_bytes())?;
            }
            Err(error) => return Err(error),
        }
        Self::read(path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The secret that is there. What is in the file and is no secret of ours is invalid data.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Self>> {
        let Some(bytes) = towline_files::read_if_present(path, LONGEST)? else { return Ok(None) };
        let is_ours = bytes.len() == LENGTH && bytes.iter().all(u8::is_ascii_hexdigit);
        let secret = String::from_utf8(bytes).ok().filter(|_| is_ours).map(Self);
        secret.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Whole before it has its name; a second process uses the file of the first.
    fn write_first(path: &Path, secret: &str) -> io::Result<()> {
        let unnamed = path.with_extension(Uuid::new_v4().simple().to_string());
        towline_files::create_new(&unnamed)?.write_all(secret.as_bytes())?;
        let linked = fs::hard_link(&unnamed, path);
        fs::remove_file(&unnamed)?;
        linked.or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            _ => Err(error),
        })
    }

    /// What an attempt's agent is given.
    pub(crate) fn token(&self, attempt: AttemptId) -> String {
        towline_core::hexadecimal(&Sha256::digest(format!("{}:{attempt}", self.0)))
    }

    /// Whether this is the attempt's token. Takes as long for a wrong one as for the right one.
    pub(crate) fn fits(&self, attempt: AttemptId, token: &str) -> bool {
        let expected = self.token(attempt);
        let differs = expected.bytes().zip(token.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
        expected.len() == token.len() && differs == 0
    }
}

/// The token of the operator for the HTTP interface of this state directory, made for its owner alone when it is missing. Tokens of
/// attempts do not follow from it.
pub fn operator_token(home: &Home) -> io::Result<String> {
    Secret::of(&home.operator_token()).map(|secret| secret.0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use towline_core::AttemptNo;

    use super::*;

    fn attempt(number: u32) -> AttemptId {
        let goal = "01932f6e-7c00-7abc-8def-0123456789ab".parse().expect("a goal id");
        AttemptId::of(goal, AttemptNo::new(number).expect("not zero"))
    }

    #[test]
    fn a_token_fits_its_own_attempt_alone_and_for_every_engine() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let path = dir.path().join("token");
        let (first, second) = (Secret::of(&path).expect("made"), Secret::of(&path).expect("read"));
        let token = first.token(attempt(1));
        assert!(second.fits(attempt(1), &token));
        for wrong in ["", &token[1..], &second.token(attempt(2)), &token.to_uppercase()] {
            assert!(!first.fits(attempt(1), wrong), "{wrong}");
        }
        let mode = fs::metadata(&path).expect("the file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).expect("the directory").count(), 1);
    }

    #[test]
    fn the_token_of_the_operator_stays_and_is_not_the_secret_of_attempts() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let home = Home::create(dir.path().join("state")).expect("a state directory");
        let token = operator_token(&home).expect("made");
        assert_eq!(operator_token(&home).expect("read"), token);
        assert_ne!(Secret::of(&home.secret()).expect("made").0, token);
        let mode = fs::metadata(home.root().join("operator-token")).expect("the file").permissions().mode();
        assert_eq!((token.len(), mode & 0o777), (LENGTH, 0o600));
    }

    #[test]
    fn a_secret_that_anybody_can_guess_is_replaced_and_what_is_no_file_is_refused() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let path = dir.path().join("token");
        let real = Secret::of(&path).expect("made").0;
        for planted in ["", "x", &real[1..], &format!("{real}\n"), &"0".repeat(5_000)] {
            fs::write(&path, planted).expect("written");
            match Secret::of(&path) {
                Ok(secret) => {
                    assert_eq!(secret.0.len(), LENGTH);
                    assert_eq!(fs::read_to_string(&path).expect("the file"), secret.0);
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::FileTooLarge),
            }
        }
        fs::remove_file(&path).expect("removed");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a FIFO");
        Secret::of(&path).err().expect("refused");
    }
}
