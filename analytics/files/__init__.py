"""The files of an export: their folder, their list, and what an increment adds to them."""
