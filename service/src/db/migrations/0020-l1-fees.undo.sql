-- The data fees of settlements are lost: sums contain the gas only.
alter table settlement drop column l1_fee;
