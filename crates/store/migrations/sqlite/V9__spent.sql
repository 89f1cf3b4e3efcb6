-- What was spent in each project, so that nobody who asks for a budget has to read the ledger. Triggers follow every change to the
-- ledger, whichever version of the program makes it.
CREATE TABLE spent (
    -- A quarter of an hour, by its beginning; empty in the row about all time.
    quarter TEXT NOT NULL,
    -- The repository or folder.
    project TEXT NOT NULL,
    -- In millionths of a dollar, with estimates. What no agent reported is not in it.
    amount BIGINT NOT NULL,
    PRIMARY KEY (quarter, project)
);

INSERT INTO spent
SELECT quarter, project, CAST(TOTAL(cost) + TOTAL(estimate) AS BIGINT) FROM ledger GROUP BY quarter, project;

INSERT INTO spent
SELECT '', project, SUM(amount) FROM spent GROUP BY project;

-- No query uses them.
DROP INDEX ledger_by_project;
DROP INDEX ledger_by_account;

CREATE TRIGGER ledger_row_added AFTER INSERT ON ledger BEGIN
    INSERT INTO spent (quarter, project, amount) VALUES
        (NEW.quarter, NEW.project, CAST(COALESCE(NEW.cost, 0) AS BIGINT) + CAST(NEW.estimate AS BIGINT)),
        ('', NEW.project, CAST(COALESCE(NEW.cost, 0) AS BIGINT) + CAST(NEW.estimate AS BIGINT))
    ON CONFLICT (quarter, project) DO UPDATE SET amount = amount + excluded.amount;
END;

CREATE TRIGGER ledger_row_removed AFTER DELETE ON ledger BEGIN
    INSERT INTO spent (quarter, project, amount) VALUES
        (OLD.quarter, OLD.project, -CAST(COALESCE(OLD.cost, 0) AS BIGINT) - CAST(OLD.estimate AS BIGINT)),
        ('', OLD.project, -CAST(COALESCE(OLD.cost, 0) AS BIGINT) - CAST(OLD.estimate AS BIGINT))
    ON CONFLICT (quarter, project) DO UPDATE SET amount = amount + excluded.amount;
END;

CREATE TRIGGER ledger_row_changed AFTER UPDATE OF quarter, project, cost, estimate ON ledger BEGIN
    INSERT INTO spent (quarter, project, amount) VALUES
        (OLD.quarter, OLD.project, -CAST(COALESCE(OLD.cost, 0) AS BIGINT) - CAST(OLD.estimate AS BIGINT)),
        ('', OLD.project, -CAST(COALESCE(OLD.cost, 0) AS BIGINT) - CAST(OLD.estimate AS BIGINT)),
        (NEW.quarter, NEW.project, CAST(COALESCE(NEW.cost, 0) AS BIGINT) + CAST(NEW.estimate AS BIGINT)),
        ('', NEW.project, CAST(COALESCE(NEW.cost, 0) AS BIGINT) + CAST(NEW.estimate AS BIGINT))
    ON CONFLICT (quarter, project) DO UPDATE SET amount = amount + excluded.amount;
END;
