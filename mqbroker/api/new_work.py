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
    """Decides for `mqbroker.wire.admission` whether new work begins. Also makes the ids of requests."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._beginning = frozenset(b"/" + route.pattern.encode() for route in routes if route.begins)
        # A request's id consists of the process's random id and the request's number in it, so it is unique.
        self._process = secrets.token_hex(6).encode()
        self._requests = count()
        # The refusals are encoded only once: a process with twice the load that it can serve refuses every second
        # request.
        self._too_many = answers.refused(waiting.too_many(waiting.limit()))
        self._too_long = answers.refused(waiting.too_long())
        self._most_wait_seconds = waiting.most_wait_seconds()
        # The runtime's object is kept in an attribute, because each request uses it three times.
        self._waiting = writer.waiting()

    def begins(self, exchange: Exchange) -> bool:
        """Whether the request stores new messages. Ends, acks and reads must not wait behind new messages."""
        return exchange.method == "POST" and exchange.target in self._beginning

    def has_room(self) -> bool:
        """Whether the next batch has room. For a topic whose cell is unknown this is decided after the body is read."""
        return self._waiting.count < self._waiting.most_of_a_batch or not runtime.placement.is_known_unread

    def is_full(self, waited: float) -> bool:
        """Whether new work is refused, given the seconds that the first waiting request has waited."""
        is_full = waited > self._most_wait_seconds or self._waiting.count >= self._waiting.limit
        return is_full and runtime.placement.is_known_unread

    def refusal(self, target: bytes, date: bytes) -> bytes | None:
        """The bytes that refuse a POST to this target; None if the target is not new work."""
        if target not in self._beginning:
            return None
        answer = self.busy()
        status, headers, length = answer.status, answer.headers, len(answer.content)
        head = heads.head_of_whole(status, date, headers, self.id_of({}), length, keep_alive=True)
        return head + answer.content

    def refuse(self, exchange: Exchange) -> None:
        """Refuses new work while too much waits. Its body is dropped, so that the connection is kept."""
        exchange.request_id = self.id_of(exchange.headers)
        exchange.drop()
        responding.write(exchange, self.busy())

    def busy(self) -> Answer:
        """The refusal of new work: too many requests wait, or the oldest request has waited too long."""
        return self._too_many if self._waiting.count >= self._waiting.limit else self._too_long

    def id_of(self, headers: dict[bytes, bytes]) -> bytes:
        """The id of a request: the caller's, or else a new one of this process."""
        given = headers.get(b"x-request-id")
        if given is not None and REQUEST_ID.fullmatch(given):
            return given
        return b"%s-%d" % (self._process, next(self._requests))
