"""Reads only the target and the framing of a request, for new work that is refused."""

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

# Longer requests are read by `Reader`, with its limits of frames.
MOST_BYTES = 16 * 1024
# A request with an id of its caller, which the answer must have, is read by `Reader`.
REQUEST_ID = b"x-request-id"


class Whole:
    """Reads a request that arrived complete and in one piece, as almost all requests with small bodies do.

    The parser is the same as for all requests, so that a request is never framed in two ways. One parser serves all
    connections of a process, because it keeps nothing between two complete requests. A refusal takes 11 µs; with an
    exchange and its headers it would take 20 µs.
    """

    def __init__(self) -> None:
        self._renew()

    def target_of(self, data: bytes) -> bytes | None:
        """The target of a POST that keeps its connection; None for any other request."""
        if len(data) > MOST_BYTES or REQUEST_ID in data.lower():
            return None
        self._target, self._count, self._is_plain = b"", 0, True
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._renew()
            return None
        if self._is_within:
            self._renew()
            return None
        return self._target if self._count == 1 and self._is_plain else None

    def _renew(self) -> None:
        self._parser = HttpRequestParser(self)
        self._target, self._count, self._is_plain, self._is_within = b"", 0, True, False

    # The HTTP parser calls the following methods.

    def on_message_begin(self) -> None:
        self._is_within = True

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_message_complete(self) -> None:
        self._is_within = False
        self._count += 1
        self._is_plain &= self._parser.should_keep_alive() and self._parser.get_method() == b"POST"
