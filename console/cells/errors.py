"""The refusals of cells."""

from store.errors import Refusal


class CellIllegal(Refusal):
    """The database cannot become a cell, or the cell cannot be changed in this way."""

    code = "cell_illegal"


class CellNotExist(Refusal):
    """There is no cell with this name."""

    code = "cell_not_exist"
