-- Lost is when an anomaly last grew, so that the erasure of a later owner's data does not find it.
alter table tap_anomaly drop column last_at;
