//! Signing in to the page: links with a code that works once, and the sessions that follow from them.
//!
//! Codes and sessions are empty files named by the hash of their key, so that the state directory shows no key. A code is spent by
//! removing its file, which succeeds once, whichever server does it. A session ends with its file, and survives restarts of the server.

use std::fs;
use std::io;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};
use towline_core::hexadecimal;

use crate::home::Home;
use crate::sweep::{modified, named_entries};

/// How long a code can be used.
pub const CODE_LIFE: SignedDuration = SignedDuration::from_mins(10);
/// How long a session lasts.
const SESSION_LIFE: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How many codes and how many sessions there are at most. The oldest one makes room.
const MOST: usize = 64;
/// The length of a key in bytes.
const KEY: usize = 32;

/// A new code, which signs in once.
pub fn new_sign_in_code(home: &Home, now: Timestamp) -> io::Result<String> {
    codes(home).issue(now)
}

/// Spends a code for a session; none if there is no such code, or no longer.
pub fn sign_in(home: &Home, code: &str, now: Timestamp) -> io::Result<Option<String>> {
    let codes = codes(home);
    if !codes.has(code, now) || !codes.end(code)? {
        return Ok(None);
    }
    sessions(home).issue(now).map(Some)
}

/// Whether this is the key of a session.
pub fn is_signed_in(home: &Home, session: &str, now: Timestamp) -> bool {
    sessions(home).has(session, now)
}

/// Ends one session.
pub fn sign_out(home: &Home, session: &str) -> io::Result<()> {
    sessions(home).end(session).map(drop)
}

/// Ends all sessions and codes, and returns how many sessions there were.
pub fn sign_out_all(home: &Home) -> io::Result<usize> {
    for (_, code) in codes(home).all() {
        home.remove(&code)?;
    }
    let sessions = sessions(home).all();
    for (_, session) in &sessions {
        home.remove(session)?;
    }
    Ok(sessions.len())
}

fn codes(home: &Home) -> Keys<'_> {
    Keys { home, directory: home.sign_in().join("codes"), life: CODE_LIFE }
}

fn sessions(home: &Home) -> Keys<'_> {
    Keys { home, directory: home.sign_in().join("sessions"), life: SESSION_LIFE }
}

/// Keys of one kind.
struct Keys<'a> {
    home: &'a Home,
    directory: PathBuf,
    life: SignedDuration,
}

impl Keys<'_> {
    /// Makes one, and removes those that are over.
    fn issue(&self, now: Timestamp) -> io::Result<String> {
        self.home.make(&self.directory)?;
        let mut others = self.all();
        others.sort();
        let spare = others.len().saturating_sub(MOST - 1);
        for (place, (made_at, path)) in others.iter().enumerate() {
            if place < spare || self.is_over(*made_at, now) {
                self.home.remove(path)?;
            }
        }
        let key = fresh_key()?;
        towline_files::create_new(&self.file(&key))?;
        Ok(key)
    }

    fn has(&self, key: &str, now: Timestamp) -> bool {
        let file = self.file(key);
        let is_regular = fs::symlink_metadata(&file).is_ok_and(|about| about.is_file());
        is_regular && modified(&file).is_some_and(|made_at| !self.is_over(made_at, now))
    }

    /// Removes one. False if another process was faster.
    fn end(&self, key: &str) -> io::Result<bool> {
        match fs::remove_file(self.file(key)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_over(&self, made_at: Timestamp, now: Timestamp) -> bool {
        now.duration_since(made_at) > self.life
    }

    /// Every one with the time at which it was made.
    fn all(&self) -> Vec<(Timestamp, PathBuf)> {
        let entries = named_entries::<String>(&self.directory).into_iter();
        entries.filter_map(|(_, path)| Some((modified(&path)?, path))).collect()
    }

    /// The name follows from a hash: no key leads out of the directory.
    fn file(&self, key: &str) -> PathBuf {
        self.directory.join(hexadecimal(&Sha256::digest(key)))
    }
}

fn fresh_key() -> io::Result<String> {
    let mut bytes = [0; KEY];
    let mut filled = 0;
    while filled < KEY {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(hexadecimal(&bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::clock::{Clock, SystemClock};

    fn scratch() -> (tempfile::TempDir, Home, Timestamp) {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let home = Home::create(dir.path().join("state")).expect("a state directory");
        (dir, home, SystemClock.now())
    }

    fn after(now: Timestamp, by: SignedDuration) -> Timestamp {
        now.checked_add(by).expect("in range")
    }

    #[test]
    fn a_code_signs_in_once_and_the_session_lasts_until_it_is_ended() {
        let (_dir, home, now) = scratch();
        let code = new_sign_in_code(&home, now).expect("a code");
        assert_eq!(code.len(), 2 * KEY);
        let session = sign_in(&home, &code, now).expect("looked up").expect("a session");
        assert_eq!(sign_in(&home, &code, now).expect("looked up"), None, "it is spent");
        assert!(is_signed_in(&home, &session, now));
        assert!(!is_signed_in(&home, &code, now));
        sign_out(&home, &session).expect("ended");
        assert!(!is_signed_in(&home, &session, now));
    }

    #[test]
    fn codes_and_sessions_end_with_their_time() {
        let (_dir, home, now) = scratch();
        let late = after(now, CODE_LIFE + SignedDuration::from_secs(5));
        let code = new_sign_in_code(&home, now).expect("a code");
        assert_eq!(sign_in(&home, &code, late).expect("looked up"), None);
        let session = sign_in(&home, &code, now).expect("looked up").expect("a session");
        assert!(is_signed_in(&home, &session, after(now, SESSION_LIFE - CODE_LIFE)));
        assert!(!is_signed_in(&home, &session, after(now, SESSION_LIFE + CODE_LIFE)));
    }

    #[test]
    fn signing_out_everywhere_ends_all_sessions_and_unused_codes() {
        let (_dir, home, now) = scratch();
        let signed_in = || {
            let code = new_sign_in_code(&home, now).expect("a code");
            sign_in(&home, &code, now).expect("looked up").expect("a session")
        };
        let sessions = [signed_in(), signed_in()];
        let code = new_sign_in_code(&home, now).expect("a code");
        assert_eq!(sign_out_all(&home).expect("ended"), 2);
        assert!(!sessions.iter().any(|session| is_signed_in(&home, session, now)));
        assert_eq!(sign_in(&home, &code, now).expect("looked up"), None);
        assert_eq!(sign_out_all(&home).expect("ended"), 0);
    }

    #[test]
    fn there_are_not_more_than_a_few_and_the_newest_stay() {
        let (_dir, home, now) = scratch();
        let issued: Vec<String> =
            (0..MOST + 10).map(|_| new_sign_in_code(&home, now).expect("a code")).collect();
        assert_eq!(codes(&home).all().len(), MOST);
        assert!(codes(&home).has(issued.last().expect("one"), now));
        new_sign_in_code(&home, after(now, CODE_LIFE + CODE_LIFE)).expect("a code");
        assert_eq!(codes(&home).all().len(), 1);
    }

    #[test]
    fn no_key_is_in_the_state_directory_and_none_leads_out_of_it() {
        let (_dir, home, now) = scratch();
        let code = new_sign_in_code(&home, now).expect("a code");
        let (_, file) = codes(&home).all().remove(0);
        assert!(!file.display().to_string().contains(&code));
        let about = fs::metadata(&file).expect("a file");
        assert_eq!((about.len(), about.permissions().mode() & 0o777), (0, 0o600));
        for key in ["", "../codes", "/", &"x".repeat(1 << 16)] {
            assert!(!is_signed_in(&home, key, now));
            assert_eq!(sign_in(&home, key, now).expect("looked up"), None);
        }
        // A symlink in the place of a session is none.
        let key = "planted";
        fs::create_dir_all(sessions(&home).directory).expect("made");
        symlink(&file, sessions(&home).file(key)).expect("a symlink");
        assert!(!is_signed_in(&home, key, now));
    }
}
