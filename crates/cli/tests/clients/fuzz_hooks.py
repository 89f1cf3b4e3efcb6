"""Has schemathesis fill in what exists, so that its requests get further than to a goal that is not there.

GOALS: ids of goals; REPOSITORY: a project. With REFUSED, every reply must be a refusal that shows nothing of SECRETS.
"""

import os

import schemathesis

GOALS = os.environ["GOALS"].split()
REPOSITORY = os.environ["REPOSITORY"]
REFUSED = "REFUSED" in os.environ
SECRETS = os.environ["SECRETS"].split()
UNPROTECTED = "/healthz"
# Takes a code instead of a token, so it looks at the body.
SIGN_IN = "/sign-in"


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    given = str((path_parameters or {}).get("id", ""))
    # A valid id is that of some goal in most cases. A wrong one stays wrong.
    if len(given) == 36 and given.count("-") == 4 and sum(given.encode()) % 5:
        path_parameters["id"] = GOALS[sum(given.encode()) % len(GOALS)]
    return path_parameters


@schemathesis.hook
def map_body(context, body):
    if isinstance(body, dict) and isinstance(body.get("repository"), str) and len(body["repository"]) % 2:
        body["repository"] = REPOSITORY
    return body


@schemathesis.check
def nothing_leaks(ctx, response, case):
    for secret in SECRETS:
        assert secret not in response.text, "the reply has a secret"
        assert not any(secret in value for values in response.headers.values() for value in values)
    assert "panicked" not in response.text and "RUST_BACKTRACE" not in response.text


@schemathesis.check
def is_refused(ctx, response, case):
    if REFUSED and not case.path.endswith(UNPROTECTED):
        # 400 is the HTTP parser's own: it has read no request.
        refusals = (400, 401, 415, 429) if case.path.endswith(SIGN_IN) else (400, 401, 429)
        assert response.status_code in refusals, f"the reply is {response.status_code}"
        assert not any(goal in response.text for goal in GOALS), "the reply shows a goal"
        assert REPOSITORY not in response.text, "the reply shows a project"
