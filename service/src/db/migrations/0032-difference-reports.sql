-- Reports of visitors that an item does not look like its record: one for each tap, without a name or an address.
create table difference_report (
  id bigint generated always as identity primary key,
  token_id numeric(78, 0) not null,
  tap_counter int not null,
  reported_at timestamptz not null default clock_timestamp(),
  role text not null check (role in ('new', 'second', 'mine')),
  note text not null check (char_length(note) <= 300),
  unique (token_id, tap_counter)
);
