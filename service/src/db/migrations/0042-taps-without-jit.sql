-- Taps are not compiled. A table of one row has no index, and without sequential scans its plan looks expensive enough for a compiler,
-- which takes 7 ms in every statement that taps a product for the first time.
alter function accept_taps(bytea[], int[], int[], bytea[], text[], text[], boolean[], numeric[]) set jit = off;
alter function announce_taps(bytea[], int[], int[], numeric[]) set jit = off;
alter function publish_taps(numeric[], timestamptz) set jit = off;
