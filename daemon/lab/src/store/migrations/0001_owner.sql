
-- On a server alone: the daemon that writes. `number` counts those that have begun, `batch` what this one has written.
CREATE TABLE owner (
    number BIGINT NOT NULL,
    batch BIGINT NOT NULL,
    host TEXT NOT NULL,
    process BIGINT NOT NULL
);

INSERT INTO owner (number, batch, host, process) VALUES (0, 0, '', 0);
