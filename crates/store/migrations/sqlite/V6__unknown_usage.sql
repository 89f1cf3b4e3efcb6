-- What an agent did not report is NULL in the ledger, not 0.

CREATE TABLE ledger_with_unknown (
    goal TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    -- Its beginning.
    quarter TEXT NOT NULL,
    -- The repository or folder.
    project TEXT NOT NULL,
    account TEXT NOT NULL,
    agent TEXT NOT NULL,
    model TEXT,
    input BIGINT,
    output BIGINT,
    cache_read BIGINT,
    cache_write BIGINT,
    -- In millionths of a dollar: what the agent reported, and what was estimated where it did not.
    cost BIGINT,
    estimate BIGINT NOT NULL,
    PRIMARY KEY (goal, attempt, quarter)
);

-- Earlier versions wrote 0 for what is unknown. The state of the goal distinguishes the two, where it is still there.
INSERT INTO ledger_with_unknown
SELECT
    ledger.goal, attempt, quarter, project, account, agent, model,
    NULLIF(input, IIF(json_extract(usage, '$.input') IS NULL, 0, NULL)),
    NULLIF(output, IIF(json_extract(usage, '$.output') IS NULL, 0, NULL)),
    NULLIF(cache_read, IIF(json_extract(usage, '$.cache_read') IS NULL, 0, NULL)),
    NULLIF(cache_write, IIF(json_extract(usage, '$.cache_write') IS NULL, 0, NULL)),
    NULLIF(cost, IIF(json_extract(usage, '$.cost') IS NULL, 0, NULL)),
    estimate
FROM (
    SELECT
        ledger.*,
        -- A state that was last written by the first versions is in one piece.
        CASE
            WHEN json_valid(goals.state) THEN json_extract(goals.state, '$.attempts[' || (attempt - 1) || '].usage')
            WHEN json_valid(parts.body) THEN json_extract(parts.body, '$.usage')
        END AS usage
    FROM ledger
    LEFT JOIN goals ON goals.id = ledger.goal
    LEFT JOIN parts ON parts.goal = ledger.goal AND parts.path = printf('attempts/%09d', attempt - 1)
) AS ledger;

DROP TABLE ledger;
ALTER TABLE ledger_with_unknown RENAME TO ledger;

CREATE INDEX ledger_by_time ON ledger (quarter);
CREATE INDEX ledger_by_project ON ledger (project, quarter);
CREATE INDEX ledger_by_account ON ledger (account, quarter);
