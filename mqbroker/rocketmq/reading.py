"""Reads requests only after the caller's key is known, and only some at a time; limits answers that are not read.

gRPC does not show the length of a message before it is read. So requests of callers without a key are not read, and at
most READS requests are read at once, each with up to MAX_MESSAGE_BYTES and 128 KiB.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

from google.protobuf.message import DecodeError, Message

from mqbroker.api import bodies
from mqbroker.rocketmq import shapes
from mqbroker.rocketmq.call import Call
from mqbroker.rocketmq.protocol.definition_pb2 import Code
from mqbroker.rocketmq.statuses import Refused
from store.errors import SystemBusy
from store.messages import MessageRow
from store.messages.compression import of_form
from store.process import runtime
from store.process.configuration import setting

Request = TypeVar("Request", bound=Message)

READS = 40
# One key may hold five eighths of all turns, and five eighths of the bytes of answers, so that a caller that sends
# slowly leaves turns for other keys.
READS_OF_KEY = READS * 5 // 8
TURN_SECONDS = 3.0
# The number of turns for reading the first command of a stream, which each client sends when it opens the stream.
FIRST_COMMANDS = 24
# The number of decompressed bodies in memory at once, each until the client has read it; four times MAX_MESSAGE_BYTES.
UNPACKINGS = 8


class Turns:
    """The right to do one kind of work, of which a fixed number may run at once in a process. One key may hold five
    eighths of the turns.
    """

    def __init__(self, most: int) -> None:
        self.of_all = asyncio.Semaphore(most)
        self._most_of_key = most * 5 // 8
        self._of_keys: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, key: str) -> asyncio.Semaphore:
        """The turns that one key holds, by the key's name."""
        return self._of_keys.setdefault(key, asyncio.Semaphore(self._most_of_key))


class Reads(Turns):
    """The turns for reading requests."""

    def __init__(self) -> None:
        super().__init__(READS)


class FirstCommands(Turns):
    """The turns for reading the first command of a stream."""

    def __init__(self) -> None:
        super().__init__(FIRST_COMMANDS)


class Unpackings(Turns):
    """The turns for decompressing a body for a client."""

    def __init__(self) -> None:
        super().__init__(UNPACKINGS)


async def read(
    call: Call, following: Callable[[], Awaitable[bytes | None]], kind: Callable[[], Turns] = Reads
) -> bytes | None:
    """The bytes of a call's request, which `following` reads in a turn of this kind; None if there is no request.

    Raises SystemBusy if no turn gets free within TURN_SECONDS, Refused if the request is not complete within
    BODY_READ_SECONDS.
    """
    turns, seconds, is_read = runtime.control(kind), setting("BODY_READ_SECONDS"), False
    try:
        async with asyncio.timeout(TURN_SECONDS) as limit, turns.of(call.caller.name), turns.of_all:
            is_read = True
            limit.reschedule(asyncio.get_running_loop().time() + seconds)
            return await following()
    except TimeoutError as problem:
        if is_read:
            detail = f"The request was not complete after {seconds} seconds: nothing was stored, send it again."
            raise Refused(Code.REQUEST_TIMEOUT, detail) from problem
        raise SystemBusy(
            "Too many requests are being read at once: nothing was stored, try again in a second."
        ) from problem


@contextmanager
def held(given: bytes, kind: type[Request]) -> Iterator[Request]:
    """The decoded request. Until the end of the block its bytes count for this process's limit of bytes in memory.

    Raises SystemBusy beyond this limit, Refused for bytes that are not a message of this kind.
    """
    budget = bodies.budgets().requests
    bodies.take(budget, len(given))
    try:
        yield parsed(given, kind)
    finally:
        budget.give_back(len(given))


def parsed(given: bytes, kind: type[Request]) -> Request:
    """Decodes a message. Raises Refused for bytes that are not a message of this kind, and for too many fields."""
    if shapes.has_too_many_fields(given, kind):
        detail = f"The request has more than {shapes.MAX_FIELDS} fields, the limit: send less in one request."
        raise Refused(Code.BAD_REQUEST, detail)
    try:
        return kind.FromString(given)
    except DecodeError as problem:
        raise Refused(Code.BAD_REQUEST, f"The request is no {kind.__name__}.") from problem


@asynccontextmanager
async def unpacking(key: str, row: MessageRow) -> AsyncIterator[None]:
    """Holds a turn of the key while its client reads the decompressed message.

    A message that is not compressed needs no turn. A body of 6 kB may decompress to 4 MiB.
    """
    if of_form(row.body_form) is None:
        yield
        return
    turns = runtime.control(Unpackings)
    async with turns.of(key), turns.of_all:
        yield


@contextmanager
def taken_in_time() -> Iterator[None]:
    """Ends the call if the client does not read the answer that is sent in the block within BODY_READ_SECONDS.

    The answer's bytes count for its key, and other reads of the key wait for them.
    """
    serving = asyncio.current_task()
    assert serving is not None
    too_late = asyncio.get_running_loop().call_later(setting("BODY_READ_SECONDS"), serving.cancel)
    try:
        yield
    finally:
        too_late.cancel()
