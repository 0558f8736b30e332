-- SQL that PostgreSQL understands too. What a row is about is in `body`, as JSON; the columns beside it are what
-- queries need. Times are RFC 3339 in UTC with nine digits, so that the order of the texts is that of the times.

CREATE TABLE lab (
    id TEXT PRIMARY KEY
);

CREATE TABLE jobs (
    id BIGINT PRIMARY KEY,
    state TEXT NOT NULL,
    priority BIGINT NOT NULL,
    submitted TEXT NOT NULL,
    content_sha256 TEXT NOT NULL,
    body TEXT NOT NULL
);

CREATE TABLE runs (
    number BIGINT PRIMARY KEY,
    job BIGINT NOT NULL,
    state TEXT NOT NULL,
    device TEXT,
    attempt BIGINT NOT NULL,
    body TEXT NOT NULL
);

CREATE INDEX runs_of_job ON runs (job);

CREATE TABLE entries (
    run TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    order_number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, sequence)
);

CREATE TABLE events (
    number BIGINT PRIMARY KEY,
    at TEXT NOT NULL,
    job BIGINT,
    run BIGINT,
    device TEXT,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
);

CREATE INDEX events_by_time ON events (at);

CREATE TABLE devices (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE reservations (
    id BIGINT PRIMARY KEY,
    device TEXT NOT NULL,
    from_at TEXT NOT NULL,
    until_at TEXT NOT NULL,
    body TEXT NOT NULL
);
