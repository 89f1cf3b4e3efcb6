//! `cargo xtask setup` and the command line, with an npm and a Python that only pretend.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{Machine, PRETENDING_NPM, error_of};

/// Makes a virtual environment whose Python writes down how it was asked to install, and does.
const PRETENDING_PYTHON: &str = r#"#!/bin/sh
[ "$1 $2 $3" = "-m venv --clear" ] || exit 0
mkdir -p "$4/bin"
printf '#!/bin/sh\necho "$*" >> "%s/pip.log"\n: > "%s/bin/pytest"\n: > "%s/bin/schemathesis"\n' "$4" "$4" "$4" > "$4/bin/python"
chmod 755 "$4/bin/python"
"#;

/// Writes down what it was asked to do, and installs every package as a program of the same name; Go's has another.
const PRETENDING_APT: &str = r#"#!/bin/sh
bin=${0%/*}
echo "$DEBIAN_FRONTEND $*" >> "$bin/../apt.log"
[ "$1" = install ] || exit 0
shift 3
for package; do [ "$package" != golang-go ] || package=go; printf '#!/bin/sh\n' > "$bin/$package"; chmod 755 "$bin/$package"; done
"#;

impl Machine {
    /// The same without these programs.
    fn without(self, programs: &[&str]) -> Self {
        for program in programs {
            fs::remove_file(self.folder.join("bin").join(program)).expect("removed");
        }
        self
    }

    fn agents(&self) -> PathBuf {
        self.folder.join("target/agents")
    }

    fn jest(&self) -> PathBuf {
        self.folder.join("target/jest")
    }

    fn python(&self) -> PathBuf {
        self.folder.join("target/python")
    }

    fn clients(&self) -> PathBuf {
        self.folder.join("target/clients")
    }

    /// What npm was asked to do, apart from reporting its version.
    fn installs(&self) -> Vec<String> {
        let log = fs::read_to_string(self.agents().join("npm.log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

#[test]
fn agents_are_installed_once_and_again_when_the_lock_or_the_binary_changes() {
    let machine = Machine::new("installs").with_npm(PRETENDING_NPM).with("python3", PRETENDING_PYTHON);
    let install = "ci --no-audit --no-fund --ignore-scripts";
    let setup = || {
        let output = machine.xtask(&["setup"]);
        assert!(output.status.success(), "{output:?}");
        machine.installs().len()
    };

    assert_eq!([setup(), setup()], [1, 1]);
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents");
    for file in ["package.json", "package-lock.json"] {
        let read = |folder: &Path| fs::read(folder.join(file)).expect("read");
        assert_eq!(read(&machine.agents()), read(&committed), "{file}");
    }

    fs::write(machine.agents().join("installed-package-lock.json"), "another lock").expect("written");
    assert_eq!([setup(), setup()], [2, 2]);
    fs::remove_dir_all(machine.agents().join("node_modules")).expect("removed");
    assert_eq!([setup(), setup()], [3, 3]);
    fs::remove_file(machine.agents().join("node_modules/@google/gemini-cli/bundle/gemini.js"))
        .expect("removed");
    assert_eq!([setup(), setup()], [4, 4]);
    assert_eq!(machine.installs(), [install; 4]);
}

#[test]
fn jest_is_installed_beside_the_agents_and_again_when_it_is_gone() {
    let machine = Machine::new("jest").with_npm(PRETENDING_NPM).with("python3", PRETENDING_PYTHON);
    let setup = || {
        let output = machine.xtask(&["setup"]);
        assert!(output.status.success(), "{output:?}");
        fs::read_to_string(machine.jest().join("npm.log")).expect("a log").lines().count()
    };
    assert_eq!([setup(), setup()], [1, 1]);
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents/jest/package-lock.json");
    let installed = machine.jest().join("package-lock.json");
    assert_eq!(fs::read(installed).expect("read"), fs::read(committed).expect("read"));
    fs::remove_file(machine.jest().join("node_modules/jest/bin/jest.js")).expect("removed");
    assert_eq!([setup(), setup()], [2, 2]);
    assert_eq!(machine.installs().len(), 1, "the agents are installed once");
}

#[test]
fn missing_programs_of_the_system_are_installed_by_root() {
    let machine = Machine::new("packages").without(&["git-lfs", "go"]);
    let machine = machine.with("apt-get", PRETENDING_APT).with("id", "#!/bin/sh\necho 0\n");
    let machine = machine.with_npm(PRETENDING_NPM).with("python3", PRETENDING_PYTHON);
    for _ in 0..2 {
        let output = machine.xtask(&["setup"]);
        assert!(output.status.success(), "{output:?}");
    }
    let asked = fs::read_to_string(machine.folder.join("apt.log")).expect("a log");
    let install = "noninteractive install --yes --no-install-recommends git-lfs golang-go";
    assert_eq!(asked, format!("noninteractive update\n{install}\n"));
}

#[test]
fn a_user_who_may_not_install_programs_is_given_the_command() {
    let machine = Machine::new("not-root").without(&["git-lfs", "go"]);
    let machine = machine.with("apt-get", PRETENDING_APT).with("id", "#!/bin/sh\necho 1000\n");
    let error = error_of(&machine.xtask(&["setup"]));
    let command = "error: the tests need git-lfs, go, which this machine does not have: \
                   run `sudo apt-get install git-lfs golang-go`\n";
    assert_eq!(error, command);
    assert!(!machine.folder.join("apt.log").exists());
}

#[test]
fn a_package_without_its_program_is_an_error() {
    let machine = Machine::new("empty-package").without(&["make"]);
    let machine = machine.with("apt-get", "#!/bin/sh\n").with("id", "#!/bin/sh\necho 0\n");
    let error = error_of(&machine.xtask(&["setup"]));
    assert!(error.ends_with("error: apt-get installed make, but there is no make\n"), "{error}");
}

#[test]
fn a_machine_without_npm_gets_the_command_that_installs_it() {
    let error = error_of(&Machine::new("no-npm").xtask(&["setup"]));
    assert_eq!(error, "error: `npm` was not found, and the tests need it: install Node 20+ and npm\n");
}

#[test]
fn pytest_is_installed_once_and_again_when_the_requirements_or_the_program_change() {
    let machine = Machine::new("pytest").with_npm(PRETENDING_NPM).with("python3", PRETENDING_PYTHON);
    let setup = || {
        let output = machine.xtask(&["setup"]);
        assert!(output.status.success(), "{output:?}");
        fs::read_to_string(machine.python().join("pip.log")).expect("a log").lines().count()
    };
    assert_eq!([setup(), setup()], [1, 1]);
    let asked = fs::read_to_string(machine.python().join("pip.log")).expect("a log");
    assert!(asked.contains("--require-hashes") && asked.contains("agents/requirements.txt"), "{asked}");
    fs::write(machine.python().join("installed-requirements.txt"), "others").expect("written");
    assert_eq!([setup(), setup()], [2, 2]);
    fs::remove_file(machine.python().join("bin/pytest")).expect("removed");
    assert_eq!([setup(), setup()], [3, 3]);
}

#[test]
fn clients_are_installed_once_and_again_when_the_requirements_or_a_program_change() {
    let machine = Machine::new("clients").with_npm(PRETENDING_NPM).with("python3", PRETENDING_PYTHON);
    let setup = || {
        let output = machine.xtask(&["setup"]);
        assert!(output.status.success(), "{output:?}");
        fs::read_to_string(machine.clients().join("pip.log")).expect("a log").lines().count()
    };
    assert_eq!([setup(), setup()], [1, 1]);
    let asked = fs::read_to_string(machine.clients().join("pip.log")).expect("a log");
    assert!(
        asked.contains("--require-hashes") && asked.contains("agents/clients/requirements.txt"),
        "{asked}"
    );
    fs::write(machine.clients().join("installed-requirements.txt"), "others").expect("written");
    assert_eq!([setup(), setup()], [2, 2]);
    fs::remove_file(machine.clients().join("bin/schemathesis")).expect("removed");
    assert_eq!([setup(), setup()], [3, 3]);
    let pytest = fs::read_to_string(machine.python().join("pip.log")).expect("a log");
    assert_eq!(pytest.lines().count(), 1, "pytest is installed once");
}

#[test]
fn a_machine_without_python_gets_the_command_that_installs_it() {
    let error = error_of(&Machine::new("no-python").with_npm(PRETENDING_NPM).xtask(&["setup"]));
    let expected = "error: `python3` was not found, and the tests need it: install Python 3.11+ with venv \
                (Debian: apt-get install python3-venv)\n";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn an_install_that_fails_is_tried_again_the_next_time() {
    let machine = Machine::new("failing").with_npm("#!/bin/sh\n[ \"$1\" != ci ] || exit 7\n");
    for _ in 0..2 {
        let error = error_of(&machine.xtask(&["setup"]));
        assert!(error.contains("`npm ci --no-audit --no-fund --ignore-scripts` in "), "{error}");
        assert!(error.contains("failed (exit status: 7)"), "{error}");
    }
}

#[test]
fn a_platform_without_an_agent_is_an_error_that_names_all_that_are_missing() {
    let nothing = Machine::new("no-binary").with_npm("#!/bin/sh\nexit 0\n");
    let error = error_of(&nothing.xtask(&["setup"]));
    assert!(
        error.contains(
            "no Claude Code, no older Claude Code, no Codex, no Gemini CLI, no opencode for this platform"
        ),
        "{error}"
    );

    let without_opencode = PRETENDING_NPM.replace("bin/opencode", "bin/other");
    let one = Machine::new("one-missing").with_npm(&without_opencode);
    let error = error_of(&one.xtask(&["setup"]));
    assert!(error.contains("npm installed no opencode for this platform"), "{error}");
}

#[test]
fn the_command_line_teaches() {
    let machine = Machine::new("teaches");
    for arguments in [&[][..], &["help"], &["--help"], &["test", "--help"]] {
        let output = machine.xtask(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("cargo xtask test -- -p towline-core"),
            "{output:?}"
        );
    }
    let cases = [
        (&["tets"][..], "error: `tets` is no command of xtask; `cargo xtask help` shows them\n"),
        (
            &["test", "-p", "towline-core"],
            "error: `cargo xtask test` has no options; for the test runner, write `cargo xtask test -- -p towline-core`\n",
        ),
        (&["agents", "now"], "error: `cargo xtask agents` takes nothing but `--run`, and got `now`\n"),
        (&["setup", "now"], "error: `cargo xtask setup` takes no arguments, and got `now`\n"),
    ];
    for (arguments, error) in cases {
        assert_eq!(error_of(&machine.xtask(arguments)), error);
    }
}
