"""The rows that the statements of access return: one type per shape, its fields the columns in their order.

A test prepares every statement and compares its columns with its type.
"""

from typing import NamedTuple


class KeyRow(NamedTuple):
    """The holder of an API key that has not expired, with the key's limits; None for no limit."""

    id: int
    name: str
    scopes: list[str]
    messages_per_second: int | None
    bytes_per_second: int | None
    max_undecided: int | None
