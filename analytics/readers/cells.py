"""The databases of an installation: the databases of the control and of the other cells."""

from collections.abc import Sequence
from typing import NamedTuple

from analytics import connections
from analytics.errors import CellDiffers
from analytics.readers import address
from analytics.readers.failures import failures_as_ours
from analytics.rows import Identity
from store.cells.cells import LIST_CELLS
from store.db import sealing
from store.db.server_url import database
from store.db.statements import Statement
from store.process.runtime import CONTROL

FIND_IDENTITY = Statement(__file__, "find_identity", Identity)


class Database(NamedTuple):
    """A cell's database as a connection string; None if this process lacks the key for the cell's stored URL."""

    cell_id: int
    name: str
    conninfo: str | None


@failures_as_ours()
def databases(control: str) -> Sequence[Database]:
    """The databases of an installation, the control's first. Raises ExportFailed while the control is away."""
    with connections.connect(control) as broker:
        return [
            Database(cell.id, cell.name, control if cell.id == CONTROL else _conninfo(cell.name, cell.url))
            for cell in connections.read(broker, LIST_CELLS)
        ]


def require_own(cell: Database, installation: str | None) -> tuple[str, str]:
    """The connection string of a cell, and the installation to which its database must belong. Raises CellDiffers."""
    if cell.conninfo is None:
        raise CellDiffers("its URL is sealed under a key that is not in MQBROKER_SECRETS_KEYS")
    with connections.connect(cell.conninfo) as broker:
        [identity] = connections.read(broker, FIND_IDENTITY)
    wanted = Identity(cell.cell_id, identity.installation if installation is None else installation)
    if identity != wanted:
        raise CellDiffers(
            f"the database at its URL is cell {identity.cell_id} of the installation {identity.installation}, and not "
            f"cell {wanted.cell_id} of {wanted.installation}"
        )
    return cell.conninfo, identity.installation


def _conninfo(name: str, stored: str) -> str | None:
    try:
        return address.conninfo(database(sealing.opened(stored), f"The URL of the cell {name}"))
    except sealing.SecretUnreadable:
        return None
