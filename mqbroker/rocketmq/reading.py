"""Requests as they are read, behind the key of their caller and a bounded number at a time; and answers that are not.

gRPC says no length before a message is read, and while one is read it may grow to the largest. So callers without a key
have none read, and all others have READS at a time: each of MAX_MESSAGE_BYTES and 128 KiB at most.
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
# Five eighths, as of answers: callers that send slowly leave turns to other keys.
READS_OF_KEY = READS * 5 // 8
TURN_SECONDS = 3.0
# First commands of streams, which clients send as they open them.
FIRST_COMMANDS = 24
# Compressed bodies that are unpacked for a client, each until the client has taken it: four times MAX_MESSAGE_BYTES.
UNPACKINGS = 8


class Turns:
    """The turns of one kind in one process, of which one key has five eighths."""

    def __init__(self, most: int) -> None:
        self.of_all = asyncio.Semaphore(most)
        self._most_of_key = most * 5 // 8
        self._of_keys: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, key: str) -> asyncio.Semaphore:
        """The turns of one key, by its name."""
        return self._of_keys.setdefault(key, asyncio.Semaphore(self._most_of_key))


class Reads(Turns):
    """The turns to read a request."""

    def __init__(self) -> None:
        super().__init__(READS)


class FirstCommands(Turns):
    """The turns to read the first command of a stream."""

    def __init__(self) -> None:
        super().__init__(FIRST_COMMANDS)


class Unpackings(Turns):
    """The turns to unpack a body for a client."""

    def __init__(self) -> None:
        super().__init__(UNPACKINGS)


async def read(
    call: Call, following: Callable[[], Awaitable[bytes | None]], kind: Callable[[], Turns] = Reads
) -> bytes | None:
    """The bytes of a call's request, by a function that reads them, in a turn of this kind; None where it has none.

    Raises SystemBusy where it gets no turn in TURN_SECONDS, and Refused where it is not complete in BODY_READ_SECONDS.
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
    """The message of a request, whose bytes count among those that this process holds to the end of the block.

    Raises SystemBusy where these are too many, and Refused for bytes that are no message of this kind.
    """
    budget = bodies.budgets().requests
    bodies.take(budget, len(given))
    try:
        yield parsed(given, kind)
    finally:
        budget.give_back(len(given))


def parsed(given: bytes, kind: type[Request]) -> Request:
    """The message of these bytes. Raises Refused for bytes that are none of this kind, and for too many fields."""
    if shapes.has_too_many_fields(given, kind):
        detail = f"The request has more than {shapes.MAX_FIELDS} fields, the limit: send less in one request."
        raise Refused(Code.BAD_REQUEST, detail)
    try:
        return kind.FromString(given)
    except DecodeError as problem:
        raise Refused(Code.BAD_REQUEST, f"The request is no {kind.__name__}.") from problem


@asynccontextmanager
async def unpacking(key: str, row: MessageRow) -> AsyncIterator[None]:
    """A turn of a key to hold a message unpacked, until its client has taken it: a body of 6 kB may unpack to 4 MiB.

    No wait where the body lies as it came.
    """
    if of_form(row.body_form) is None:
        yield
        return
    turns = runtime.control(Unpackings)
    async with turns.of(key), turns.of_all:
        yield


@contextmanager
def taken_in_time() -> Iterator[None]:
    """Ends the call, as one that its client has left, unless the client takes what is sent in the block in time.

    That is BODY_READ_SECONDS, as for what the client sends: meanwhile other reads of its key wait for the bytes.
    """
    serving = asyncio.current_task()
    assert serving is not None
    too_late = asyncio.get_running_loop().call_later(setting("BODY_READ_SECONDS"), serving.cancel)
    try:
        yield
    finally:
        too_late.cancel()
