-- Nothing is lost: the index follows from the table.
drop index operation_counted;
