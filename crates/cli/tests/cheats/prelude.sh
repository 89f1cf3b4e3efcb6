cat > /dev/null
workspace=$PWD
gitdir=$(git rev-parse --absolute-git-dir 2>/dev/null)
common=$(cd "$(git rev-parse --git-common-dir 2>/dev/null)" && pwd)

# Does the honest work.
work() { cp "$answer" "$broken"; }

# Changes something, so that there is a candidate.
touch_something() { echo 'touched' >> README.md; }

commit() { git add -A && git -c user.name=Agent -c user.email=agent@example.org commit -q --no-verify -m "$1"; }

# Runs a script in a session of its own, without environment.
daemon() { setsid env -i PATH="$PATH" sh -c "$1" "$sleeper" </dev/null >/dev/null 2>&1 & }

# Writes an object whose bytes (standard input) do not match its id: forge OBJECTS TYPE ID
forge() {
    file="$1/$(printf %s "$3" | cut -c1-2)/$(printf %s "$3" | cut -c3-)"
    mkdir -p "${file%/*}" && rm -f "$file"
    python3 -c 'import sys, zlib
body = sys.stdin.buffer.read()
open(sys.argv[1], "wb").write(zlib.compress(sys.argv[2].encode() + b" %d\0" % len(body) + body))' "$file" "$2"
}

# Writes a tree that git itself would not write, and prints its id: tree MODE NAME ID ...
tree() {
    python3 -c 'import sys
words = sys.argv[1:]
for mode, name, id in zip(words[::3], words[1::3], words[2::3]):
    sys.stdout.buffer.write(mode.encode() + b" " + name.encode() + b"\0" + bytes.fromhex(id))' "$@" |
        git hash-object -t tree --literally -w --stdin
}

# A shell function for code under test that prints the pids of the Towline processes above it, nearest first.
supervisors_code='supervisors() {
    pid=$$
    while [ "$pid" -gt 1 ]; do
        case "$(readlink "/proc/$pid/exe")" in '"$towline"') echo "$pid" ;; esac
        pid=$(sed "s/.*) . //" "/proc/$pid/stat" | cut -d" " -f1)
    done
}'

# An exit record of a program that ended well.
exit_record='{"code":0,"signal":null,"spawn_error":null,"started_at_ms":1,"ended_at_ms":2,"stopped":null,"leftovers_killed":0,"stdout_bytes":0,"stderr_bytes":0}'

# The ids of the user's other goals.
others() { TOWLINE_HOME="$state" "$towline" ls --json | sed -n 's/.*"id": "\(.*\)".*/\1/p' | grep -v "$TOWLINE_GOAL"; }

