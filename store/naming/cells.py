"""The cells of the installation, as the control lists them."""

from typing import NamedTuple

from store.db.statements import Statement


class CellFacts(NamedTuple):
    """A cell as processes need it. `url` is as it is stored: `sealing.opened` gives libpq's."""

    id: int
    name: str
    url: str
    takes_topics: bool


# It, and all configuration, is read from the control.
LIST_CELLS = Statement(__file__, "list_cells", CellFacts)
CONTROL = 0
