-- Lost is whose the texts of offers are that never became a transfer: no export shows them, and no erasure removes them.
drop table offered_message;
