-- On a server alone: the devices that all hosts of the lab leave alone, by their serials.
CREATE TABLE quarantine (
    device TEXT PRIMARY KEY,
    body TEXT NOT NULL
);

-- The time zone of each host, by its name; empty if it has none.
ALTER TABLE hosts ADD COLUMN zone TEXT NOT NULL DEFAULT '';
