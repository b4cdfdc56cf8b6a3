-- A report names the life of the chip whose tap it is of: a chip that is written anew counts from 1 again. Its tap was taken for the one of
-- the former life with the same number, and its report was lost. The version before names no life; its reports are of the first one.
alter table difference_report add column epoch int not null default 0,
  drop constraint difference_report_token_id_tap_counter_key,
  add constraint difference_report_tap unique (token_id, epoch, tap_counter);
