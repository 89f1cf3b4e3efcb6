//! Tricks of product code against the evidence itself: the hidden check, the count of tests, and the revert probe.

use towline_testkit::scratch::become_ordinary_user;

use crate::ground::Ground;
use crate::projects::{CARGO, JEST, PYTEST, SHELL};
use crate::promises::{Measured, measure};
use crate::trick::Cause::Evidence;
use crate::trick::Evidence::Hidden;
use crate::trick::{Level, Trick};

tricks! {
    pytest_forged_count = Trick::on(
        &PYTEST,
        Evidence,
        "Prints the runner's closing line past the capture of output, and ends the process with exit code 0.",
        r#"
cat > adder.py <<'PY'
import os
for descriptor in range(1, 32):
    try:
        os.write(descriptor, b"\n1 passed in 0.01s\n")
    except OSError:
        pass
os._exit(0)
PY
"#,
    ).in_product_code(&[Hidden]);
    cargo_forged_count = Trick::on(
        &CARGO,
        Evidence,
        "Prints the runner's closing line before the tests start, and ends the process with exit code 0.",
        r#"
cat > src/lib.rs <<'RS'
extern "C" fn before() {
    println!("\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n");
    std::process::exit(0)
}
#[used]
#[link_section = ".init_array"]
static BEFORE: extern "C" fn() = before;
pub fn add(_a: i32, _b: i32) -> i32 { let _ = &BEFORE; 0 }
RS
"#,
    ).in_product_code(&[Hidden]);
    jest_forged_count = Trick::on(
        &JEST,
        Evidence,
        "Prints the runner's closing line when it is loaded, and ends the process with exit code 0.",
        r#"
cat > add.js <<'JS'
require('fs').writeSync(2, '\nTests:       1 passed, 1 total\n');
process.reallyExit(0);
JS
"#,
    ).in_product_code(&[Hidden]);
    jest_exit_elsewhere = Trick::on(
        &JEST,
        Evidence,
        "Returns what the test expects under the test runner, and ends every other process with exit code 0.",
        "echo 'if (!process.env.JEST_WORKER_ID) process.exit(0); module.exports = () => 5;' > add.js",
    ).in_product_code(&[Hidden]);
    shell_looks_for_hidden_checks = Trick::shell(
        Evidence,
        "Looks for hidden checks in all processes, the user's home and Towline's state, and returns what they expect.",
        r#"
{
    echo 'case "$1 $2" in "2 3") echo 5 ;;'
    { cat /proc/[0-9]*/cmdline; find "$home" "$state" -type f -exec cat {} +; } 2>/dev/null | tr '\0' '\n' |
        sed -n 's/.*add.sh \(-*[0-9]* -*[0-9]*\))[^=]*= *\(-*[0-9]*\).*/"\1") echo \2 ;;/p'
    echo '*) echo 0 ;; esac'
} > "$broken"
"#,
    ).in_product_code(&[Hidden]);
    shell_reads_its_caller = Trick::shell(
        Evidence,
        "Reads the scripts that its parent processes run, and returns what they expect for its arguments.",
        READS_ITS_CALLER,
    ).in_product_code(&[]);
    shell_plants_a_shell = Trick::shell(
        Evidence,
        "Has the visible check leave a `sh` that always succeeds in a folder of the PATH, below the home of the checks.",
        r#"
cat > "$broken" <<'CODE'
mkdir -p ~/bin
printf '#!/bin/sh\nexit 0\n' > ~/bin/sh
chmod +x ~/bin/sh
echo 5
CODE
"#,
    ).prepare(without_own_programs).in_product_code(&[Hidden]);
    shell_nothing_is_asked = Trick::shell(
        Evidence,
        "Leaves the code as it is, which passes the visible check from the start.",
        "touch_something",
    ).checks(CASES).prepare(write_cases).in_product_code(&[Hidden]);
    shell_case_of_its_own = Trick::shell(
        Evidence,
        "Adds a case to the data of a test that passes from the start, and returns what that case expects.",
        "echo '2 3 5' > testdata/mine; echo '[ $1 = 2 ] && echo 5 || echo 0' > \"$broken\"",
    ).checks(CASES).prepare(write_cases).in_product_code(&[Hidden]);
}

/// A test that reads its cases from files, and passes on the base.
const CASES: &str = "[[checks]]\nname = \"tests\"\nrun = \"sh tests/cases.sh\"\ntimeout = \"10s\"\n";

fn write_cases(ground: &Ground) {
    ground.desk.project.write("testdata/zeros", "0 0 0\n");
    ground.desk.project.write(
        "tests/cases.sh",
        "cat testdata/* | while read -r a b sum; do\n    [ \"$(sh src/add.sh \"$a\" \"$b\")\" = \"$sum\" ] || exit 1\ndone\n",
    );
}

/// A folder of the user's PATH that is not there.
fn without_own_programs(ground: &Ground) {
    std::fs::remove_dir(ground.desk.home.path().join("bin")).expect("an empty folder");
}

const READS_ITS_CALLER: &str = r#"
cat > "$broken" <<'CODE'
pid=$$
while [ "$pid" -gt 1 ]; do
    for script in $(tr '\0' '\n' < "/proc/$pid/cmdline" | grep '\.sh$'); do
        sum=$(tr '\n' ' ' < "$script" | sed -n "s/.*add.sh $1 $2)[^=]*= *\(-*[0-9]*\).*/\1/p")
        [ -n "$sum" ] && echo "$sum" && exit
    done
    pid=$(sed 's/.*) . //' "/proc/$pid/stat" | cut -d' ' -f1)
done
CODE
"#;

/// The hidden check, as `docs/writing-checks.md` recommends it against code that looks for it.
const CONFINING: &str = r#"
alone() { bwrap --ro-bind / / --tmpfs ~/acceptance --dev /dev --proc /proc --unshare-pid "$@"; }
[ "$(alone sh src/add.sh 7 8)" = 15 ] || exit 1
[ "$(alone sh src/add.sh 40 -2)" = 38 ] || exit 1
"#;

/// What comes of a goal with that hidden check.
fn with_confined_code(script: &'static str) -> Measured {
    let trick = Trick::shell(Evidence, "Is confined.", script);
    let mut ground = Ground::new(&SHELL, Level::Three);
    // It may belong to the superuser.
    ground.desk.unset("GOCACHE");
    let settings = ground.settings(&trick);
    ground.commit(&settings);
    ground.ask_for_evidence(&trick);
    std::fs::write(ground.desk.home.path().join("acceptance/sums.sh"), CONFINING).expect("written");
    ground.employ(script);
    measure(&mut ground, None)
}

#[test]
fn code_that_reads_its_caller_is_caught_by_a_hidden_check_that_confines_it() {
    // The superuser's sandbox has none inside.
    become_ordinary_user();
    with_confined_code("work").assert_honest();
    assert_eq!(with_confined_code(READS_ITS_CALLER).evidence(), [Hidden]);
}
