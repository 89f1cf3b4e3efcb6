//! What proves that somebody speaks for an attempt: a word that follows from the attempt's id and a secret of this state
//! directory.
//!
//! Nothing has to be kept for it: any engine can check it, also one that has just adopted the attempt. Whether the
//! attempt is still alive is the driver's to know.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sha2::{Digest, Sha256};
use towline_core::AttemptId;
use uuid::Uuid;

/// The secret of a state directory.
#[derive(Clone)]
pub(crate) struct Secret(String);

impl Secret {
    /// Reads the secret, or makes one, for its owner alone.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let fresh = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let unnamed = path.with_extension(Uuid::new_v4().simple().to_string());
        match fs::read_to_string(path) {
            Ok(secret) if !secret.trim().is_empty() => return Ok(Self(secret.trim().to_owned())),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // Whole before it has its name; whoever comes second takes the first one's.
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&unnamed)?;
        file.write_all(fresh.as_bytes())?;
        let linked = fs::hard_link(&unnamed, path);
        fs::remove_file(&unnamed)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(Self(fs::read_to_string(path)?.trim().to_owned())),
        }
    }

    /// What an attempt's agent is given.
    pub(crate) fn token(&self, attempt: AttemptId) -> String {
        let digest = Sha256::digest(format!("{}:{attempt}", self.0));
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether this is the attempt's token. Takes as long for a wrong one as for the right one.
    pub(crate) fn fits(&self, attempt: AttemptId, token: &str) -> bool {
        let expected = self.token(attempt);
        let differs = expected.bytes().zip(token.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
        expected.len() == token.len() && differs == 0
    }
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
}
