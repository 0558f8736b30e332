-- On a server alone: what hosts ask again and again is found without reading all that there is.
CREATE INDEX runs_done_on_device ON runs (device) WHERE state = 'done';
CREATE INDEX devices_by_revision ON devices (revision);
