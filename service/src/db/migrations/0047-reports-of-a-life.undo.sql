-- Of reports by taps with the same number in two lives of a chip, all but the first are lost.
delete from difference_report r using difference_report o
  where o.token_id = r.token_id and o.tap_counter = r.tap_counter and o.id < r.id;
alter table difference_report drop constraint difference_report_tap, drop column epoch, add unique (token_id, tap_counter);
