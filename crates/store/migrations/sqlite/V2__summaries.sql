-- What a list shows of each goal, apart from the goal's own row: states are large, and a list reads none of them.
--
-- `phase` and `wake_at` are in `goals`, too; dropping them there would rewrite every goal.

CREATE TABLE summaries (
    goal TEXT NOT NULL PRIMARY KEY REFERENCES goals (id),
    -- The last eight digits of the id, which is what people type.
    short TEXT NOT NULL,
    repository TEXT NOT NULL,
    created_at TEXT NOT NULL,
    phase TEXT NOT NULL,
    settled BIGINT NOT NULL,
    -- Whether it has a question that can be answered.
    asks BIGINT NOT NULL,
    wake_at TEXT,
    -- What the list shows of the goal as created.
    about TEXT,
    -- What it shows of the state; absent for a goal that was last written before this table was there.
    standing TEXT
);

INSERT INTO summaries (goal, short, repository, created_at, phase, settled, asks, wake_at, about)
SELECT
    id,
    substr(id, -8),
    -- One goal that cannot be read must not keep the others from being used.
    CASE WHEN json_valid(goal) THEN COALESCE(json_extract(goal, '$.workspace.repository'), '') ELSE '' END,
    created_at,
    phase,
    phase IN ('escalated', 'done', 'unproven', 'failed', 'cancelled'),
    CASE WHEN json_valid(state) THEN phase NOT IN ('done', 'unproven') AND EXISTS (
        SELECT 1 FROM json_each(state, '$.questions') WHERE json_extract(value, '$.closed') IS NULL
    ) ELSE 0 END,
    wake_at,
    CASE WHEN json_valid(goal) THEN json_object(
        'title', title,
        'in_place', json(CASE WHEN json_extract(goal, '$.workspace.mode') IN ('in_place', 'in_folder') THEN 'true' ELSE 'false' END),
        'agent', json_extract(goal, '$.agents[0]')
    ) END
FROM goals;

CREATE INDEX summaries_by_age ON summaries (created_at, goal);
CREATE INDEX summaries_by_short_id ON summaries (short, goal);
CREATE INDEX summaries_by_repository ON summaries (repository, created_at, goal);
CREATE INDEX summaries_by_phase ON summaries (phase, created_at, goal);
CREATE INDEX summaries_by_settled ON summaries (settled, created_at, goal);
CREATE INDEX summaries_by_asks ON summaries (asks, created_at, goal) WHERE asks = 1;
CREATE INDEX summaries_by_wake_at ON summaries (wake_at) WHERE wake_at IS NOT NULL;
