-- A request for approval is found under the keys of all that asked for the same while it waited. Under a later key, a repeat after the decision made
-- another request, such as for what had just been rejected.
alter table approval add column joined_keys text[] not null default '{}';
create index approval_joined on approval using gin (joined_keys);
