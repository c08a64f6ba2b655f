-- One row for each finished measurement. Lists and filters use the columns; everything else is in the document.
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- a number is never given twice
    started_at_unix_ns INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    kind TEXT NOT NULL,
    host TEXT NOT NULL,
    port INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    verdict TEXT NOT NULL,
    lab_path TEXT,
    linerate_version TEXT NOT NULL,
    document BLOB NOT NULL -- RunDocument as JSON, zlib (RFC 1950)
) STRICT;
CREATE INDEX runs_by_time ON runs (started_at_unix_ns, id);
CREATE INDEX runs_by_host ON runs (host, started_at_unix_ns, id);

-- The figures of each run, for trends without unpacking documents.
CREATE TABLE figures (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    unit TEXT NOT NULL,
    better TEXT NOT NULL,
    value REAL,
    low REAL,
    high REAL,
    count INTEGER,
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX figures_by_name ON figures (name, run);

-- Tags of the user.
CREATE TABLE tags (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    text TEXT NOT NULL,
    PRIMARY KEY (run, text)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_by_text ON tags (text, run);
