-- The names of the transfers whose message was erased are lost: where another transfer has the same text, it is shown again.
drop table erased_message;
