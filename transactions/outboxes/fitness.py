"""Whether a source can be drained: what is missing of it, with the statement that mends it.

A table that the role of the broker sees in part, or that producers do not write to, looks as an empty one does. So a
source is looked over where its outbox is registered, and while nothing waits in it.
"""

import asyncio
import time
from typing import NamedTuple

import psycopg
import structlog

from store.db.statements import Statement
from store.errors import MessageIllegal, Refusal
from transactions.outboxes import places
from transactions.outboxes.rows import Listed
from transactions.outboxes.source import Source

logger = structlog.stdlib.get_logger(__name__)


class Obstacle(NamedTuple):
    """What keeps the broker from draining a source, and what mends it; or it `passes` by itself."""

    passes: bool
    obstacle: str
    mend: str


FIND_OBSTACLES = Statement(__file__, "find_obstacles", Obstacle)
FIND_MISSING_STATE = Statement(__file__, "find_missing_state", Obstacle)

TRIAL_SECONDS = 8.0
# What breaks while nothing waits is shown within a minute.
LOOK_SECONDS = 30.0
# What libpq says itself, and a server that starts, ends or is full.
AWAY = (
    "connection refused",
    "timeout expired",
    "timed out",
    "could not connect",
    "could not translate host name",
    "no route to host",
    "network is unreachable",
    "connection reset",
    "closed the connection",
    "connection is bad",
    "no answer within",
    "the database system is",
    "too many clients",
    "too many connections",
    "remaining connection slots",
    "session is read-only",
    "session is not read-only",
    "hot standby mode",
    "database is not accepting connections",
)
# Of errors with a code: the connection, the transaction's luck, resources, an operator, the system; a lock; a read-only
# session.
AWAY_CLASSES = ("08", "40", "53", "57", "58")
AWAY_CODES = ("55P03", "25006")


class SourceUnfit(MessageIllegal):
    """A source that cannot be drained. `passes`: it may be drained later, without a change."""

    def __init__(self, detail: str, *, passes: bool = False) -> None:
        super().__init__(detail)
        self.passes = passes


async def require(source: Source) -> None:
    """Raises SourceUnfit, which names all that is missing, up to a few things, and what mends it."""
    async with source.transaction():
        found = await source.read(FIND_OBSTACLES, {"schema": source.schema}) or await source.read(FIND_MISSING_STATE)
    if found:
        said = "; ".join(f"{one.obstacle}: {one.mend}" for one in found)
        raise SourceUnfit(f"{said}.", passes=all(one.passes for one in found))


class Looks:
    """When a drain looks its source over: once it is connected, and then every LOOK_SECONDS while nothing waits."""

    def __init__(self) -> None:
        self._at = time.monotonic()

    async def idle(self, source: Source) -> None:
        """Nothing waits, as it seems. Raises SourceUnfit."""
        if time.monotonic() - self._at >= LOOK_SECONDS:
            await require(source)
            self._at = time.monotonic()


async def try_out(listed: Listed) -> str | None:
    """Connects to a source and looks it over: None where it can be drained, or why it cannot be now.

    Raises MessageIllegal for what cannot be drained until an operator has mended it.
    """
    place = places.read(listed.url)
    try:
        async with asyncio.timeout(TRIAL_SECONDS):
            source = await Source.connected(listed)
            try:
                await require(source)
            finally:
                await source.close()
    except TimeoutError:
        return f"{place.named} has not answered within {TRIAL_SECONDS:g} s"
    except (psycopg.Error, OSError, Refusal) as problem:
        said = place.said(problem)
        if not passes(problem):
            raise MessageIllegal(f"{place.named} cannot be drained: {said}") from None
        return said
    except Exception as problem:
        # A server may answer what no client expects.
        logger.exception("an outbox could not be tried out", outbox=listed.name)
        raise MessageIllegal(f"{place.named} gives no answers of a PostgreSQL ({type(problem).__name__}).") from None
    return None


def passes(problem: BaseException) -> bool:
    """Whether what went wrong with a source may be over later, without a change of it or of its outbox."""
    if isinstance(problem, SourceUnfit):
        return problem.passes
    if isinstance(problem, Refusal):
        return problem.is_for_now
    if isinstance(problem, psycopg.Error):
        code = problem.sqlstate
        if code is not None:
            return code[:2] in AWAY_CLASSES or code in AWAY_CODES
        text = str(problem).lower()
        return any(words in text for words in AWAY)
    return isinstance(problem, OSError)
