"""The tables of the export: the columns of each, and the transform from the broker's rows."""
