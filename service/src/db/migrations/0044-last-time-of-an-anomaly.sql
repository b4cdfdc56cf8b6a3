-- An anomaly of a day grows by later taps, which may be those of the next owner: erasure finds it by its last time. It is null in rows from
-- before, whose last time is some time of their day.
alter table tap_anomaly add column last_at timestamptz;
