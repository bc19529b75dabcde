"""PostgreSQL array literals: an array per row travels as text, because unnest flattens arrays of arrays."""

from collections.abc import Iterable


def literal(values: Iterable[object]) -> str:
    """Numbers and ids as an array literal, None as NULL: `{1,2,NULL}`."""
    return "{" + ",".join("NULL" if value is None else str(value) for value in values) + "}"
