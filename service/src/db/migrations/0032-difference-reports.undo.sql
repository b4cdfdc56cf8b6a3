-- The reports are lost.
drop table difference_report;
