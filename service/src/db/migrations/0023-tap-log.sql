-- Presentations of tags, for the operator's back office. A tag is known by its commitment here, never by its UID.

-- One row for each tag, counter, outcome and country in an hour, so that an address opened a thousand times is one row. Rows without a
-- tag count cryptograms that no key of this service made.
create table tap_log (
  id bigint generated always as identity primary key,
  tag_hash bytea check (octet_length(tag_hash) = 32),
  counter int,
  outcome text not null check (outcome in ('FRESH', 'REPEATED', 'REPLAYED', 'COUNTERFEIT_SUSPECTED')),
  country text check (country ~ '^[A-Z]{2}$'),
  hour timestamptz not null,
  times int not null check (times > 0),
  first_at timestamptz not null,
  last_at timestamptz not null,
  unique nulls not distinct (tag_hash, counter, outcome, country, hour)
);
create index tap_log_time on tap_log (first_at desc, id desc);
create index tap_log_tag on tap_log (tag_hash, first_at desc, id desc);
create index tap_log_outcome on tap_log (outcome, first_at desc, id desc);
create index tap_log_country on tap_log (country, first_at desc, id desc) where country is not null;

-- What is unusual about the taps of a tag, once a day for each kind; a jump of the counter once for each counter.
create table tap_anomaly (
  id bigint generated always as identity primary key,
  tag_hash bytea not null check (octet_length(tag_hash) = 32),
  kind text not null check (kind in ('TWO_PLACES', 'COUNTER_JUMP', 'MANY_REPLAYS')),
  day date not null,
  counter int,
  last_counter int,
  countries text[],
  times int,
  found_at timestamptz not null,
  unique nulls not distinct (tag_hash, kind, day, counter)
);
create index tap_anomaly_time on tap_anomaly (found_at desc, id desc);
create index tap_anomaly_tag on tap_anomaly (tag_hash, found_at desc, id desc);
create index tap_anomaly_kind on tap_anomaly (kind, found_at desc, id desc);

-- The product of a tag.
create index asset_tag_hash on asset (tag_hash) where tag_hash is not null;

-- Taps are personal data: a key reads them with a scope of its own.
alter table api_key drop constraint api_key_scopes_check,
  add constraint api_key_scopes_check check (scopes <@ array['read', 'write', 'taps'] and cardinality(scopes) > 0);
