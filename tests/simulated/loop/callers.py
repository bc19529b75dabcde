"""Callers that have messages written, and what has to hold of each answer that they are told."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import psycopg

from store.commit.batch import Batch
from store.commit.operation import Pipelined
from store.db.pipeline import Call, Results
from store.errors import OutcomeUnknown, SystemBusy
from store.messages import Record
from store.queues import Entry
from tests.simulated.loop.postgres import Backend, Database, Queue, Rows, ServerError, Stored, id_of
from tests.simulated.loop.virtual import Broken, VirtualLoop, loop, require

# The product's promise.
ANSWERED_SECONDS = 5.0
# A caller that is refused comes again so often, each 50 ms: a silent cell refuses all but a trial for some 5 s.
ATTEMPTS = 240
TOPIC = 1


class Spoken:
    """A statement of the simulated operation, which has no SQL."""

    columns: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, *parameters: str) -> None:
        self.handle = self.numbered = name.encode()
        self.text = self.name = name
        self.parameters = parameters

    def rows(self, _: object) -> None:
        """The server makes the rows itself."""


PUT: Any = Spoken("simulated put", "operations", "segment")
FIND: Any = Spoken("simulated find", "operations")


class Put(Pipelined[int]):
    """Stores a message in a queue; the result is its queue offset. A poisoned one is refused by the server."""

    __slots__ = ("has_left", "is_poison", "queue")

    def __init__(self, key: bytes, queue: Queue, *, is_poison: bool = False) -> None:
        super().__init__(key)
        self.queue = queue
        self.is_poison = is_poison
        self.is_plain = True
        self.size = 10
        # Whether a message to the server had it as a whole.
        self.has_left = False

    def ready(self) -> bool:
        return True

    @classmethod
    def queues(cls, operations: Sequence["Put"]) -> Iterable[Queue]:
        return {one.queue for one in operations}

    @classmethod
    def statements(cls, operations: Sequence["Put"], segment_id: bytes) -> Iterable[Call]:
        given: dict[str, Any] = {"operations": list(operations), "segment": segment_id}
        return [Call(PUT, given)]

    @classmethod
    def settle(cls, operations: Sequence["Put"], results: Results) -> None:
        answer: Any = results[PUT]
        for one in operations:
            one.result = answer.rows.get(one.key)

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence["Put"]) -> AsyncGenerator[None, None]:
        known = {row[0]: row[1] for row in await batch.read(FIND, {"operations": list(operations)})}
        new = [one for one in operations if one.key not in known]
        records = [_record(one) for one in new]
        batch.append(records)
        yield
        entries = [
            Entry(one.queue[0], one.queue[1], batch.segment_id, record.log_offset, 0)
            for one, record in zip(new, records, strict=True)
        ]
        for entry in entries:
            batch.enqueue(entry)
        yield
        for one in operations:
            one.result = known.get(one.key)
        for one, entry in zip(new, entries, strict=True):
            one.result = entry.queue_offset

    def written_topics(self) -> Mapping[int, str]:
        return {self.queue[0]: f"topic {self.queue[0]}"}


def _record(one: Put) -> Record:
    nothing: dict[str, Any] = dict.fromkeys(("born_at", "tags", "keys", "sharding_key", "properties"))
    place: dict[str, Any] = {"topic_id": one.queue[0], "queue_id": one.queue[1]}
    return Record(message_id=id_of(one.key), body=b"", body_form="text", **place, **nothing)


def answer_put(backend: Backend, given: Mapping[str, Any]) -> Rows:
    """What the pipelined statement writes; it leaves out what it cannot, and gives no reason."""
    found: dict[bytes, int] = {}
    database = backend.database
    for one in given["operations"]:
        if one.is_poison:
            raise ServerError("22021")
        is_open = int.from_bytes(given["segment"]) == database.segment and one.queue in database.begun
        if is_open and one.queue in backend.locked_queues and one.key not in database.stored:
            backend.append(one.key, one.queue)
            found[one.key] = backend.enter(one.queue, one.key)
    return found  # type: ignore[return-value]  # only `Put.settle` reads it


def answer_find(backend: Backend, given: Mapping[str, Any]) -> Rows:
    """Which of the messages are stored."""
    stored = backend.database.stored
    if any(one.is_poison for one in given["operations"]):
        raise ServerError("22021")
    return [(one.key, stored[one.key].queue_offset) for one in given["operations"] if one.key in stored]


def takes_puts(database: Database) -> Database:
    """The database, which answers the statements of `Put`."""
    database.answer(PUT, answer_put)
    database.answer(FIND, answer_find)
    return database


Write = Callable[[Put], Awaitable[int | None]]


class Store(Protocol):
    """What is stored, wherever it is."""

    @property
    def stored(self) -> Mapping[bytes, Stored]: ...

    @property
    def queues(self) -> Mapping[Queue, Sequence[bytes]]: ...

    @property
    def maybe_committed(self) -> AbstractSet[bytes]: ...


@dataclass
class Callers:
    """Some callers. Each has some messages written, one after the other, and comes again when it is refused."""

    database: Store
    write: Write
    #: Makes the operation of one attempt.
    make: type[Put] = Put
    topics: Sequence[int] = (TOPIC,)
    attempts: int = ATTEMPTS
    loop: VirtualLoop = field(default_factory=loop)
    #: Seconds for which the process was stopped: nobody is answered meanwhile.
    stopped_seconds: float = 0.0
    answered: dict[bytes, int] = field(default_factory=dict)
    #: Messages of which every answer was that nothing is stored.
    nothing: set[bytes] = field(default_factory=set)

    async def run(self, callers: int = 5, messages: int = 3) -> None:
        """Returns once each caller has its answers."""
        await asyncio.gather(*(self._caller(number, messages) for number in range(callers)))

    def check(self) -> None:
        """What has to hold at the end: nothing that was acknowledged is lost or twice, nothing refused is there."""
        for queue, keys in self.database.queues.items():
            require(len(set(keys)) == len(keys), "a message is stored twice", queue)
        for key, offset in self.answered.items():
            stored = self.database.stored.get(key)
            require(stored is not None, "an acknowledged message is lost", key)
            require(stored is not None and stored.queue_offset == offset, "an answer is wrong", key, offset, stored)
        for key in self.nothing:
            require(key not in self.database.stored, "a message is stored that was refused", key)

    async def _caller(self, number: int, messages: int) -> None:
        chance = self.loop.chance
        for message in range(messages):
            key = b"caller %02d %06d" % (number, message)
            queue = (self.topics[chance.choose(len(self.topics))], chance.choose(2))
            await self._message(key, queue, is_poison=chance.one_in(20), hangs_up=number == 0)

    async def _message(self, key: bytes, queue: Queue, *, is_poison: bool, hangs_up: bool) -> None:
        may_be_stored = has_left = False
        for _ in range(self.attempts):
            put = self.make(key, queue, is_poison=is_poison)
            told = await self._attempt(put, hangs_up=hangs_up and self.loop.chance.one_in(2))
            self.loop.note("told", key.decode(), repr(told))
            has_left |= put.has_left
            if isinstance(told, int):
                self.answered[key] = told
                return
            if isinstance(told, psycopg.DataError):
                require(is_poison, "a good message is refused for another one's fault", key)
                return
            if isinstance(told, SystemBusy):
                self._refused(put, may_be_stored=may_be_stored)
                if not may_be_stored and self.loop.chance.one_in(4):
                    self.nothing.add(key)
                    return
                await asyncio.sleep(0.05)
            elif isinstance(told, OutcomeUnknown):
                has_left |= key in self.database.maybe_committed
                require(has_left, "an outcome is called unknown of what never left", key)
                may_be_stored = True
            elif isinstance(told, TimeoutError):
                may_be_stored = True
            else:
                raise Broken(f"an answer that is none: {key!r} {told!r}")
        require(is_poison, "a message is refused for ever", key)

    def _refused(self, put: Put, *, may_be_stored: bool) -> None:
        stored = put.key in self.database.stored
        require(may_be_stored or not stored, "told that nothing is stored, and it is", put.key)

    async def _attempt(self, put: Put, *, hangs_up: bool) -> object:
        began, stopped = self.loop.time(), self.stopped_seconds
        seconds = (0.0, 0.002, 0.1, 1.0)[self.loop.chance.choose(4)] if hangs_up else None
        try:
            async with asyncio.timeout(seconds):
                return await self.write(put)
        except (SystemBusy, OutcomeUnknown, TimeoutError, psycopg.DataError) as told:
            return told
        finally:
            took = self.loop.time() - began - (self.stopped_seconds - stopped)
            require(took <= ANSWERED_SECONDS, "a caller has waited for too long", put.key, f"{took:.2f} s")
