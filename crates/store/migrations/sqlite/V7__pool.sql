-- Who runs, who is next, who waits for whom, who is to be notified, and what was answered before.

-- Goals that wait for a slot or hold one. The next goal is chosen by this table alone.
CREATE TABLE pool (
    goal TEXT NOT NULL PRIMARY KEY REFERENCES goals (id),
    -- `queued` or `working`.
    standing TEXT NOT NULL,
    -- What it competes for, as JSON: goals with the same text compete for the same.
    lane TEXT NOT NULL,
    -- Its place in the queue, as a time: earlier ones go first.
    rank TEXT NOT NULL,
    -- What is left of its own limit, in millionths of a dollar; absent without a limit.
    usd_left BIGINT,
    -- How many of its prerequisites are not met.
    unmet BIGINT NOT NULL
);

CREATE INDEX pool_by_lane ON pool (lane, rank, goal) WHERE standing = 'queued' AND unmet = 0;
CREATE INDEX pool_by_rank ON pool (rank, goal) WHERE standing = 'queued';
CREATE INDEX pool_at_work ON pool (rank, goal) WHERE standing = 'working';

-- Goals that must have come to their end before another one starts.
CREATE TABLE prerequisites (
    goal TEXT NOT NULL REFERENCES goals (id),
    -- Its place in the list of the goal.
    place BIGINT NOT NULL,
    -- The goal that is needed; it may have been removed.
    needs TEXT NOT NULL,
    -- What that one must have come to: `done` or `merged`.
    need TEXT NOT NULL,
    met BIGINT NOT NULL,
    PRIMARY KEY (goal, place)
);

CREATE INDEX prerequisites_by_need ON prerequisites (needs, need);

-- Phases that somebody is to be notified of. A number is never used twice: whoever delivers one may be late.
CREATE TABLE notices (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    goal TEXT NOT NULL REFERENCES goals (id),
    -- The event that reports the phase.
    seq BIGINT NOT NULL,
    -- As JSON.
    phase TEXT NOT NULL,
    at TEXT NOT NULL,
    -- When to try next.
    due TEXT NOT NULL,
    tries BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX notices_by_due ON notices (due);
CREATE INDEX notices_by_goal ON notices (goal);

-- Answers to requests that must be carried out once, however often they are sent.
CREATE TABLE replies (
    key TEXT NOT NULL PRIMARY KEY,
    -- A hash of the request.
    request TEXT NOT NULL,
    -- Absent while the request is being carried out.
    status BIGINT,
    body TEXT NOT NULL,
    at TEXT NOT NULL
);

CREATE INDEX replies_by_age ON replies (at);

CREATE INDEX attempts_by_end ON attempts (agent, ended_at DESC, goal, n) WHERE ended_at IS NOT NULL;

-- From now on the time at which the goal really goes on, which is a little after the one that its phase shows. With its name, earlier
-- versions that have the database open lose the column, and with it the means to move goals past `pool`.
DROP INDEX summaries_by_wake_at;
ALTER TABLE summaries RENAME COLUMN wake_at TO wakes_at;
CREATE INDEX summaries_by_wakes_at ON summaries (wakes_at) WHERE wakes_at IS NOT NULL;

-- Goals of earlier versions whose rows in `pool`, and whose times to wake, are yet to be made from their states. The program that
-- opens the database does that, because SQL cannot, and empties the table.
CREATE TABLE unplaced (
    goal TEXT NOT NULL PRIMARY KEY
);

INSERT INTO unplaced (goal)
SELECT goal FROM summaries
WHERE phase IN ('queued', 'preparing', 'running', 'stopping', 'checking') OR wakes_at IS NOT NULL;
