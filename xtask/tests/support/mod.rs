//! A machine on which xtask runs, with programs that only pretend.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Installs a file where each agent's program would be, and writes down how it was asked to.
pub(crate) const PRETENDING_NPM: &str = r#"#!/bin/sh
case "$1" in ci | install) ;; *) exit 0 ;; esac
echo "$@" >> npm.log
for program in jest/bin/jest.js @anthropic-ai/claude-code-some-platform/claude \
    claude-code-older/node_modules/@anthropic-ai/claude-code-some-platform/claude \
    @openai/codex-some-platform/vendor/some-triple/bin/codex \
    @google/gemini-cli/bundle/gemini.js \
    opencode-some-platform/bin/opencode svelte-check/bin/svelte-check vite/bin/vite.js vitest/vitest.mjs \
    playwright-core/index.js axe-core/axe.min.js
do
    mkdir -p "node_modules/${program%/*}"
    : > "node_modules/$program"
done
"#;

/// The programs of the system that the tests start.
const SYSTEM: [&str; 7] = ["bwrap", "chromium", "curl", "git-lfs", "go", "jq", "make"];

/// A machine with the programs in `bin` and an empty target folder.
pub(crate) struct Machine {
    pub(crate) folder: PathBuf,
}

impl Machine {
    pub(crate) fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("bin")).expect("created");
        let machine = Self { folder };
        for program in ["sh", "git", "mkdir", "chmod"] {
            let path = std::env::var_os("PATH").expect("a PATH");
            let found =
                std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
            symlink(found.expect("the program is installed"), machine.folder.join("bin").join(program))
                .expect("linked");
        }
        SYSTEM.iter().fold(machine, |machine, program| machine.with(program, "#!/bin/sh\n"))
    }

    /// Written by a child: a file that is open for writing here may leak into the child of another test's thread,
    /// and starting it then fails with "text file busy".
    #[expect(clippy::disallowed_methods, reason = "the child that writes the script is started here")]
    pub(crate) fn with(self, program: &str, script: &str) -> Self {
        let write = r#"printf '%s' "$1" > "$2" && chmod 755 "$2""#;
        let path = self.folder.join("bin").join(program);
        let status =
            Command::new("sh").args(["-c", write, "sh", script]).arg(path).status().expect("sh starts");
        assert!(status.success(), "{status}");
        self
    }

    pub(crate) fn with_npm(self, script: &str) -> Self {
        self.with("npm", script)
    }

    #[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
    pub(crate) fn xtask(&self, arguments: &[&str]) -> Output {
        let toolchain = Path::new(env!("CARGO")).parent().expect("cargo is in a folder");
        let path = std::env::join_paths([self.folder.join("bin"), toolchain.to_path_buf()]).expect("a PATH");
        Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(arguments)
            .env("PATH", path)
            .env("CARGO", self.cargo())
            .env("CARGO_TARGET_DIR", self.folder.join("target"))
            .output()
            .expect("xtask starts")
    }

    /// The one that pretends, if there is one.
    fn cargo(&self) -> PathBuf {
        let pretending = self.folder.join("bin/cargo");
        if pretending.exists() { pretending } else { env!("CARGO").into() }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Left-overs are below the target folder and harm nobody.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn error_of(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}
