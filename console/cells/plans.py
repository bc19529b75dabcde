"""The plan of a move of topics, and the checks before it. Nothing is changed before all checks hold."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from django.core.exceptions import ImproperlyConfigured

from console.cells import homes, joining, moves, registry
from console.cells.errors import CellIllegal
from console.cells.models import Move
from delivery.receipts.purges import COUNT_RECEIPTS_OF, FIND_RETRY_QUEUES
from scheduling.purges import COUNT_TIMERS_OF
from store import registry as topic_registry
from store.cells.sides import READ_POSITION, READ_REPLAY, TAKE_CELL_ID, Side
from store.db import guards, patience, sync
from store.db.server_url import database
from store.models import Cell, Topic
from store.process.departed import packed
from store.process.runtime import CONTROL
from store.rows import SideFacts
from transactions.operations.purges import COUNT_HALVES_OF

MAX_LAG_BYTES = 16 * 1024 * 1024
# How long the check waits for the standby, which normally has the source's last bytes within milliseconds.
LAG_SECONDS = 2.0
# The measured pause in seconds (fence, rest of the replay, promotion), and the rows deleted per second within the
# pause.
PAUSE_SECONDS = 0.4
DELETED_PER_SECOND = 200_000


@dataclass(frozen=True, slots=True)
class Waiting:
    """The numbers of waiting rows of some topics. After the move, one side has them as copies and deletes them."""

    halves: int
    receipts: int
    timers: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A move that has passed all checks.

    `staying` has the topics that stay in the source; empty when a whole cell moves.
    """

    move: Move
    moving: Sequence[Topic]
    staying: Sequence[Topic]
    lag_bytes: int
    moved: Waiting
    stayed: Waiting

    @property
    def pause_seconds(self) -> float:
        """The number of seconds during which the source will probably take no writes."""
        deleted = max(self.moved.halves + self.moved.receipts, self.stayed.halves + self.stayed.receipts)
        return PAUSE_SECONDS + (0 if self.move.is_whole else deleted / DELETED_PER_SECOND)


@patience.of(patience.WORK_SECONDS)
def split(source_name: str, target_name: str, url: str, wanted: Sequence[str], *, by_hand: bool) -> Plan:
    """The plan that splits homes off a cell into a new cell. Raises CellIllegal, CellNotExist or CellAway."""
    moves.require_none()
    source = registry.find(source_name)
    if not registry.NAME.fullmatch(target_name):
        raise CellIllegal(f"{target_name[:60]!r} is not a valid name of a cell: {registry.NAME_RULE}.")
    if Cell.objects.filter(name=target_name).exists():
        raise CellIllegal(
            f"There is already a cell {target_name}, and topics can only move into a new cell: give another name."
        )
    moving = [topic for home in wanted for topic in _of_home(source, home)]
    ids = {topic.id for topic in moving}
    staying = list(topic_registry.of_users().filter(cell_id=source.id).exclude(id__in=ids))
    move = Move(
        source_id=source.id,
        source_name=source.name,
        target_id=_next_id(),
        target_name=target_name,
        target_url=url,
        homes=list(wanted),
        topic_ids=sorted(ids),
        by_hand=by_hand,
    )
    return _checked(move, source, moving, staying)


@patience.of(patience.WORK_SECONDS)
def whole(source_name: str, url: str, *, by_hand: bool) -> Plan:
    """The plan that moves a whole cell to another server. Raises the same errors as `split`."""
    moves.require_none()
    source = registry.find(source_name)
    if source.id == CONTROL:
        raise CellIllegal(
            f"{source_name} is the control, and the URL of the control is the setting DATABASE_URL: promote "
            "its standby, and change the setting."
        )
    move = Move(
        source_id=source.id,
        source_name=source.name,
        target_id=source.id,
        target_name=source.name,
        target_url=url,
        by_hand=by_hand,
    )
    return _checked(move, source, list(topic_registry.of_users().filter(cell_id=source.id)), [])


def _of_home(source: Cell, home: str) -> Sequence[Topic]:
    found = homes.topics_of([home])
    if not found:
        raise CellIllegal(f"No topic has the home {home}: `cells topics home {home} TOPIC…` gives it topics.")
    homes.require_whole(home, found)
    if found[0].cell_id != source.id:
        raise CellIllegal(f"No topic of the home {home} lies in the cell {source.name}.")
    return found


def _next_id() -> int:
    # If the move fails, the id of the new cell is not used again.
    [id_] = sync.read(TAKE_CELL_ID)
    return id_


def _checked(move: Move, source: Cell, moving: Sequence[Topic], staying: Sequence[Topic]) -> Plan:
    _require_server(move)
    ids = [topic.id for topic in moving]
    with Side(source.name, registry.url_of(source)) as ours, Side(move.target_name, move.target_url) as theirs:
        _require_standby(move, ours.look(), theirs.look())
        lag_bytes = _lag(ours, theirs)
        if not move.is_whole:
            require_untorn(ours, ids)
        return Plan(
            move, moving, staying, lag_bytes, _waiting(ours, ids), _waiting(ours, [topic.id for topic in staying])
        )


def _require_server(move: Move) -> None:
    name = f"The standby for the cell {move.target_name}"
    joining.require_own_sessions()
    try:
        database(move.target_url, f"The URL of the standby for the cell {move.target_name}")
        reasons = guards.look("mqbroker-cells", move.target_url).reasons
    except ImproperlyConfigured as problem:
        raise CellIllegal(str(problem)) from None
    except psycopg.OperationalError as problem:
        raise CellIllegal(f"{name} cannot be reached: {' '.join(str(problem).split())}") from None
    if reasons:
        raise CellIllegal(f"{name} cannot be used: {'; '.join(reasons)}")


def _require_standby(move: Move, ours: SideFacts, theirs: SideFacts) -> None:
    if ours.cell_id != move.source_id:
        raise CellIllegal(
            f"The URL of the cell {move.source_name} leads to the database of another cell: `cells list` "
            "shows the fault."
        )
    if ours.is_standby:
        raise CellIllegal(
            f"The database of the cell {move.source_name} is itself a standby: give the URL of its primary."
        )
    if ours.is_fenced:
        raise CellIllegal(
            f"The cell {move.source_name} is fenced by an earlier move: try again in a minute, or run `cells undo`."
        )
    given = f"The server of --standby is no standby of the cell {move.source_name}"
    if ours.system_identifier != theirs.system_identifier:
        raise CellIllegal(
            f"{given}: the two servers have different system identifiers. Make a standby with pg_basebackup."
        )
    if not theirs.is_standby:
        raise CellIllegal(f"{given}: it accepts writes, so it is the primary itself, or was already promoted.")
    if (theirs.cell_id, theirs.installation) != (ours.cell_id, ours.installation):
        raise CellIllegal(f"{given}: its database {theirs.database} differs from the cell's database {ours.database}.")
    if theirs.columns != ours.columns:
        raise CellIllegal(
            f"{given} yet: its tables are still of an earlier version. Wait until the standby has caught up."
        )
    if not theirs.may_promote and not move.by_hand:
        raise CellIllegal(
            "The user in the URL of --standby lacks the right to promote the server: GRANT EXECUTE ON "
            f"FUNCTION pg_promote TO that user in the database {ours.database} of the cell, or give "
            "--promote-by-hand and promote the standby yourself when the command asks."
        )


def _lag(ours: Side, theirs: Side) -> int:
    position = ours.one(READ_POSITION)
    until = time.monotonic() + LAG_SECONDS
    while True:
        lag = theirs.one(READ_REPLAY, position=position).lag_bytes
        if lag is not None and lag < MAX_LAG_BYTES:
            return max(lag, 0)
        if time.monotonic() > until:
            behind = "nothing yet" if lag is None else f"all but {lag} bytes"
            raise CellIllegal(
                f"The standby has replayed {behind} of the WAL: at most {MAX_LAG_BYTES} bytes may be missing. "
                "Wait until it has caught up."
            )
        time.sleep(0.05)


def require_untorn(ours: Side, topic_ids: Sequence[int]) -> None:
    """Raises CellIllegal when an undecided transaction has messages both of moving topics and of other topics."""
    found = ours.one(COUNT_HALVES_OF, topics=list(topic_ids))
    if found.torn:
        raise CellIllegal(
            f"{found.torn} undecided transactions, such as {found.example}, have messages both of topics that "
            "move and of topics that stay: end these transactions, or put all their topics into one home by "
            "`cells topics home`."
        )


def queues_of(side: Side, topic_ids: Sequence[int]) -> list[int]:
    """The queues of retry topics that hold retries of these topics, each queue as one number."""
    return sorted(packed(*row) for row in side.ask(FIND_RETRY_QUEUES, topics=list(topic_ids)))


def _waiting(side: Side, topic_ids: Sequence[int]) -> Waiting:
    queues = queues_of(side, topic_ids)
    return Waiting(
        side.one(COUNT_HALVES_OF, topics=list(topic_ids)).halves,
        side.one(COUNT_RECEIPTS_OF, topics=list(topic_ids)),
        side.one(COUNT_TIMERS_OF, topics=list(topic_ids), queues=queues),
    )
