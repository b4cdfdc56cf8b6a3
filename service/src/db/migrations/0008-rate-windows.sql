-- Request budgets that processes share (spec §8): the window of a client as all of them count it. Unlogged: it holds nothing that is
-- worth a write-ahead log, and a crash of the server only begins every window anew.
create unlogged table rate_window (
  -- The budget and a keyed hash of the client, never the client itself.
  key text collate "C" primary key,
  used integer not null,
  -- What the last draw was allowed, and by which limit and length (milliseconds).
  granted integer not null,
  allowed integer not null,
  length_ms integer not null,
  -- Milliseconds since 1970 by this server's clock.
  ends_at bigint not null
) with (fillfactor = 50);

create index rate_window_ends_at on rate_window (ends_at);
