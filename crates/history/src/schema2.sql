-- Documents apart from the rows of lists and trends: a list of many runs reads small rows only.
CREATE TABLE documents (
    run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    document BLOB NOT NULL -- RunDocument as JSON, zlib (RFC 1950)
) STRICT;
INSERT INTO documents SELECT id, document FROM runs ORDER BY id;
ALTER TABLE runs DROP COLUMN document;

-- The user's settings for this file.
CREATE TABLE settings (
    name TEXT PRIMARY KEY, -- 'size_limit_bytes'
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
