-- Lost is which other keys asked for a request: a repeat under one of them asks anew.
alter table approval drop column joined_keys;
