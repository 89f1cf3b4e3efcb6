-- What is written again with each append, in rows of its own: however long a goal and its history are, an append writes
-- only what it changes.

CREATE TABLE positions (
    goal TEXT NOT NULL PRIMARY KEY REFERENCES goals (id),
    last_seq BIGINT NOT NULL,
    -- The newest generation that any lease of the goal has had; it stays when the lease is given back.
    generation BIGINT NOT NULL,
    updated_at TEXT NOT NULL,
    -- Another number after each append, by which a program knows whether the state is the one that it wrote.
    revision BIGINT NOT NULL
);

INSERT INTO positions (goal, last_seq, generation, updated_at, revision)
SELECT id, last_seq, generation, updated_at, 0 FROM goals;

-- The state of a goal, in parts: `.` is the state without its lists, `attempts/000000000` the first attempt, and what is
-- long in either has a part below it, such as `attempts/000000000/verdict`.
--
-- A goal that was last written before this table was there has its state in `goals.state`.
CREATE TABLE parts (
    goal TEXT NOT NULL REFERENCES goals (id),
    path TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (goal, path)
);

CREATE INDEX outbox_by_place ON outbox (goal, place);
CREATE INDEX outbox_pending ON outbox (goal, place) WHERE settled = 0;

-- An earlier version that had the database open meanwhile would write where nobody looks any more.

CREATE TRIGGER goals_are_not_added_by_earlier_versions BEFORE INSERT ON goals WHEN NEW.state <> ''
BEGIN
    SELECT RAISE(ABORT, 'a newer version of Towline has changed this database: use that version');
END;

CREATE TRIGGER goals_are_not_moved_by_earlier_versions
BEFORE UPDATE OF updated_at, phase, wake_at, last_seq, generation ON goals
BEGIN
    SELECT RAISE(ABORT, 'a newer version of Towline has changed this database: use that version');
END;
