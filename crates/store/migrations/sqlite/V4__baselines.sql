-- What checks say about a base, so that the next goal on it need not run them. A key stands for everything that decides the result.

CREATE TABLE baselines (
    key TEXT NOT NULL PRIMARY KEY,
    found_at TEXT NOT NULL,
    checks TEXT NOT NULL
);

CREATE INDEX baselines_by_age ON baselines (found_at);
