"""What a connection shares with the others of its process, and what its socket says of its ends."""

from typing import Protocol, TypeVar

from mqbroker.wire.admission import Admission, Serve

# A connection.
Of = TypeVar("Of", contravariant=True)


class Surroundings(Protocol[Of]):
    """What a connection shares with the others of its process."""

    serve: Serve
    admission: Admission
    is_closing: bool
    date: bytes

    def add(self, connection: Of) -> bool:
        """Whether there is room for one more."""

    def discard(self, connection: Of) -> None:
        """The connection has ended."""

    def begin_dropping(self) -> bool:
        """Whether one more refused body may be read and dropped."""

    def end_dropping(self) -> None: ...

    def hold(self, size: int) -> bool:
        """Counts bytes of requests that wait; whether there is room for so many."""

    def read_later(self, connection: Of) -> None:
        """Has a connection that has read many frames `go_on` when it is its turn."""


def address_of(given: object) -> tuple[str, int] | None:
    """Host and port of a socket's address; None where it has none any more."""
    return (str(given[0]), int(given[1])) if isinstance(given, tuple) and len(given) >= 2 else None
