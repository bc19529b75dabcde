"""New work: the requests that store new messages, which are refused while too much waits to be written."""

import re
import secrets
from collections.abc import Iterable
from itertools import count

from mqbroker.api import answers, responding
from mqbroker.api.answers import Answer
from mqbroker.api.router import Route
from mqbroker.wire import heads
from mqbroker.wire.exchange import Exchange
from store.commit import waiting, writer
from store.process import runtime

REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


class NewWork:
    """What `mqbroker.wire.admission` asks about new work, and the ids of requests, which a refusal has, too."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._beginning = frozenset(b"/" + route.pattern.encode() for route in routes if route.begins)
        # A request's id is unique by the process that took it and its number there.
        self._process = secrets.token_hex(6).encode()
        self._requests = count()
        # Encoded once: at twice its capacity a process refuses every other request, and needs its time for the rest.
        self._too_many = answers.refused(waiting.too_many(waiting.limit()))
        self._too_long = answers.refused(waiting.too_long())
        self._most_wait_seconds = waiting.most_wait_seconds()
        # Asked three times for each request.
        self._waiting = writer.waiting()

    def begins(self, exchange: Exchange) -> bool:
        """Whether it stores new messages. An end, an ack and a read may not wait behind those."""
        return exchange.method == "POST" and exchange.target in self._beginning

    def has_room(self) -> bool:
        """Whether new work would be in the next batch; of several cells each says so behind the body of a request."""
        return self._waiting.count < self._waiting.most_of_a_batch or runtime.several

    def is_full(self, waited: float) -> bool:
        """Whether new work is refused, when the first one that has not begun has waited for so many seconds."""
        return (waited > self._most_wait_seconds or self._waiting.count >= self._waiting.limit) and not runtime.several

    def refusal(self, target: bytes, date: bytes) -> bytes | None:
        """The bytes that refuse a POST; None where it is no new work."""
        if target not in self._beginning:
            return None
        answer = self.busy()
        status, headers, length = answer.status, answer.headers, len(answer.content)
        head = heads.head_of_whole(status, date, headers, self._next_id(), length, keep_alive=True)
        return head + answer.content

    def refuse(self, exchange: Exchange) -> None:
        """Answers new work while too much waits; its body is dropped, so that its connection is kept."""
        exchange.request_id = self.id_of(exchange.headers)
        exchange.drop()
        responding.write(exchange, self.busy())

    def busy(self) -> Answer:
        """The refusal of new work."""
        return self._too_many if self._waiting.count >= self._waiting.limit else self._too_long

    def id_of(self, headers: dict[bytes, bytes]) -> bytes:
        """The id of a request: that of its caller, or one of this process."""
        given = headers.get(b"x-request-id")
        if given is not None and REQUEST_ID.fullmatch(given):
            return given
        return self._next_id()

    def _next_id(self) -> bytes:
        return b"%s-%d" % (self._process, next(self._requests))
