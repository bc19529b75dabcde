"""Answers of the data plane: a status, the bytes and the headers, encoded once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import structlog

from mqbroker import errors
from mqbroker.api import codings
from mqbroker.wire import paths
from mqbroker.wire.basis.meaning import MAX_HEADERS
from mqbroker.wire.exchange import Exchange, Shows
from mqbroker.wire.heads import Headers
from mqbroker.wire.reader import HEAD_BYTES
from store.errors import Refusal
from store.messages.times import encode
from store.process import pacing
from store.process.answer_budget import Hold

logger = structlog.stdlib.get_logger(__name__)

# Returns the deliveries or checks of an answer to their group if the caller has gone. The result: whether they were
# returned.
GiveBack = Callable[[asyncio.Future[object]], Awaitable[bool]]

# An answer whose bodies have more bytes is sent in parts.
WHOLE_BYTES = 256 * 1024
# The size of a part. Encoding a part takes less than 1 ms; a pause follows each part, so smaller parts would make the
# answer slow.
PART_BYTES = 64 * 1024
JSON: Headers = ((b"content-type", b"application/json"),)
PROBLEM: Headers = ((b"content-type", errors.PROBLEM_TYPE.encode()),)
JSONS = (JSON[0][1], PROBLEM[0][1])


class Answer:
    """An answer that is sent in one piece. It replaces Django's HttpResponse, which would take 6 to 21 µs."""

    __slots__ = ("content", "give_back", "headers", "status")

    def __init__(self, content: bytes, status: int = 200, headers: Headers = JSON) -> None:
        self.content = content
        self.status = status
        self.headers = headers
        # Returns deliveries or checks to their group if the caller hangs up before the answer is sent.
        self.give_back: GiveBack | None = None

    def show(self, shows: Shows) -> None:
        """Changes names in the JSON for a caller in a namespace, to names without it."""
        if self._is_json:
            self.content = shows.show_document(self.content)

    async def show_in_steps(self, shows: Shows) -> None:
        """Changes names like `show`, but in steps, because the answer may be large."""
        if len(self.content) > PART_BYTES and self._is_json and self.content.startswith(b"{"):
            self.content = await pacing.through(shows.showing_document(self.content))
        else:
            self.show(shows)

    @property
    def _is_json(self) -> bool:
        return any(name.lower() == b"content-type" and value in JSONS for name, value in self.headers)


class MessagesAnswer(Answer):
    """An answer with messages: one large JSON object that is encoded and sent message by message.

    Encoding 16 MiB at once would block the event loop for 60 ms and need memory for all copies.
    """

    __slots__ = ("_entries", "_more", "_name", "_shows")

    def __init__(self, entries: Iterator[object], more: object, name: str) -> None:
        super().__init__(b"")
        self._entries = entries
        self._more = more
        self._name = name
        self._shows: Shows | None = None

    def show(self, shows: Shows) -> None:
        self._shows = shows

    def parts(self) -> Iterator[bytes]:
        """Yields the JSON of the whole object in parts, each with one large message or several small ones."""
        gathered: list[bytes] = []
        for part in _parts(self._entries, self._more, self._name, self._shows):
            gathered.append(part)
            if sum(map(len, gathered)) >= PART_BYTES:
                yield b"".join(gathered)
                gathered.clear()
        yield b"".join(gathered)


def answer(result: object, status: int = 200) -> Answer:
    """A JSON answer with a struct or another value that msgspec can encode."""
    return Answer(encode(result), status)


def page(hold: Hold, entries: Iterator[object], more: object = None, name: str = "messages") -> Answer:
    """A JSON answer with a list of this name and the fields of `more`; in parts when its bodies are large."""
    if hold.size > WHOLE_BYTES:
        return MessagesAnswer(entries, more, name)
    return Answer(b"".join(_parts(entries, more, name)))


def _parts(entries: Iterator[object], more: object, name: str, shows: Shows | None = None) -> Iterator[bytes]:
    opening = start = b'{"%s":[' % name.encode()
    for entry in entries:
        content = encode(entry)
        yield opening + (content if shows is None else shows.show_document(content))
        opening = b","
    start = b"" if opening == b"," else start
    rest = b"}" if more is None else b"," + encode(more)[1:]
    yield start + b"]" + rest


def with_status(status: int, result: object) -> bytes:
    """The JSON of a result within a bulk: the status that the call alone would have, then the object's fields."""
    fields = encode(result)[1:]
    return b'{"status":%d%s%s' % (status, b"" if fields == b"}" else b",", fields)


def refused(refusal: Refusal) -> Answer:
    """The problem document of a refusal, with the headers that belong to it."""
    headers = [(name.lower().encode(), value.encode()) for name, value in errors.headers_of(refusal).items()]
    return Answer(encode(errors.document(refusal)), errors.status_of(refusal), (*PROBLEM, *headers))


def of_form(exchange: Exchange) -> Answer | None:
    """The refusal of a request by its form; None for a request that can be read.

    The refused forms: bytes that are no HTTP request, a body in an unknown content coding, and a path that is not
    plain.
    """
    if exchange.refused_as is not None:
        return _malformed(exchange.refused_as)
    encoding = exchange.headers.get(b"content-encoding", codings.IDENTITY)
    if encoding.lower() not in codings.CODINGS:
        return _encoded(encoding)
    return None if paths.is_plain(exchange.target) else _crooked()


def _malformed(status: int) -> Answer:
    limits = f"a head of {HEAD_BYTES} bytes and {MAX_HEADERS} headers at most, trailers included"
    once = "Host and Authorization once, and no Transfer-Encoding but chunked"
    problem = errors.problem_of_status(status, f"This is no request of HTTP/1.1: send one, with {limits}, {once}.")
    return Answer(encode(problem), problem.status, PROBLEM)


def _crooked() -> Answer:
    detail = (
        "The path is not in its plain form: escape no letter, digit, slash or control character, write % as %25, "
        "and leave out empty parts, `.` and `..`."
    )
    problem = errors.problem_of_status(400, detail)
    return Answer(encode(problem), problem.status, PROBLEM)


def _encoded(encoding: bytes) -> Answer:
    detail = f"The body has the Content-Encoding {encoding.decode('latin-1')[:40]}: send gzip, zstd, or none."
    problem = errors.problem_of_status(415, detail)
    return Answer(encode(problem), problem.status, (*PROBLEM, (b"accept-encoding", b"gzip, zstd")))


def of_problem(problem: Exception, exchange: Exchange | None = None) -> Answer:
    """The answer to a problem of a request, or of an item of a bulk: a refusal's document, or a failure of the broker.

    A failure is logged with the request. The problem loses its traceback: the frames refer to the problem and to the
    body of the request, and this cycle would keep the body until the next collection of garbage.
    """
    if isinstance(problem, Refusal):
        problem.__traceback__ = None
        return refused(problem)
    if exchange is None:
        logger.error("an operation of a bulk failed", exc_info=problem)
    else:
        named = {"method": exchange.method, "path": exchange.path, "request_id": exchange.request_id.decode("latin-1")}
        logger.error("a request failed", exc_info=problem, **named)
    problem.__traceback__ = None
    failed = errors.problem_of_status(500, "The broker failed: its log has the details.")
    return Answer(encode(failed), failed.status, PROBLEM)
