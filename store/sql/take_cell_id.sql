-- Take the id for a new cell, at the control: no other cell gets this id.
SELECT nextval(pg_get_serial_sequence('cell', 'id')) AS id
