"""Checks whether a source can be drained, and gives the statement that corrects each obstacle.

A table that the broker's role sees only in part, or that producers do not write to, looks empty. So a source is checked
when its outbox is registered, and while no row waits.
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
    """A reason why the broker cannot drain a source, and how to correct it. `passes`: it may pass by itself."""

    passes: bool
    obstacle: str
    mend: str


FIND_OBSTACLES = Statement(__file__, "find_obstacles", Obstacle)
FIND_MISSING_STATE = Statement(__file__, "find_missing_state", Obstacle)

TRIAL_SECONDS = 8.0
# How often an idle source is checked, so that an obstacle is shown within a minute.
LOOK_SECONDS = 30.0
# Errors that may pass: of libpq itself, and of a server that starts, stops or is full.
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
# Classes of SQLSTATE codes that may pass: connection, rolled-back transaction, resources, operator, system; a lock; a
# read-only session.
AWAY_CLASSES = ("08", "40", "53", "57", "58")
AWAY_CODES = ("55P03", "25006")


class SourceUnfit(MessageIllegal):
    """A source cannot be drained. `passes`: the source may be drained later without a change."""

    def __init__(self, detail: str, *, passes: bool = False) -> None:
        super().__init__(detail)
        self.passes = passes


async def require(source: Source) -> None:
    """Raises SourceUnfit with the first few obstacles and how to correct each."""
    async with source.transaction():
        found = await source.read(FIND_OBSTACLES, {"schema": source.schema}) or await source.read(FIND_MISSING_STATE)
    if found:
        said = "; ".join(f"{one.obstacle}: {one.mend}" for one in found)
        raise SourceUnfit(f"{said}.", passes=all(one.passes for one in found))


class Looks:
    """Decides when a drain checks its source: after connecting, and every LOOK_SECONDS while no row waits."""

    def __init__(self) -> None:
        self._at = time.monotonic()

    async def idle(self, source: Source) -> None:
        """Checks the source, at most every LOOK_SECONDS. Called if no row seems to wait. Raises SourceUnfit."""
        if time.monotonic() - self._at >= LOOK_SECONDS:
            await require(source)
            self._at = time.monotonic()


async def try_out(listed: Listed) -> str | None:
    """Connects to a source and checks it. Returns None if it can be drained, or why it cannot be drained now.

    Raises MessageIllegal for a source that cannot be drained until an operator has corrected it.
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
        # The server may be any program and send any answer.
        logger.exception("an outbox could not be tried out", outbox=listed.name)
        raise MessageIllegal(
            f"{place.named} does not answer like a PostgreSQL server ({type(problem).__name__})."
        ) from None
    return None


def passes(problem: BaseException) -> bool:
    """Whether a problem with a source may pass without a change of the source or of its outbox."""
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
