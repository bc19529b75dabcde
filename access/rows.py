"""The rows that the statements of access return: one type per shape, its fields the columns in their order.

A test prepares every statement and compares its columns with its type.
"""

from typing import NamedTuple


class KeyRow(NamedTuple):
    """The holder of a key that has not expired, with the limits of the key and of its namespace; a limit of None does
    not apply.
    """

    id: int
    name: str
    scopes: list[str]
    messages_per_second: int | None
    bytes_per_second: int | None
    max_undecided: int | None
    namespace: str | None
    namespace_id: int | None
    messages_of_namespace: int | None
    bytes_of_namespace: int | None
    undecided_of_namespace: int | None

    @property
    def own_limits(self) -> "Limits":
        """The limits that were set for the key itself."""
        return Limits(self.messages_per_second, self.bytes_per_second, self.max_undecided)

    @property
    def limits_of_namespace(self) -> "Limits":
        """The limits that all keys of its namespace share."""
        return Limits(self.messages_of_namespace, self.bytes_of_namespace, self.undecided_of_namespace)


class Limits(NamedTuple):
    """The limits of a key or a namespace; None: no limit."""

    messages_per_second: int | None = None
    bytes_per_second: int | None = None
    max_undecided: int | None = None
