-- Requests for acts that a second key or operator must approve (APPROVALS). `facts` is the JSON of what the act was asked for: it is
-- compared with the audit trail, and with the subject as it is then, before anything is done.
create table approval (
  id text primary key check (id ~ '^[a-z0-9]{12}$'),
  pk bigint generated always as identity unique,
  act text not null,
  subject text not null,
  request_key text unique,
  facts text not null,
  requested_by text not null,
  requested_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  status text not null default 'PENDING' check (status in ('PENDING', 'APPROVED', 'DONE', 'FAILED', 'REJECTED', 'EXPIRED')),
  decided_by text,
  decided_at timestamptz,
  taken_at timestamptz,
  failure text,
  audit_seq bigint
);
create unique index approval_pending on approval (act, subject) where status = 'PENDING';
create index approval_listed on approval (requested_at desc, pk desc);
create index approval_open on approval (requested_at, pk) where status in ('PENDING', 'APPROVED');
create function refuse_approval_change() returns trigger language plpgsql as $$ begin
  raise exception 'a request for approval is never changed'; end $$;
create trigger approval_unchanged before update of id, act, subject, request_key, facts, requested_by, requested_at, expires_at on approval
  for each row execute function refuse_approval_change();
-- The right to approve what another key asked for. A version without it gives a key with this scope nothing more.
alter table api_key drop constraint api_key_scopes_check,
  add constraint api_key_scopes_check check (cardinality(scopes) > 0 and scopes <@ array['read', 'write', 'taps',
    'mint', 'bind', 'activate', 'claim', 'transfer', 'flag:lost', 'flag:stolen', 'flag:recall', 'flag:tamper', 'resolve', 'recycle',
    'approve', 'read:products', 'read:owners', 'read:taps']);
