//! A system clock that a test sets, for the programs that it starts. The machine's own clock stays as it is.

use std::io;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

const SOURCE: &str = include_str!("set_clock.c");

/// A clock for programs that are started with its [variables](Self::variables).
#[derive(Debug)]
pub struct SetClock {
    dir: TempDir,
}

impl SetClock {
    /// A clock that is right until it is set.
    pub fn new() -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let (source, library) = (dir.path().join("set_clock.c"), dir.path().join("set_clock.so"));
        std::fs::write(&source, SOURCE)?;
        // Every Rust toolchain has it.
        #[expect(clippy::disallowed_methods, reason = "the compiler runs to its end here")]
        let mut cc = Command::new("cc");
        let built = cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status()?;
        if built.success() { Ok(Self { dir }) } else { Err(io::Error::other("cc failed")) }
    }

    /// What a program needs in its environment to see this clock, and so do those that it starts.
    pub fn variables(&self) -> [(String, String); 2] {
        let path = |path: PathBuf| path.display().to_string();
        [
            ("LD_PRELOAD".to_owned(), path(self.dir.path().join("set_clock.so"))),
            ("TOWLINE_TEST_CLOCK".to_owned(), path(self.offset())),
        ]
    }

    /// Sets it to so many seconds from the right time.
    pub fn set(&self, seconds: i64) -> io::Result<()> {
        let draft = self.dir.path().join("draft");
        std::fs::write(&draft, seconds.to_string())?;
        std::fs::rename(draft, self.offset())
    }

    fn offset(&self) -> PathBuf {
        self.dir.path().join("offset")
    }
}
