-- Nothing is lost: the functions hold no data.
drop function announce_taps;
drop function accept_taps;
