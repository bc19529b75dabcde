"""A broker whose topics lie in a cell beside the control: configuration in both databases, messages in that one."""

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from delivery.models import Subscription
from store.db.databases import OF_EACH_CELL
from store.naming import names
from tests.broker.cells import ADD, IDENTIFY
from tests.cells.installation import COPIED
from tests.console.rows import Broker
from transactions.models import Endpoint

CELL = 1
# Where an endpoint or a subscription has not been called.
UNCALLED = {"state": "healthy", "failures": 0}


@dataclass
class InCell(Broker):
    """As Broker; `connection` is a session in the cell, and `control` one in the control."""

    control: psycopg.Connection[Any] | None = None

    def insert(self, table: str, **columns: object) -> Any:
        """Inserts a row where it lies, and gives it back."""
        assert self.control is not None
        if table in OF_EACH_CELL:
            return super().insert(table, **columns)
        ours = Broker(self.control, self.now)
        if table not in COPIED:
            return ours.insert(table, **columns)
        if table == "topic":
            columns |= {"cell_id": CELL}
        health = {*Endpoint.of_each_cell, *Subscription.of_each_cell}
        known = {name: value for name, value in columns.items() if name not in health}
        row = ours.insert(table, **known, **(UNCALLED if table in ("endpoint", "subscription") else {}))
        same = {name: Jsonb(value) if isinstance(value, dict) else value for name, value in row._asdict().items()}
        return super().insert(table, **{**same, **columns, "id": row.id})


def join(control: psycopg.Connection[Any], cell: psycopg.Connection[Any], url: str) -> None:
    """Has a database be the cell c1 of a control."""
    found = control.execute("SELECT installation FROM cell_identity").fetchone()
    assert found is not None
    cell.execute(IDENTIFY, [CELL, found[0]])
    # What tests before have left there, the cell has no copy of.
    control.execute("DELETE FROM retry_queue")
    known = [row[0] for row in cell.execute("SELECT name FROM topic").fetchall()]
    control.execute("DELETE FROM topic WHERE name <> ALL (%s)", [known])
    for table in COPIED:
        if table != "topic":
            cell.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
    control.execute(ADD, [CELL, "c1", url])


def leave(control: psycopg.Connection[Any]) -> None:
    """Has the control know no cell but itself."""
    control.execute("DELETE FROM topic WHERE name <> ALL (%s)", [list(names.SYSTEM)])
    control.execute("UPDATE topic SET cell_id = 0")
    control.execute("DELETE FROM cell WHERE id <> 0")
