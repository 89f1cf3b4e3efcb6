"""How fast the official Python SDK reads what Claude Code writes.

Usage: claude_sdk.py FILE

Does what the SDK does with each line, without the process around it: the JSON, and then the message. Waits for a line on
its input, reads the file once, prints what that took, and waits for the next: so it can take turns with others.
"""

import importlib.metadata
import json
import sys
import time

from claude_agent_sdk._errors import MessageParseError
from claude_agent_sdk._internal.message_parser import parse_message


def read(lines):
    refused = 0
    for line in lines:
        try:
            parse_message(json.loads(line))
        except (MessageParseError, ValueError):
            refused += 1
    return refused


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = file.readlines()
    version = importlib.metadata.version("claude-agent-sdk")
    python = ".".join(map(str, sys.version_info[:3]))
    print(json.dumps({"sdk": version, "python": python}), flush=True)
    for _ in sys.stdin:
        begun = time.process_time()
        refused = read(lines)
        taken = time.process_time() - begun
        print(json.dumps({"seconds": taken, "lines": len(lines), "refused": refused}), flush=True)


main()
