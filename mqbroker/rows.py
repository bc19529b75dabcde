"""The rows that the statements of mqbroker return: one type per shape, its fields the columns in their order.

A test prepares every statement and compares its columns with its type.
"""

from typing import Any, NamedTuple


class KeyRow(NamedTuple):
    """A row of find_key."""

    name: str
    scopes: Any
