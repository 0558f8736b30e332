-- On a server alone: the devices that all hosts of the lab leave alone, by their serials.
CREATE TABLE quarantine (
    device TEXT PRIMARY KEY,
    body TEXT NOT NULL
);
