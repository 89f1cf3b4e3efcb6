//! The projects that tricks attack. Each has one broken file, tests that are protected, and the repair that is the work.

use std::path::PathBuf;

use towline_testkit::agents::{jest_folder, pytest_folder};

/// A project with one broken file.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) name: &'static str,
    /// The file that the goal is about.
    pub(crate) broken: &'static str,
    /// What must be in that file for the work to be done, byte for byte.
    pub(crate) repaired: &'static str,
    /// All files of the base, the broken one included.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// The command of its check.
    pub(crate) check: &'static str,
    /// The files of its hidden check, which runs `sums.sh`: other sums than in the visible test, compared outside of the process
    /// that adds, as `docs/writing-checks.md` recommends.
    pub(crate) acceptance: &'static [(&'static str, &'static str)],
    /// What is protected; nothing means what `towline init` writes.
    pub(crate) protect: Option<&'static [&'static str]>,
    /// Where its test runner is installed, for the beginning of the `PATH`.
    pub(crate) tools: Option<fn() -> PathBuf>,
}

/// A function in a shell script.
pub(crate) static SHELL: Project = Project {
    name: "shell",
    broken: "src/add.sh",
    repaired: "echo $(($1 + $2))\n",
    files: &[
        ("src/add.sh", "echo 0\n"),
        (
            "tests/check.sh",
            "sum=$(sh src/add.sh 2 3)\n[ \"$sum\" = 5 ] || { echo \"2 + 3 is not '$sum'\"; exit 1; }\n",
        ),
        ("data/table.txt", "one\ntwo\n"),
        (".gitignore", "/out/\n/.env\n/node_modules/\n"),
    ],
    check: "sh tests/check.sh",
    acceptance: &[(
        "sums.sh",
        "[ \"$(sh src/add.sh 7 8)\" = 15 ] || exit 1\n[ \"$(sh src/add.sh 40 -2)\" = 38 ] || exit 1\n",
    )],
    protect: Some(&["tests/**"]),
    tools: None,
};

/// A module with a test by pytest.
pub(crate) static PYTEST: Project = Project {
    name: "pytest",
    broken: "adder.py",
    repaired: "def add(a, b):\n    return a + b\n",
    files: &[
        ("adder.py", "def add(a, b):\n    return 0\n"),
        (
            "tests/test_adder.py",
            "from adder import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n    assert add(-1, 1) == 0\n",
        ),
        (".gitignore", "__pycache__/\n.pytest_cache/\n"),
    ],
    check: "python3 -m pytest -q tests",
    acceptance: &[(
        "sums.sh",
        "[ \"$(python3 -c 'from adder import add; print(add(7, 8), add(40, -2))')\" = '15 38' ]\n",
    )],
    protect: None,
    tools: Some(pytest_folder),
};

/// A crate with an integration test.
pub(crate) static CARGO: Project = Project {
    name: "cargo",
    broken: "src/lib.rs",
    repaired: "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n",
    files: &[
        ("src/lib.rs", "pub fn add(_a: i32, _b: i32) -> i32 {\n    0\n}\n"),
        ("tests/adds.rs", "#[test]\nfn adds() {\n    assert_eq!(adder::add(2, 3), 5);\n}\n"),
        (
            "Cargo.toml",
            "[package]\nname = \"adder\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
        ),
        ("Cargo.lock", "version = 3\n\n[[package]]\nname = \"adder\"\nversion = \"0.1.0\"\n"),
        (".gitignore", "/target\n"),
    ],
    check: "cargo test --quiet --offline --test adds",
    acceptance: &[
        (
            "sums.sh",
            "mkdir -p examples && cp ~/acceptance/sums.rs examples/ || exit 1\n\
             [ \"$(cargo run --quiet --offline --example sums)\" = '15 38' ]\n",
        ),
        ("sums.rs", "fn main() {\n    println!(\"{} {}\", adder::add(7, 8), adder::add(40, -2));\n}\n"),
    ],
    protect: None,
    tools: None,
};

/// A module with a test by jest.
pub(crate) static JEST: Project = Project {
    name: "jest",
    broken: "add.js",
    repaired: "module.exports = (a, b) => a + b;\n",
    files: &[
        ("add.js", "module.exports = () => 0;\n"),
        (
            "tests/add.test.js",
            "const add = require('../add');\n\ntest('adds', () => {\n  expect(add(2, 3)).toBe(5);\n});\n",
        ),
        (
            "package.json",
            "{\n  \"name\": \"adder\",\n  \"scripts\": { \"test\": \"jest --ci\" },\n  \"devDependencies\": { \"jest\": \"29.7.0\" }\n}\n",
        ),
        (".gitignore", "/node_modules/\n"),
    ],
    check: "npm test --silent",
    acceptance: &[(
        "sums.sh",
        "[ \"$(node -e \"const add = require('./add'); console.log(add(7, 8), add(40, -2))\")\" = '15 38' ]\n",
    )],
    protect: None,
    tools: Some(jest_folder),
};

/// A package with a test in the language's own way.
pub(crate) static GO: Project = Project {
    name: "go",
    broken: "add.go",
    repaired: "package adder\n\nfunc Add(a, b int) int { return a + b }\n",
    files: &[
        ("add.go", "package adder\n\nfunc Add(a, b int) int { return 0 }\n"),
        (
            "add_test.go",
            "package adder\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(2, 3) != 5 {\n\t\tt.Fatal(\"2 + 3\")\n\t}\n}\n",
        ),
        ("go.mod", "module example.org/adder\n\ngo 1.19\n"),
    ],
    check: "go test ./...",
    acceptance: &[
        (
            "sums.sh",
            "mkdir -p sums && cp ~/acceptance/sums.go sums/main.go || exit 1\n[ \"$(go run ./sums)\" = '15 38' ]\n",
        ),
        (
            "sums.go",
            "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.org/adder\"\n)\n\n\
             func main() {\n\tfmt.Println(adder.Add(7, 8), adder.Add(40, -2))\n}\n",
        ),
    ],
    protect: None,
    tools: None,
};

/// All of them.
pub(crate) static ALL: [&Project; 5] = [&SHELL, &PYTEST, &CARGO, &JEST, &GO];
