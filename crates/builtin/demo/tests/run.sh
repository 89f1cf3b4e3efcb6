#!/bin/sh
# Runs every test and fails when one of them does: sh tests/run.sh

cd "$(dirname "$0")/.." || exit 2
status=0

# expect WHAT EXPECTED ACTUAL
expect() {
    if [ "$2" = "$3" ]; then
        echo "ok      $1"
    else
        echo "FAILED  $1: expected '$2', got '$3'"
        status=1
    fi
}

expect "greets a person by name" "Hello, Ada!" "$(sh greet.sh Ada)"
expect "greets the world when nobody is named" "Hello, world!" "$(sh greet.sh)"

exit "$status"
