-- Take the id of a cell that is to be made, at the control: no other cell gets it.
SELECT nextval(pg_get_serial_sequence('cell', 'id')) AS id
