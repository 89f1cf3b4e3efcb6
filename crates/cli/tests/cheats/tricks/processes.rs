//! Tricks with processes that survive, and with the processes that watch them.

use crate::trick::Cause::Processes;
use crate::trick::Trick;

tricks! {
    session_of_its_own = Trick::shell(
        Processes,
        "Leaves a process in a session of its own.",
        "work; setsid \"$sleeper\" 300 >/dev/null 2>&1 </dev/null &",
    );
    without_environment = Trick::shell(
        Processes,
        "Leaves a process in a session of its own, without environment and in another directory.",
        "work; cd /; setsid env -i \"$sleeper\" 300 >/dev/null 2>&1 </dev/null &",
    );
    twice_forked = Trick::shell(
        Processes,
        "Leaves a process whose parents have ended.",
        "work; (setsid sh -c \"(setsid env -i '$sleeper' 300 &) &\" >/dev/null 2>&1 </dev/null &)",
    );
    deaf_to_signals = Trick::shell(
        Processes,
        "Leaves processes that ignore all signals that can be ignored.",
        "work; daemon \"trap '' HUP INT TERM USR1 USR2 PIPE; '$sleeper' 300 & while :; do '$sleeper' 1; done\"",
    );
    respawning = Trick::shell(
        Processes,
        "Leaves a process that starts its successor before it is killed.",
        "work; echo \"'$sleeper' 0.02; setsid sh '$home/next' & exit\" > \"$home/next\"; daemon \"sh '$home/next'\"",
    );
    open_output = Trick::shell(
        Processes,
        "Leaves a process that holds its output open.",
        "work; setsid \"$sleeper\" 300 &",
    );
    reaper_of_its_own = Trick::shell(
        Processes,
        "Leaves a process that adopts its orphans, so that they do not come to the supervisor.",
        r#"
work
daemon "exec python3 -c 'import ctypes, os, subprocess, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
subprocess.Popen([\"sh\", \"-c\", \"setsid $sleeper 300 &\"])
time.sleep(300)'"
sleep 0.3
"#,
    );
    killed_supervisor = Trick::shell(
        Processes,
        "Kills its own supervisor and lives on.",
        r#"
work
eval "$supervisors_code"
trap '' HUP TERM INT
kill -KILL "$(supervisors | head -n 1)"
exec "$sleeper" 300
"#,
    );
    killed_supervisor_and_environment = Trick::shell(
        Processes,
        "Leaves a process without environment and kills its own supervisor.",
        r#"
work
cd /; setsid env -i "$sleeper" 300 >/dev/null 2>&1 </dev/null &
eval "$supervisors_code"
kill -KILL "$(supervisors | head -n 1)"
sleep 1
"#,
    );
    stopped_supervisor = Trick::shell(
        Processes,
        "Stops its own supervisor with SIGSTOP.",
        r#"
work
eval "$supervisors_code"
kill -STOP "$(supervisors | head -n 1)"
sleep 1
"#,
    );
    stopped_supervisor_again_and_again = Trick::shell(
        Processes,
        "Leaves a process that stops its supervisor whenever it continues.",
        r#"
work
eval "$supervisors_code"
supervisor=$(supervisors | head -n 1)
daemon "while kill -STOP $supervisor; do '$sleeper' 0.01; done; '$sleeper' 300"
sleep 1
"#,
    );
    stopped_itself = Trick::shell(
        Processes,
        "Stops itself with SIGSTOP.",
        "work; kill -STOP $$",
    );
    stopped_child = Trick::shell(
        Processes,
        "Leaves a stopped process.",
        "work; setsid env -i \"$sleeper\" 300 >/dev/null 2>&1 </dev/null & kill -STOP $!",
    );
    never_ends = Trick::shell(
        Processes,
        "Never ends and ignores signals.",
        "work; trap '' HUP INT TERM; while :; do \"$sleeper\" 1; done",
    );
    planted_pid = Trick::shell(
        Processes,
        "Writes the pid of one of the user's processes into every pid file.",
        r#"
work
started=$(sed 's/.*) //' "/proc/$bystander/stat" | cut -d' ' -f20)
boot=$(cat /proc/sys/kernel/random/boot_id)
find "$state" -name '*.pid' | while read -r file; do
    sed -i "s/\"pid\":[0-9]*/\"pid\":$bystander/; s/\"start[a-z_]*\":[0-9]*/\"start\":$started/; s/^[0-9]* [0-9]*/$bystander $started/; s/^[0-9]*$/$bystander/" "$file"
done
eval "$supervisors_code"
kill -KILL "$(supervisors | head -n 1)"
sleep 1
"#,
    );
    many = Trick::shell(
        Processes,
        "Leaves two hundred processes, each in a session of its own.",
        "work; i=0; while [ $i -lt 200 ]; do setsid env -i \"$sleeper\" 300 >/dev/null 2>&1 </dev/null & i=$((i + 1)); done",
    );
    blind_engine = Trick::shell(
        Processes,
        "Takes all descriptors from the engine while it kills its own supervisor, and gives them back later.",
        r#"
work
cat > "$home/blind.py" <<'PY'
import os, resource, signal, sys, time
supervisor, engine = map(int, sys.argv[1:])
before = resource.prlimit(engine, resource.RLIMIT_NOFILE)
resource.prlimit(engine, resource.RLIMIT_NOFILE, (3, before[1]))
os.kill(supervisor, signal.SIGKILL)
time.sleep(1)
resource.prlimit(engine, resource.RLIMIT_NOFILE, before)
time.sleep(300)
PY
eval "$supervisors_code"
daemon "exec python3 '$home/blind.py' $(supervisors | tr '\n' ' ')"
sleep 5
"#,
    );
    blind_engine_during_a_check = Trick::shell(
        Processes,
        "Code under test takes all descriptors from the engine, kills its own supervisor and lives on.",
        r#"
cat > "$home/blind.py" <<'PY'
import os, resource, signal, sys, time
supervisor, engine = map(int, sys.argv[1:])
before = resource.prlimit(engine, resource.RLIMIT_NOFILE)
resource.prlimit(engine, resource.RLIMIT_NOFILE, (3, before[1]))
os.kill(supervisor, signal.SIGKILL)
time.sleep(0.5)
resource.prlimit(engine, resource.RLIMIT_NOFILE, before)
time.sleep(300)
PY
{
    echo "$supervisors_code"
    echo "setsid env -i PATH=\"\$PATH\" python3 '$home/blind.py' \$(supervisors) >/dev/null 2>&1 </dev/null &"
    echo "sleep 3; echo 5"
} > "$broken"
"#,
    );
    blind_supervisor = Trick::shell(
        Processes,
        "Takes all descriptors from its own supervisor for good, and leaves a process.",
        r#"
work
eval "$supervisors_code"
python3 -c 'import resource, sys; resource.prlimit(int(sys.argv[1]), resource.RLIMIT_NOFILE, (7, 7))' "$(supervisors | head -n 1)"
daemon "trap '' HUP INT TERM; '$sleeper' 300"
"#,
    );
    setup_that_never_ends = Trick::shell(
        Processes,
        "Has setup leave a process without environment in the checkout.",
        "work; echo \"cd / && setsid env -i '$sleeper' 300 >/dev/null 2>&1 </dev/null &\" > setup.sh",
    ).workspace("setup = [\"sh setup.sh\"]").prepare(|ground| ground.desk.project.write("setup.sh", "true\n"));
    check_that_leaves_a_process = Trick::shell(
        Processes,
        "Code under test leaves a process without environment.",
        "printf 'cd / && setsid env -i \"%s\" 300 >/dev/null 2>&1 </dev/null &\\necho 0\\n' \"$sleeper\" > \"$broken\"",
    );
}
