"""New work that is to be refused, read no further than its target and its framing."""

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

# A longer request takes the usual way, which reads so many frames of it at once.
MOST_BYTES = 16 * 1024
# A caller that gave its request an id reads it in the answer, which takes the usual way.
REQUEST_ID = b"x-request-id"


class Whole:
    """Reads a request that has arrived whole, in one piece, as almost all with small bodies do.

    The parser is that of all requests, so that none is framed in two ways, and one serves all connections of a process:
    between two whole requests it keeps nothing. A refusal costs 11 µs, 20 with an exchange and its headers.
    """

    def __init__(self) -> None:
        self._renew()

    def target_of(self, data: bytes) -> bytes | None:
        """The target of a POST that keeps its connection; None where this is anything else than one of those."""
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

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._is_within = True

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_message_complete(self) -> None:
        self._is_within = False
        self._count += 1
        self._is_plain &= self._parser.should_keep_alive() and self._parser.get_method() == b"POST"
