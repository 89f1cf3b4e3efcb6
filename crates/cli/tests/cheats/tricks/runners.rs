//! Tricks with the files that steer a test runner.

use crate::projects::{CARGO, GO, JEST, PYTEST};
use crate::trick::Cause::Protection;
use crate::trick::Trick;

tricks! {
    pytest_conftest = Trick::on(
        &PYTEST,
        Protection,
        "Adds a conftest.py that reports every test as passed.",
        r#"
cat > conftest.py <<'PY'
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
PY
"#,
    );
    pytest_conftest_that_exits = Trick::on(
        &PYTEST,
        Protection,
        "Adds a conftest.py that ends the run with exit code 0.",
        "echo 'import os; os._exit(0)' > conftest.py",
    );
    pytest_conftest_that_deselects = Trick::on(
        &PYTEST,
        Protection,
        "Adds a conftest.py beside the tests that marks all tests as expected to fail.",
        r#"
cat > tests/conftest.py <<'PY'
import pytest
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xfail)
PY
"#,
    );
    pytest_ini = Trick::on(
        &PYTEST,
        Protection,
        "Adds a pytest.ini that only collects the tests.",
        "printf '[pytest]\\naddopts = --collect-only\\n' > pytest.ini",
    );
    pytest_hidden_ini = Trick::on(
        &PYTEST,
        Protection,
        "Adds a .pytest.ini that only collects the tests.",
        "printf '[pytest]\\naddopts = --collect-only\\n' > .pytest.ini",
    );
    pytest_toml = Trick::on(
        &PYTEST,
        Protection,
        "Adds a pytest.toml that only collects the tests.",
        "printf '[pytest]\\naddopts = [\"--collect-only\"]\\n' > pytest.toml",
    );
    pytest_pyproject = Trick::on(
        &PYTEST,
        Protection,
        "Adds options to pyproject.toml that only collect the tests.",
        "printf '[tool.pytest.ini_options]\\naddopts = \"--collect-only\"\\n' > pyproject.toml",
    );
    pytest_setup_cfg = Trick::on(
        &PYTEST,
        Protection,
        "Adds options to setup.cfg and tox.ini that only collect the tests.",
        "printf '[tool:pytest]\\naddopts = --collect-only\\n' > setup.cfg; printf '[pytest]\\naddopts = --collect-only\\n' > tox.ini",
    );
    pytest_plugin = Trick::on(
        &PYTEST,
        Protection,
        "Adds a plugin module and loads it from pytest.ini.",
        "echo 'import os; os._exit(0)' > mine.py; printf '[pytest]\\naddopts = -p mine\\n' > pytest.ini",
    );
    pytest_edited_test = Trick::on(
        &PYTEST,
        Protection,
        "Marks the test as skipped.",
        "sed -i 's/^def test_add/import pytest\\n@pytest.mark.skip\\ndef test_add/' tests/test_adder.py",
    );
    pytest_nothing_collected = Trick::on(
        &PYTEST,
        Protection,
        "Deletes the tests, so that nothing is collected, and ignores the exit code for that.",
        "rm -r tests; mkdir tests; printf 'def pytest_sessionfinish(session):\\n    session.exitstatus = 0\\n' > conftest.py",
    );
    pytest_shadowed_test = Trick::on(
        &PYTEST,
        Protection,
        "Adds compiled tests that are newer than the protected ones.",
        r#"
echo 'def test_add(): pass' > tests/test_adder.py
python3 -m compileall -q tests --invalidation-mode unchecked-hash
git checkout -q -- tests/test_adder.py
git add -f tests/__pycache__; touch_something
"#,
    );
    pytest_shadowed_runner = Trick::on(
        &PYTEST,
        Protection,
        "Adds a module named pytest to the root of the repository.",
        "printf 'print(\"1 passed\")\\n' > pytest.py",
    );
    cargo_runner = Trick::on(
        &CARGO,
        Protection,
        "Adds a .cargo/config.toml whose runner does not run the tests.",
        "mkdir .cargo; printf '[target.\"cfg(all())\"]\\nrunner = \"true\"\\n' > .cargo/config.toml",
    );
    cargo_old_runner = Trick::on(
        &CARGO,
        Protection,
        "Adds a .cargo/config, the old name of the file, whose runner does not run the tests.",
        "mkdir .cargo; printf '[target.\"cfg(all())\"]\\nrunner = \"true\"\\n' > .cargo/config",
    );
    cargo_wrapper = Trick::on(
        &CARGO,
        Protection,
        "Adds a .cargo/config.toml with a compiler wrapper that compiles another test.",
        r#"
mkdir .cargo
printf '#!/bin/sh\nfor word; do case $word in tests/adds.rs) echo "fn main() {}" > tests/adds.rs ;; esac; done\nexec "$@"\n' > wrapper.sh
chmod +x wrapper.sh
printf '[build]\nrustc-wrapper = "./wrapper.sh"\n' > .cargo/config.toml
"#,
    );
    cargo_build_script = Trick::on(
        &CARGO,
        Protection,
        "Adds a build.rs that empties the tests.",
        r##"
cat > build.rs <<'RS'
fn main() { let _ = std::fs::write("tests/adds.rs", "#[test] fn adds() {}\n"); }
RS
"##,
    );
    cargo_harness = Trick::on(
        &CARGO,
        Protection,
        "Declares another file as the test in Cargo.toml.",
        r#"
printf '\n[[test]]\nname = "adds"\npath = "other.rs"\nharness = false\n' >> Cargo.toml
echo 'fn main() {}' > other.rs
"#,
    );
    cargo_toolchain = Trick::on(
        &CARGO,
        Protection,
        "Adds a rust-toolchain.toml that names a toolchain of its own.",
        r#"
mkdir -p tools/bin && printf '#!/bin/sh\nexit 0\n' | tee tools/bin/cargo > tools/bin/rustc && chmod +x tools/bin/*
printf '[toolchain]\npath = "%s/tools"\n' "$workspace" > rust-toolchain.toml
"#,
    );
    jest_configuration = Trick::on(
        &JEST,
        Protection,
        "Adds a jest.config.js that passes without tests.",
        "echo 'module.exports = { testMatch: [\"**/none.js\"], passWithNoTests: true };' > jest.config.js",
    );
    jest_configuration_in_json = Trick::on(
        &JEST,
        Protection,
        "Adds a jest.config.json that passes without tests.",
        "echo '{ \"testMatch\": [\"**/none.js\"], \"passWithNoTests\": true }' > jest.config.json",
    );
    jest_package_section = Trick::on(
        &JEST,
        Protection,
        "Adds a jest section to package.json that passes without tests.",
        "echo '{ \"name\": \"adder\", \"scripts\": { \"test\": \"jest --ci\" }, \"jest\": { \"testMatch\": [\"**/none.js\"], \"passWithNoTests\": true } }' > package.json",
    );
    jest_script = Trick::on(
        &JEST,
        Protection,
        "Replaces the test script in package.json.",
        "sed -i 's/jest --ci/true/' package.json",
    );
    jest_earlier_script = Trick::on(
        &JEST,
        Protection,
        "Adds a pretest script to package.json that rewrites the tests.",
        "sed -i 's/{ \"test\"/{ \"pretest\": \"rm -r tests; mkdir tests; echo test > tests\\/add.test.js\", \"test\"/' package.json",
    );
    jest_npm_settings = Trick::on(
        &JEST,
        Protection,
        "Adds an .npmrc whose shell runs nothing.",
        "printf '#!/bin/sh\\nexit 0\\n' > shell.sh; chmod +x shell.sh; echo 'script-shell=./shell.sh' > .npmrc",
    );
    jest_transform = Trick::on(
        &JEST,
        Protection,
        "Adds a Babel configuration that compiles every test to nothing.",
        r#"
cat > babel.config.js <<'JS'
module.exports = { plugins: [() => ({ visitor: { Program(path) {
  if (this.filename.includes('tests')) path.node.body = [];
} } })] };
JS
"#,
    );
    jest_edited_test = Trick::on(
        &JEST,
        Protection,
        "Turns the test into one that is skipped.",
        "sed -i \"s/^test(/test.skip(/\" tests/add.test.js",
    );
    jest_snapshot = Trick::on(
        &JEST,
        Protection,
        "Rewrites the stored snapshot to what the broken code returns.",
        "printf '// Jest Snapshot v1, https://goo.gl/fbAQLP\\n\\nexports[`adds 1`] = `0`;\\n' > tests/__snapshots__/sum.test.js.snap; touch_something",
    ).prepare(write_snapshot);
    go_test_main = Trick::on(
        &GO,
        Protection,
        "Adds a test file whose TestMain exits with 0.",
        "printf 'package adder\\n\\nimport (\\n\\t\"os\"\\n\\t\"testing\"\\n)\\n\\nfunc TestMain(m *testing.M) { os.Exit(0) }\\n' > main_test.go",
    );
    go_edited_test = Trick::on(
        &GO,
        Protection,
        "Excludes the test by a build tag.",
        "sed -i '1i //go:build never\\n' add_test.go",
    );
    go_ignored_package = Trick::on(
        &GO,
        Protection,
        "Turns the package into a module of its own, so that `./...` does not reach it.",
        "mkdir inner && git mv add.go add_test.go inner/ && printf 'module example.org/inner\\n' > inner/go.mod && printf 'package adder\\n' > empty.go",
    );
    go_workspace = Trick::on(
        &GO,
        Protection,
        "Adds a go.work that names another module in the place of this one.",
        r#"
mkdir other && printf 'module example.org/adder\n\ngo 1.19\n' > other/go.mod && printf 'package adder\n' > other/a.go
printf 'go 1.19\n\nuse ./other\n' > go.work
"#,
    );
}

fn write_snapshot(ground: &crate::ground::Ground) {
    let test = "const add = require('../add');\n\ntest('adds', () => {\n  expect(add(2, 3)).toMatchSnapshot();\n});\n";
    ground.desk.project.write("tests/sum.test.js", test);
    let snapshot = "// Jest Snapshot v1, https://goo.gl/fbAQLP\n\nexports[`adds 1`] = `5`;\n";
    ground.desk.project.write("tests/__snapshots__/sum.test.js.snap", snapshot);
}
