-- Lost is of which batches the taps were taken back. The taps themselves do not come back.
drop index asset_tap_tag;
drop index tag_batch_to_take_back;
alter table tag_batch drop column taps_taken_back_at;
