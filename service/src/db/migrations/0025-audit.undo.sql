-- The audit trail is lost: export it first.
alter table operation drop column audit_seq;
drop table audit_entry;
drop table audit_head;
drop function append_audit(text);
drop function refuse_audit_change();
