"""Cells: the databases of an installation, as operators add them, open them and see them."""
