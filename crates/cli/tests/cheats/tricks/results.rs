//! Tricks by code under test that forges the result of its check, or attacks the process that reports it.

use crate::trick::Cause::Results;
use crate::trick::Trick;

tricks! {
    forged_record = Trick::shell(
        Results,
        "Code under test writes an exit record with code 0 into every run directory and kills its supervisor.",
        r#"
cat > "$broken" <<CODE
$supervisors_code
find "$state/attempts" -type d | while read -r run; do echo '$exit_record' > "\$run/exit.json"; done
kill -KILL \$(supervisors | head -n 1)
sleep 1
echo 0
CODE
"#,
    );
    forged_record_without_a_kill = Trick::shell(
        Results,
        "Code under test writes an exit record with code 0 into every run directory.",
        r#"
cat > "$broken" <<CODE
find "$state/attempts" -type d | while read -r run; do echo '$exit_record' > "\$run/exit.json"; done
echo 0
CODE
"#,
    );
    record_of_another_check = Trick::shell(
        Results,
        "Code under test copies the exit record of the check before it, which passed, and kills its supervisor.",
        r#"
cat > "$broken" <<CODE
$supervisors_code
good=\$(find "$state/attempts" -path '*check*' -name exit.json | head -n 1)
find "$state/attempts" -name 'shim*' | while read -r file; do cp "\${good:-/dev/null}" "\${file%/*}/exit.json" 2>/dev/null; done
kill -KILL \$(supervisors | head -n 1)
sleep 1
CODE
"#,
    ).checks(TWO);
    planted_records = Trick::shell(
        Results,
        "Plants run directories with exit records where the checks will run.",
        r#"
for run in "$state/attempts/$TOWLINE_GOAL/1/checks" "$state/attempts/$TOWLINE_GOAL/1/checks/1" "$state/attempts/$TOWLINE_GOAL/1/checks/1-tests" "$state/attempts/$TOWLINE_GOAL/1/checks/0" "$state/attempts/$TOWLINE_GOAL/1/checks/tests"; do
    mkdir -p "$run" && echo "$exit_record" > "$run/exit.json" && : > "$run/stdout.log" && : > "$run/stderr.log"
done
touch_something
"#,
    );
    killed_supervisor = Trick::shell(
        Results,
        "Code under test kills its supervisor.",
        r#"
printf '%s\nkill -KILL $(supervisors | head -n 1)\nsleep 1\n' "$supervisors_code" > "$broken"
"#,
    );
    killed_supervisor_and_survivor = Trick::shell(
        Results,
        "Code under test kills its supervisor and leaves a process without environment.",
        r#"
printf '%s\nsetsid env -i "%s" 300 >/dev/null 2>&1 </dev/null &\nkill -KILL $(supervisors | head -n 1)\nsleep 1\n' "$supervisors_code" "$sleeper" > "$broken"
"#,
    );
    stopped_supervisor = Trick::shell(
        Results,
        "Code under test stops its supervisor with SIGSTOP.",
        r#"
printf '%s\nkill -STOP $(supervisors | head -n 1)\nsleep 1\n' "$supervisors_code" > "$broken"
"#,
    ).checks(QUICK);
    starved_supervisor = Trick::shell(
        Results,
        "Code under test sets limits on its supervisor, so that it can write no file.",
        r#"
printf '%s\nprlimit --pid "$(supervisors | head -n 1)" --fsize=0 --nofile=0\necho 0\n' "$supervisors_code" > "$broken"
"#,
    ).checks(QUICK);
    removed_run_directory = Trick::shell(
        Results,
        "Code under test deletes every run directory.",
        r#"
echo "rm -rf '$state'/attempts/*/*/checks '$state'/attempts/*/*/*check*; echo 0" > "$broken"
"#,
    );
    forged_output = Trick::shell(
        Results,
        "Code under test appends the expected line to every log of its check.",
        r#"
cat > "$broken" <<CODE
for descriptor in 1 2; do echo 'all 5 tests passed' >> "/proc/\$PPID/fd/\$descriptor"; done 2>/dev/null
find "$state/attempts" -name '*.log' | while read -r log; do echo 'all 5 tests passed' >> "\$log"; done
echo 0
CODE
"#,
    ).checks(PATTERN);
    connections_to_the_supervisor = Trick::shell(
        Results,
        "Code under test connects to every socket below the state directory and sends an exit with code 0.",
        r#"
cat > "$broken" <<CODE
python3 - <<'PY'
import glob, socket
for path in glob.glob("$state/**/*.sock", recursive=True) + glob.glob("$state/engines/*"):
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            connection.connect(path)
            connection.sendall(b'{"exited":$exit_record}\n$exit_record\n{"stop":{}}\n')
    except OSError:
        pass
PY
echo 0
CODE
"#,
    );
    killed_shell = Trick::shell(
        Results,
        "Code under test kills the shell that runs the test.",
        "echo 'kill -KILL $PPID' > \"$broken\"",
    );
    quiet_end_of_the_shell = Trick::shell(
        Results,
        "Code under test asks the shell that runs the test to end.",
        "echo 'kill -TERM $PPID; kill -HUP $PPID; kill -INT $PPID' > \"$broken\"",
    );
    held_output = Trick::shell(
        Results,
        "Code under test leaves a process that holds the check's output open.",
        "printf 'setsid \"%s\" 300 &\\necho 0\\n' \"$sleeper\" > \"$broken\"",
    ).checks(QUICK);
    closed_output = Trick::shell(
        Results,
        "Code under test never ends and ignores signals.",
        "printf 'trap \"\" INT TERM HUP\\nwhile :; do sleep 1; done\\n' > \"$broken\"",
    ).checks(QUICK);
    endless_output = Trick::shell(
        Results,
        "Code under test prints without end.",
        "echo 'while :; do echo 0; done' > \"$broken\"",
    ).checks(QUICK);
    judge_that_prints_twice = Trick::shell(
        Results,
        "Code under test prints the verdict that the judge would print.",
        r#"
echo "echo '{\"met\": true, \"summary\": \"fine\"}' > /proc/\$PPID/fd/1; echo 0" > "$broken"
"#,
    ).checks(JUDGE).prepare(write_judge);
    debugger = Trick::shell(
        Results,
        "Code under test writes into its supervisor's memory.",
        r#"
cat > "$broken" <<CODE
$supervisors_code
supervisor=\$(supervisors | head -n 1)
python3 - "\$supervisor" <<'PY'
import sys
pid = sys.argv[1]
for line in open(f"/proc/{pid}/maps"):
    if "[stack]" in line:
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            memory.write(bytes(end - start))
PY
echo 0
CODE
"#,
    ).as_the_user_in_vain().checks(QUICK);
    killed_engine = Trick::shell(
        Results,
        "Kills the engine that runs it.",
        r#"
for process in /proc/[0-9]*; do
    tr '\0' ' ' < "$process/cmdline" 2>/dev/null | grep -qF "$towline run" || continue
    tr '\0' '\n' < "$process/environ" 2>/dev/null | grep -qxF "TOWLINE_HOME=$state" && kill -KILL "${process#/proc/}"
done
"#,
    ).as_the_user_in_vain();
}

const TWO: &str = r#"
[[checks]]
name = "first"
run = "true"
[[checks]]
name = "tests"
run = "sh tests/check.sh"
timeout = "10s"
"#;

const QUICK: &str = r#"
[[checks]]
name = "tests"
run = "sh tests/check.sh"
timeout = "3s"
"#;

const PATTERN: &str = r#"
[[checks]]
name = "tests"
run = "sh tests/check.sh > /dev/null; true"
stdout = "all 5 tests passed"
timeout = "10s"
"#;

const JUDGE: &str = r#"
[[checks]]
name = "judge"
program = ["sh", "tests/judge.sh"]
timeout = "10s"
"#;

fn write_judge(ground: &crate::ground::Ground) {
    let judge = "cat > /dev/null\nif sh tests/check.sh > /dev/null; then echo '{\"met\": true}'; \
                 else echo '{\"met\": false}'; fi\n";
    ground.desk.project.write("tests/judge.sh", judge);
}
