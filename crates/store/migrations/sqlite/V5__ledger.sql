-- One sequence over the events of all goals, what was spent, and how accounts stand.

-- The place of an event in the sequence is the key of its row, so that the sequence costs nothing to look up. AUTOINCREMENT: a
-- place is never used twice, also when the newest goal was removed. Other databases have identity columns for that.
CREATE TABLE events_of_all_goals (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    goal TEXT NOT NULL REFERENCES goals (id),
    seq BIGINT NOT NULL,
    at TEXT NOT NULL,
    attempt BIGINT,
    source TEXT NOT NULL,
    -- The tag in `body`.
    kind TEXT NOT NULL,
    parent TEXT,
    raw_offset BIGINT,
    raw_length BIGINT,
    body TEXT NOT NULL,
    UNIQUE (goal, seq)
);

-- Earlier versions had other names for some kinds. The old rows are in the order in which they were written.
INSERT INTO events_of_all_goals
SELECT
    rowid, goal, seq, at, attempt, source,
    CASE kind
        WHEN 'cancel' THEN 'cancel_requested'
        WHEN 'pause' THEN 'pause_requested'
        WHEN 'resume' THEN 'resume_requested'
        WHEN 'retry' THEN 'retry_requested'
        WHEN 'answer' THEN 'answered'
        WHEN 'tell' THEN 'told'
        WHEN 'delivered' THEN 'answer_delivered'
        WHEN 'merge' THEN 'merged'
        WHEN 'verify' THEN 'verified'
        ELSE kind
    END,
    parent, raw_offset, raw_length, body
FROM events ORDER BY rowid;

DROP TABLE events;
ALTER TABLE events_of_all_goals RENAME TO events;

-- Whose quota the attempt uses: the account that the goal names for its agent, or the agent itself.
ALTER TABLE attempts ADD COLUMN account TEXT NOT NULL DEFAULT '';

UPDATE attempts SET account = COALESCE(
    (
        SELECT value FROM goals, json_each(CASE WHEN json_valid(goals.goal) THEN goals.goal ELSE '{}' END, '$.accounts')
        WHERE goals.id = attempts.goal AND key = attempts.agent
    ),
    agent
);

-- What each attempt used in each quarter of an hour, of which the days of every time zone are made. The rows of an attempt add up to what
-- its goal's state has; an amount below zero corrects an estimate. Rows outlive their goal: what was spent was spent.
CREATE TABLE ledger (
    goal TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    -- Its beginning.
    quarter TEXT NOT NULL,
    -- The repository or folder.
    project TEXT NOT NULL,
    account TEXT NOT NULL,
    agent TEXT NOT NULL,
    model TEXT,
    input BIGINT NOT NULL,
    output BIGINT NOT NULL,
    cache_read BIGINT NOT NULL,
    cache_write BIGINT NOT NULL,
    -- In millionths of a dollar: what the agent reported, and what was estimated where it did not.
    cost BIGINT NOT NULL,
    estimate BIGINT NOT NULL,
    PRIMARY KEY (goal, attempt, quarter)
);

INSERT INTO ledger
SELECT
    goal, n, quarter, repository, account, agent, json_extract(body, '$.model'),
    COALESCE(json_extract(body, '$.usage.input'), 0),
    COALESCE(json_extract(body, '$.usage.output'), 0),
    COALESCE(json_extract(body, '$.usage.cache_read'), 0),
    COALESCE(json_extract(body, '$.usage.cache_write'), 0),
    COALESCE(json_extract(body, '$.usage.cost'), 0),
    COALESCE(json_extract(body, '$.usage.estimate'), 0)
FROM (
    SELECT
        attempts.goal, attempts.n, attempts.account, attempts.agent, summaries.repository,
        substr(COALESCE(attempts.ended_at, attempts.started_at), 1, 14)
            || printf('%02d', substr(COALESCE(attempts.ended_at, attempts.started_at), 15, 2) / 15 * 15)
            || ':00.000000000Z' AS quarter,
        -- A state that was last written by the first versions is in one piece.
        CASE
            WHEN json_valid(goals.state) THEN json_extract(goals.state, '$.attempts[' || (attempts.n - 1) || ']')
            WHEN json_valid(parts.body) THEN parts.body
        END AS body
    FROM attempts
    JOIN goals ON goals.id = attempts.goal
    JOIN summaries ON summaries.goal = attempts.goal
    LEFT JOIN parts ON parts.goal = attempts.goal AND parts.path = printf('attempts/%09d', attempts.n - 1)
)
WHERE json_extract(body, '$.usage') IS NOT NULL;

CREATE INDEX ledger_by_time ON ledger (quarter);
CREATE INDEX ledger_by_project ON ledger (project, quarter);
CREATE INDEX ledger_by_account ON ledger (account, quarter);

-- How each account was last seen.
CREATE TABLE accounts (
    name TEXT NOT NULL PRIMARY KEY,
    -- The agent that saw it.
    agent TEXT NOT NULL,
    -- As JSON.
    status TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
