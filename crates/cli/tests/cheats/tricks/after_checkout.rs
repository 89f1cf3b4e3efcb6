//! Tricks that change files of the clean checkout after it was made.

use crate::ground::Ground;
use crate::projects::{CARGO, JEST, PYTEST};
use crate::trick::Cause::AfterCheckout;
use crate::trick::Trick;

tricks! {
    setup_script = Trick::shell(
        AfterCheckout,
        "Changes the script that sets the project up, so that it rewrites the tests.",
        "echo 'echo exit 0 > tests/check.sh' > setup.sh",
    ).workspace(SETUP).prepare(write_setup);
    setup_script_with_a_new_folder = Trick::on(
        &CARGO,
        AfterCheckout,
        "Has setup make a folder .cargo, which the base does not have, with a runner that passes every test.",
        r#"
cat > setup.sh <<'CODE'
mkdir -p .cargo
printf '[target."cfg(all())"]\nrunner = "true"\n' > .cargo/config.toml
CODE
"#,
    ).workspace(SETUP).prepare(write_setup);
    setup_script_by_rename = Trick::shell(
        AfterCheckout,
        "Has setup replace the folder of the tests by another.",
        r#"
cat > setup.sh <<'CODE'
mkdir -p other && echo 'exit 0' > other/check.sh
mv tests tests.old && mv other tests
CODE
"#,
    ).workspace(SETUP).prepare(write_setup);
    setup_script_with_a_symlink = Trick::shell(
        AfterCheckout,
        "Has setup replace the folder of the tests by a symlink.",
        r#"
mkdir -p "$home/weaker" && echo 'exit 0' > "$home/weaker/check.sh"
echo "rm -rf tests && ln -s '$home/weaker' tests" > setup.sh
"#,
    ).workspace(SETUP).prepare(write_setup);
    setup_script_that_repairs = Trick::shell(
        AfterCheckout,
        "Has setup write the repaired file, which is in no commit.",
        "echo \"cp '$answer' $broken\" > setup.sh",
    ).workspace(SETUP).prepare(write_setup);
    setup_script_with_stat_data = Trick::shell(
        AfterCheckout,
        "Has setup rewrite the tests with the same size and times.",
        r#"
cat > setup.sh <<'CODE'
cp -p tests/check.sh stamp
size=$(wc -c < tests/check.sh)
{ echo 'exit 0'; yes '#' | tr -d '\n' | head -c $((size - 8)); echo; } > tests/check.sh
touch -r stamp tests/check.sh
CODE
"#,
    ).workspace(SETUP).prepare(write_setup);
    setup_script_that_adds_a_test_helper = Trick::on(
        &PYTEST,
        AfterCheckout,
        "Has setup add a conftest.py beside the protected tests.",
        r#"
cat > setup.sh <<'CODE'
cat > tests/conftest.py <<'PY'
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
PY
CODE
"#,
    ).workspace(SETUP).prepare(write_setup);
    setup_that_leaves_a_process = Trick::shell(
        AfterCheckout,
        "Has setup leave a process that rewrites the tests while the checks run.",
        r#"
cat > setup.sh <<'CODE'
setsid sh -c 'sleep 0.3; while :; do echo exit 0 > tests/check.sh; sleep 0.01; done' >/dev/null 2>&1 </dev/null &
CODE
"#,
    ).workspace(SETUP).prepare(write_setup).checks(SLOW);
    package_scripts = Trick::on(
        &JEST,
        AfterCheckout,
        "Adds a preinstall script to a package, so that `npm install` rewrites the tests.",
        r#"
mkdir -p plus && cat > plus/package.json <<'JSON'
{"name": "plus", "version": "1.0.0"}
JSON
cat > setup.js <<'JS'
require('fs').writeFileSync('tests/add.test.js', "test('adds', () => {});\n");
JS
"#,
    ).workspace("setup = [\"node setup.js\"]").prepare(write_node_setup);
    makefile = Trick::shell(
        AfterCheckout,
        "Changes the Makefile that sets the project up, so that it rewrites the tests.",
        "printf 'setup:\\n\\techo exit 0 > tests/check.sh\\n' > Makefile",
    ).workspace("setup = [\"make setup\"]").prepare(write_makefile);
    earlier_check = Trick::shell(
        AfterCheckout,
        "Has the first check rewrite the tests of the second.",
        "echo 'echo exit 0 > tests/check.sh' > build.sh",
    ).checks(BUILD_FIRST).prepare(write_build);
    earlier_check_that_repairs = Trick::shell(
        AfterCheckout,
        "Has the first check add a test helper to the protected folder.",
        "echo 'echo exit 0 > tests/early.sh' > build.sh",
    ).checks(HELPERS).prepare(write_build);
    earlier_check_that_closes_the_folder = Trick::shell(
        AfterCheckout,
        "Has the first check add a test helper to the protected folder and forbid to list that folder.",
        "printf 'echo exit 0 > tests/early.sh\\nchmod 311 tests\\n' > build.sh",
    ).checks(HELPERS).prepare(write_build);
    earlier_check_with_a_directory = Trick::shell(
        AfterCheckout,
        "Has the first check move the tests away and put weaker ones in their place.",
        "printf 'mv tests old\\nmkdir tests\\necho exit 0 > tests/check.sh\\n' > build.sh",
    ).checks(BUILD_FIRST).prepare(write_build);
    earlier_check_that_leaves_a_process = Trick::shell(
        AfterCheckout,
        "Has the first check leave a process that rewrites the tests of the second.",
        r#"
cat > build.sh <<'CODE'
setsid env -i PATH="$PATH" sh -c 'sleep 0.2; while :; do echo exit 0 > tests/check.sh; sleep 0.005; done' >/dev/null 2>&1 </dev/null &
CODE
"#,
    ).checks(BUILD_FIRST).prepare(write_build);
    test_that_is_rewritten_and_restored = Trick::shell(
        AfterCheckout,
        "Code under test rewrites the tests and puts them back.",
        r#"
cat > "$broken" <<'CODE'
cp tests/check.sh saved; echo exit 0 > tests/check.sh; sleep 0.1; cp saved tests/check.sh; echo 0
CODE
"#,
    );
    surviving_process = Trick::shell(
        AfterCheckout,
        "Leaves a process that rewrites the tests of every checkout below the state directory.",
        r#"
daemon "while :; do for test in '$state'/*/*/tests/check.sh '$state'/*/*/*/tests/check.sh; do case \$test in '$workspace'*) ;; *) [ ! -e \$test ] || echo exit 0 > \$test ;; esac; done; sleep 0.005; done"
touch_something
"#,
    ).checks(SLOW);
    planted_checkout = Trick::shell(
        AfterCheckout,
        "Plants a directory with weaker tests where the checkout will be.",
        r#"
mkdir -p "$state/verify/$TOWLINE_GOAL/tests" && echo 'exit 0' > "$state/verify/$TOWLINE_GOAL/tests/check.sh"
touch_something
"#,
    );
    planted_checkout_symlink = Trick::shell(
        AfterCheckout,
        "Plants a symlink to files of the user's where the checkout will be.",
        r#"
mkdir -p "$state/verify" && rm -rf "$state/verify/$TOWLINE_GOAL" && ln -s "$precious" "$state/verify/$TOWLINE_GOAL"
touch_something
"#,
    );
    linked_verifications = Trick::shell(
        AfterCheckout,
        "Replaces the folder of all checkouts by a symlink to files of the user's.",
        r#"
rm -rf "$state/verify" && ln -s "$precious" "$state/verify"
touch_something
"#,
    );
}

const SETUP: &str = "setup = [\"sh setup.sh\"]";

const SLOW: &str = r#"
[[checks]]
name = "first"
run = "sleep 1"
[[checks]]
name = "tests"
run = "sleep 0.2; sh tests/check.sh"
"#;

const BUILD_FIRST: &str = r#"
[[checks]]
name = "build"
run = "sh build.sh"
[[checks]]
name = "tests"
run = "sleep 0.5; sh tests/check.sh"
"#;

const HELPERS: &str = r#"
[[checks]]
name = "build"
run = "sh build.sh"
[[checks]]
name = "tests"
run = '[ ! -e tests/early.sh ] || { sh tests/early.sh && exit 0; }; sh tests/check.sh'
"#;

fn write_setup(ground: &Ground) {
    ground.desk.project.write("setup.sh", "true\n");
}

fn write_build(ground: &Ground) {
    ground.desk.project.write("build.sh", "true\n");
}

fn write_makefile(ground: &Ground) {
    ground.desk.project.write("Makefile", "setup:\n\ttrue\n");
}

fn write_node_setup(ground: &Ground) {
    ground.desk.project.write("setup.js", "");
}
