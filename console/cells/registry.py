"""The registry of cells: added, migrated, repaired, opened and removed by operators. The control has the rows."""

import contextlib
import re
from collections.abc import Sequence
from urllib.parse import quote, urlsplit

from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, OperationalError, ProgrammingError, connection, transaction
from django.db.models import F, Model
from psycopg.errors import DuplicateDatabase

from access import audit
from access.audit import Signature
from console.cells import joining
from console.cells.errors import CellIllegal, CellNotExist
from delivery.models import ConsumerGroup, RetryQueue, Subscription
from store import registry as topic_registry
from store.cells import copies, repairs
from store.db import databases, patience, sync
from store.errors import CellAway
from store.messages.texts import counted
from store.models import Cell, CellIdentity, CellMap, Topic
from store.notices import caches
from store.process.runtime import CONTROL
from store.rows import CellFacts
from transactions.models import Endpoint, ProducerGroup

# The tables of which each cell has copies, in the order in which their rows refer to each other.
COPIED: Sequence[type[Model]] = (Topic, ProducerGroup, Endpoint, ConsumerGroup, RetryQueue, Subscription)
# A cell's name is also a label of metrics and the name of a folder.
NAME = re.compile(r"[a-z][a-z0-9-]{0,29}")
NAME_RULE = "1 to 30 small letters, digits and -, the first a letter"


def every() -> Sequence[Cell]:
    """All cells, the control first."""
    return list(Cell.objects.order_by("id"))


def find(name: str) -> Cell:
    """The cell of this name. Raises CellNotExist."""
    cell = Cell.objects.filter(name=name).first()
    if cell is None:
        raise CellNotExist(f"There is no cell {name}: `cells list` shows all cells.")
    return cell


def facts(cell: Cell) -> CellFacts:
    """The data with which a process reaches the cell's database."""
    return CellFacts(cell.id, cell.name, cell.url, cell.takes_topics, cell.parent_id)


def url_of(cell: Cell) -> str:
    """The URL of a cell's database; empty for the control, whose URL is in the settings. Raises CellIllegal."""
    if not cell.url and cell.id != CONTROL:
        raise CellIllegal(
            f"The stored URL of the cell {cell.name} cannot be decrypted: its key is not in MQBROKER_SECRETS_KEYS."
        )
    return str(cell.url)


def join_beside(name: str, signature: Signature) -> None:
    """Adds a database of the control's server as a cell, with the server's current URL; creates a missing database.

    Raises the errors of `join`.
    """
    database = f"{connection.settings_dict['NAME']}_{name}"
    url = urlsplit(settings.DATABASE_URL)._replace(path=f"/{quote(database)}").geturl()
    cell = Cell.objects.filter(name=name).first()
    if cell is None:
        _make_database(database)
    if cell is None or cell.url != url:
        join(name, url, signature)


def join(name: str, url: str, signature: Signature) -> Cell:
    """Adds a database as a cell, or sets the URL of an existing cell, with an audit entry. May be repeated.

    Raises CellIllegal, CellAway, or Django's OperationalError.
    """
    _prepare(name, url)
    with audit.change(signature, "cell.add", name) as change:
        cell = _add(name, url)
        change.after = {"id": cell.id}
    # A process that created a topic or group before the cell's row was committed has not written a copy to the cell.
    repair(cell)
    return cell


def _make_database(name: str) -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {connection.ops.quote_name(name)}")
    except ProgrammingError as problem:
        if not isinstance(problem.__cause__, DuplicateDatabase):
            raise


def _prepare(name: str, url: str) -> None:
    """Checks whether a database may be this cell, and creates the tables of an empty database. May be repeated.

    An existing cell may get another URL of its own database, but no other database.

    Raises CellIllegal, or Django's OperationalError when the database goes away meanwhile.
    """
    if not NAME.fullmatch(name):
        raise CellIllegal(f"{name[:60]!r} is not a valid name of a cell: {NAME_RULE}.")
    cell = Cell.objects.filter(name=name).first()
    if cell is not None and cell.id == CONTROL:
        raise CellIllegal(
            f"{name} is the name of the control, whose URL is the setting DATABASE_URL: give the new cell another name."
        )
    joining.require_server(name, url)
    alias = databases.alias("joining" if cell is None else cell.id, name, url)
    if cell is not None:
        joining.require_own(alias, cell)
    if not joining.is_prepared(alias, name, cell):
        call_command("migrate", database=alias, interactive=False, verbosity=0)
    elif cell is None:
        joining.require_joinable(alias, name)


def _add(name: str, url: str) -> Cell:
    """Makes a prepared database a cell, with identity and copies; the cell takes no topics yet.

    For an existing cell only the URL is set. Changes of the configuration wait until the row of the cell is committed;
    later changes are also made in the cell. If the process is killed before the commit, the database may be added
    again. Raises CellIllegal or CellAway.
    """
    with transaction.atomic():
        copies.hold()
        cell, _ = Cell.objects.update_or_create(name=name, defaults={"url": url})
        with copies.of_cell(facts(cell)) as alias:
            identity = {"cell_id": cell.id, "installation": joining.installation()}
            CellIdentity.objects.using(alias).update(**identity)
        repair(cell)
        announce()
    return cell


def migrate() -> None:
    """Migrates the tables of each cell except the control. Raises CellAway at the end if a cell was away."""
    failed = []
    for cell in copies.others():
        try:
            call_command("migrate", database=copies.alias(cell), interactive=False, verbosity=0)
        except (CellAway, OperationalError) as problem:
            failed.append(f"{cell.name} ({' '.join(str(problem).split())})")
    if failed:
        raise CellAway(
            f"These cells are away and still have the tables of an earlier version: {', '.join(failed)}. Run "
            "this command again when they are back, or remove a cell without topics by `cells remove`."
        )


@patience.of(patience.REQUEST_SECONDS)
def heal() -> None:
    """Repairs the copies in cells that differ from the control, except cells that are away. Needs the control."""
    with contextlib.suppress(DatabaseError):
        cells = copies.others()
        ours = repairs.of_control(COPIED) if cells else {}
        for cell in cells:
            with contextlib.suppress(CellAway):
                if repairs.compare(cell, ours):
                    repairs.repair(cell, COPIED)
    sync.give_connection_back()


def repair(cell: Cell) -> int:
    """Makes the copies in a cell equal to the control's rows; returns the number of changed rows. Raises CellAway."""
    return 0 if cell.id == CONTROL else repairs.repair(facts(cell), COPIED)


def open_cell(name: str) -> None:
    """Makes this cell the open cell: new topics go to it. Existing topics stay in their cells.

    Raises CellNotExist, CellIllegal when the cell's database is another database, or CellAway.
    """
    with transaction.atomic():
        # If two operators call this at the same time, the calls run one after the other, and the later call takes
        # effect.
        copies.hold()
        cell = find(name)
        if cell.id != CONTROL:
            joining.require_own(copies.alias(facts(cell)), cell)
        repair(cell)
        Cell.objects.filter(takes_topics=True).update(takes_topics=False)
        Cell.objects.filter(id=cell.id).update(takes_topics=True)
        announce()


def close_cell(name: str) -> None:
    """Closes this cell for new topics. If it was the open cell, new topics go to the control again.

    Raises CellNotExist, or CellIllegal for the control while it is open.
    """
    with transaction.atomic():
        copies.hold()
        cell = find(name)
        if cell.takes_topics and cell.id == CONTROL:
            raise CellIllegal(
                f"The broker creates new topics in the cell {name}: choose another cell for new topics by `cells "
                "open` first."
            )
        if cell.takes_topics:
            Cell.objects.filter(id=cell.id).update(takes_topics=False)
            Cell.objects.filter(id=CONTROL).update(takes_topics=True)
            announce()


def remove(name: str) -> None:
    """Removes a cell without topics from the installation. Its database is not changed, and may be away.

    Raises CellNotExist or CellIllegal.
    """
    with transaction.atomic():
        cell = find(name)
        if cell.id == CONTROL:
            raise CellIllegal(f"{name} is the control, which every installation needs: the control cannot be removed.")
        if topics := topic_registry.of_users().filter(cell_id=cell.id).count():
            raise CellIllegal(
                f"The cell {name} still has {counted(topics, 'topic')}: delete the topics and their messages first."
            )
        if cell.takes_topics:
            raise CellIllegal(
                f"The broker creates new topics in the cell {name}: choose another cell for new topics by `cells "
                "open` first."
            )
        # The broker's own topics do not count, because each cell has queues of them.
        own = list(Topic.objects.filter(cell_id=cell.id).values_list("id", flat=True))
        cell.delete()
        Topic.objects.filter(id__in=own).update(cell_id=CONTROL)
        copies.write(Topic, own)
        announce()


def announce() -> None:
    """Raises the version of the map, so that each process drops its caches when this transaction is committed."""
    CellMap.objects.update(version=F("version") + 1)
    caches.drop_everywhere()
