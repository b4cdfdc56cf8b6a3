-- Nothing is lost: the functions hold no data.
alter function accept_taps(bytea[], int[], int[], bytea[], text[], text[], boolean[], numeric[]) reset jit;
alter function announce_taps(bytea[], int[], int[], numeric[]) reset jit;
alter function publish_taps(numeric[], timestamptz) reset jit;
