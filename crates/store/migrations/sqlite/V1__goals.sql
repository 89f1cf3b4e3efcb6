-- Goals, their logs, what is to be done for them, and who may move them.
--
-- Times are RFC 3339 texts in UTC with nine digits of the second: exact, readable, and sorted by comparing them.
-- JSON columns are the truth; the columns beside them are caches for filters and indexes, written with them.
-- All of this is SQL that other databases know too, apart from the places that say otherwise.

CREATE TABLE goals (
    id TEXT NOT NULL PRIMARY KEY,
    title TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    phase TEXT NOT NULL,
    wake_at TEXT,
    last_seq BIGINT NOT NULL,
    -- The newest generation that any lease of the goal has had; it stays when the lease is given back.
    generation BIGINT NOT NULL,
    goal TEXT NOT NULL,
    -- Last, because it is the one that grows: what stands before it is read without it.
    state TEXT NOT NULL
);

CREATE TABLE events (
    goal TEXT NOT NULL REFERENCES goals (id),
    seq BIGINT NOT NULL,
    at TEXT NOT NULL,
    attempt BIGINT,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    parent TEXT,
    raw_offset BIGINT,
    raw_length BIGINT,
    body TEXT NOT NULL,
    PRIMARY KEY (goal, seq)
);

CREATE TABLE outbox (
    goal TEXT NOT NULL REFERENCES goals (id),
    key TEXT NOT NULL,
    -- The order in which the goal's effects were written.
    place BIGINT NOT NULL,
    -- The end of the log at that moment.
    written_seq BIGINT NOT NULL,
    -- Settled entries stay, so that their key is never carried out again.
    settled BIGINT NOT NULL DEFAULT 0,
    effect TEXT NOT NULL,
    PRIMARY KEY (goal, key)
);

CREATE TABLE leases (
    goal TEXT NOT NULL PRIMARY KEY REFERENCES goals (id),
    worker TEXT NOT NULL,
    generation BIGINT NOT NULL,
    until TEXT NOT NULL
);

CREATE TABLE attempts (
    goal TEXT NOT NULL REFERENCES goals (id),
    n BIGINT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    -- The lease under which it was begun.
    generation BIGINT NOT NULL,
    started_at TEXT NOT NULL,
    -- Absent while it runs.
    ended_at TEXT,
    PRIMARY KEY (goal, n)
);

-- Two agents never work on one goal at once, whatever the program above believes.
CREATE UNIQUE INDEX one_running_attempt ON attempts (goal) WHERE ended_at IS NULL;

-- Every conversation that a goal has had, the present one included.
CREATE TABLE sessions (
    goal TEXT NOT NULL REFERENCES goals (id),
    agent TEXT NOT NULL,
    native_id TEXT NOT NULL,
    model TEXT,
    directory TEXT NOT NULL,
    since TEXT NOT NULL,
    PRIMARY KEY (goal, agent, native_id)
);
