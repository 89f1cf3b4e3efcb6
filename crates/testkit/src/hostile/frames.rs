//! The part that all scripts share: arguments, and functions that print the frames of the real CLI.

/// The beginning of each script.
///
/// The session id is the one that the command line asks for. `answer_control` replies to a control request on the
/// line it is given. A turn's usage is 10 tokens in and 5 out.
pub(super) const PRELUDE: &str = r#"#!/bin/sh
session=00000000-0000-4000-8000-000000000000
while [ $# -gt 0 ]; do
  case "$1" in
    --version) echo '2.1.197 (Claude Code)'; exit 0 ;;
    --session-id | --resume) session=$2; shift ;;
  esac
  shift
done
usage='{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}'

init() {
  printf '{"type":"system","subtype":"init","cwd":"%s","session_id":"%s","tools":["Bash"],"mcp_servers":[],"model":"scripted","permissionMode":"bypassPermissions","claude_code_version":"2.1.197"}\n' "$PWD" "$session"
}

assistant() {
  printf '{"type":"assistant","message":{"id":"msg_%s","type":"message","role":"assistant","model":"scripted","content":[{"type":"text","text":"%s"}],"stop_reason":null,"stop_sequence":null,"usage":%s},"parent_tool_use_id":null,"session_id":"%s"}\n' "${turn:-1}" "$1" "$usage" "$session"
}

result() {
  printf '{"type":"result","subtype":"success","is_error":%s,"api_error_status":%s,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"result":"%s","stop_reason":"end_turn","session_id":"%s","total_cost_usd":0.001,"usage":%s,"modelUsage":{},"permission_denials":[],"terminal_reason":"completed"}\n' "$1" "$2" "$3" "$session" "$usage"
}

answer_control() {
  request=$(printf '%s' "$1" | sed -n 's/.*"request_id": *"\([^"]*\)".*/\1/p')
  printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$request"
}

# Reads up to the first user message, so that the harm is done in the middle of a turn.
await_prompt() {
  while IFS= read -r line; do
    case "$line" in
      *'"control_request"'*) answer_control "$line" ;;
      *'"role":"user"'* | *'"role": "user"'*) return 0 ;;
    esac
  done
  exit 0
}

# Waits without end for all practical purposes, and yet not for ever.
linger() {
  rounds=0
  while [ $rounds -lt 600 ]; do sleep 1; rounds=$((rounds + 1)); done
}
"#;
