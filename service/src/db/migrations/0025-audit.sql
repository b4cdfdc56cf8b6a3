-- The audit trail: one row for each change, in the transaction of the change, numbered without a gap. The hash of a row covers the hash of
-- the row before, its own number, time and text. The row of the head is the lock under which entries are appended.
create table audit_head (
  one boolean primary key default true check (one),
  seq bigint not null,
  hash bytea not null check (octet_length(hash) = 32)
);
insert into audit_head (seq, hash) values (0, decode(repeat('00', 32), 'hex'));
create table audit_entry (
  seq bigint primary key check (seq > 0),
  at timestamptz not null,
  body text not null,
  hash bytea not null check (octet_length(hash) = 32)
);
create function append_audit(body text) returns bigint language plpgsql as $$ declare last audit_head; noted timestamptz; begin
  select * into last from audit_head for update
  ; noted := clock_timestamp()
  ; last.seq := last.seq + 1
  ; last.hash := sha256(last.hash || convert_to(last.seq::text || chr(10) ||
    to_char(noted at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || chr(10) || body, 'UTF8'))
  ; insert into audit_entry (seq, at, body, hash) values (last.seq, noted, body, last.hash)
  ; update audit_head set seq = last.seq, hash = last.hash
  ; return last.seq; end $$;
create function refuse_audit_change() returns trigger language plpgsql as $$ begin
  raise exception 'entries of the audit trail are never changed'; end $$;
create trigger audit_append_only before update or delete on audit_entry
  for each statement execute function refuse_audit_change();
-- The entry of the first request under the key of an operation; null for operations from before.
alter table operation add column audit_seq bigint;
