#!/bin/sh
# Makes state.tar.gz: a state directory as a release of Towline left it, with the repositories of its goals.
#
#   make.sh TOWLINE
#
# TOWLINE is the program of that release. Paths are stored as @ROOT@ and @TOWLINE@; whoever unpacks the archive puts real ones
# in their place. The database is stored as SQL. The goals have their phase as title.
set -eu
towline=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -m 700 "$root/home" "$root/config" "$root/config/towline" "$root/towline"

# An agent in the place of Claude Code. What it does follows from the prompt.
cat > "$root/agent" <<'AGENT'
#!/bin/sh
session=00000000-0000-4000-8000-000000000000
while [ $# -gt 0 ]; do
  case "$1" in
    --version) echo '2.1.197 (Claude Code)'; exit 0 ;;
    --session-id | --resume) session=$2; shift ;;
  esac
  shift
done
usage='{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}'
result() {
  printf '{"type":"result","subtype":"success","is_error":%s,"api_error_status":%s,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"result":"%s","stop_reason":"end_turn","session_id":"%s","total_cost_usd":0.001,"usage":%s,"modelUsage":{},"permission_denials":[],"terminal_reason":"completed"}\n' "$1" "$2" "$3" "$session" "$usage"
}
while IFS= read -r line; do
  case "$line" in
    *'"control_request"'*)
      request=$(printf '%s' "$line" | sed -n 's/.*"request_id": *"\([^"]*\)".*/\1/p')
      printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$request" ;;
    *'"role":"user"'*)
      printf '{"type":"system","subtype":"init","cwd":".","session_id":"%s","tools":["Bash"],"mcp_servers":[],"model":"scripted","permissionMode":"bypassPermissions","claude_code_version":"2.1.197"}\n' "$session"
      case "$line" in
        *blocked*) printf '{"question": "Which colour?"}' > "$TOWLINE_QUESTION_FILE"; result false null 'I have asked.' ;;
        *limited*)
          printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":4102444800,"rateLimitType":"five_hour","overageStatus":"rejected","isUsingOverage":false},"uuid":"00000000-0000-4000-8000-000000000001","session_id":"%s"}\n' "$session"
          result true 429 'Limit reached.' ;;
        *paused*) : > "$HOME/working"; sleep 60 ;;
        *failed* | *worktree*) echo half > half.txt; result false null 'Half of it.' ;;
        *merged*) echo merged > merged.txt; result false null 'Fixed.' ;;
        *) echo fixed > fix.txt; result false null 'Fixed.' ;;
      esac ;;
  esac
done
AGENT
chmod +x "$root/agent"
printf '[agents.claude]\ncommand = ["%s/agent"]\n' "$root" > "$root/config/towline/config.toml"

# A program in a directory, with the environment of the release alone. A file, so that `$!` is the program.
cat > "$root/in" <<IN
#!/bin/sh
cd "\$1"
shift
exec env -i PATH="$PATH" HOME="$root/home" TOWLINE_HOME="$root/towline" XDG_CONFIG_HOME="$root/config" \\
  GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 "\$@"
IN
chmod +x "$root/in"
git_in() { directory=$1; shift; "$root/in" "$directory" git -c user.name=Person -c user.email=person@example.org "$@"; }

for project in project folder; do
  mkdir "$root/$project"
  git_in "$root/$project" init -q -b main
  git_in "$root/$project" config user.name Person
  git_in "$root/$project" config user.email person@example.org
  echo text > "$root/$project/README.md"
  git_in "$root/$project" add -A
  git_in "$root/$project" commit -q -m begin
done

check='test -e fix.txt'
project=$root/project
"$root/in" "$project" "$towline" run done --check "$check" || exit 1
"$root/in" "$project" "$towline" run merged --check 'test -e merged.txt' || exit 1
"$root/in" "$project" "$towline" merge "$("$root/in" "$project" "$towline" ls -n 1 --json | sed -n 's/.*"id": *"\([^"]*\)".*/\1/p' | head -1)"
"$root/in" "$root/folder" "$towline" run 'in place' --in-place --check "$check" || exit 1
"$root/in" "$project" "$towline" run failed --check "$check" --budget attempts=2 || test $? = 3
"$root/in" "$project" "$towline" run worktree --check "$check" --budget attempts=1 || test $? = 3

phase() { "$root/in" "$project" "$towline" ls -n 1 --json | sed -n 's/.*"phase": *"\([^"]*\)".*/\1/p' | head -1; }
for goal in blocked limited; do
  "$root/in" "$project" "$towline" run "$goal" --check "$check" > /dev/null 2>&1 &
  engine=$!
  until [ "$(phase)" = "$goal" ]; do sleep 0.1; done
  kill -KILL "$engine"
  wait "$engine" || true
done
"$root/in" "$project" "$towline" run paused --check "$check" > /dev/null 2>&1 &
engine=$!
until [ -e "$root/home/working" ]; do sleep 0.1; done
kill -TERM "$engine"
wait "$engine" || test $? = 143

# One of them has the workspace of a still earlier version: a linked worktree of the user's repository.
python3 - "$root" <<'PYTHON'
import json, pathlib, shutil, sqlite3, subprocess, sys
root = pathlib.Path(sys.argv[1])
database = sqlite3.connect(root / "towline/towline.db")
goal, spec, state = database.execute("SELECT id, goal, state FROM goals WHERE title = 'worktree'").fetchone()
spec, state = json.loads(spec), json.loads(state)
workspace, branch = pathlib.Path(state["workspace"]["path"]), state["workspace"]["branch"]
def git(*arguments):
    subprocess.run(["git", "-C", root / "project", *arguments], check=True)
for ref in ("branch", "published"):
    git("update-ref", "-d", f"refs/towline/{goal}/{ref}")
git("branch", "-q", "-D", branch)
shutil.rmtree(workspace)
shutil.rmtree(workspace.with_name(f"{goal}.git"))
git("worktree", "add", "-q", "-b", branch, workspace, spec["workspace"]["base"])
(workspace / "half.txt").write_text("half\n")
(root / "project/.git/worktrees" / goal / "towline-ready").write_text(goal)
spec["workspace"]["mode"] = "worktree"
state["branch"] = None
database.execute("UPDATE goals SET goal = ?, state = ? WHERE id = ?", (json.dumps(spec), json.dumps(state), goal))
database.commit()
dump = "\n".join(database.iterdump())
database.close()
(root / "towline.sql").write_text(dump)
PYTHON
rm -f "$root"/towline/towline.db*
rm -rf "$root/towline/engines" "$root/home" "$root/config" "$root/agent" "$root/in"
find "$root" -name '*.sock' -delete
grep -rlIZ -e "$root" -e "$towline" "$root" | xargs -0 sed -i -e "s|$root|@ROOT@|g" -e "s|$towline|@TOWLINE@|g"
if grep -rl -e "$root" -e "$towline" "$root"; then
  echo 'these files hold paths of this machine' >&2
  exit 1
fi
tar --create --gzip --file "$here/state.tar.gz" --owner=0 --group=0 --numeric-owner --sort=name --mtime='2026-01-01' -C "$root" .
ls -l "$here/state.tar.gz"
