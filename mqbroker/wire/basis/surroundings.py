"""Data that a connection shares with other connections of its process, and the addresses of a socket."""

from typing import Protocol, TypeVar

from mqbroker.wire.admission import Admission, Serve

# A connection.
Of = TypeVar("Of", contravariant=True)


class Surroundings(Protocol[Of]):
    """The interface through which a connection uses the limits and lists that all connections of the process share."""

    serve: Serve
    admission: Admission
    is_closing: bool
    date: bytes

    def add(self, connection: Of) -> bool:
        """Adds a connection. Returns False if there is no room for the connection."""

    def discard(self, connection: Of) -> None:
        """Removes a connection that has ended."""

    def begin_dropping(self) -> bool:
        """Whether another refused body may be read and dropped now."""

    def end_dropping(self) -> None: ...

    def hold(self, size: int) -> bool:
        """Counts bytes of waiting requests. False if there is no room for them."""

    def read_later(self, connection: Of) -> None:
        """Notes a connection that has sent many frames. Its `go_on` is called after the turns of other connections."""


def address_of(given: object) -> tuple[str, int] | None:
    """Host and port of a socket's address; None if the socket no longer has an address."""
    return (str(given[0]), int(given[1])) if isinstance(given, tuple) and len(given) >= 2 else None
