-- Lost are the requests counted in the windows under way.
drop table rate_window;
