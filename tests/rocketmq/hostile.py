"""Requests of the protocol with one field at a time that no client sends: texts, times, numbers, enumerations, maps."""

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

TEXTS = ("\0", "a\0b", "\x1b[0m\n", "\N{REPLACEMENT CHARACTER}\U0010ffff", "x" * 70_000, "%", " ", "../a", "a|b")
NUMBERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), -1, 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), -1, 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (2**32 - 1,),
    FieldDescriptor.CPPTYPE_UINT64: (2**64 - 1,),
    FieldDescriptor.CPPTYPE_ENUM: (-1, 99, 2**31 - 1),
    FieldDescriptor.CPPTYPE_BOOL: (True,),
    FieldDescriptor.CPPTYPE_FLOAT: (float("nan"), float("inf"), -1.0),
    FieldDescriptor.CPPTYPE_DOUBLE: (float("nan"), float("inf"), -1.0),
}
# Seconds and nanoseconds: beyond 64 bits' years, before the year 1, at its begin, at the end of 9999, and behind it.
SECONDS = (-(2**63), 2**63 - 1, -62_135_596_801, -62_135_596_800, 253_402_300_799, 253_402_300_800, 315_576_000_001, -1)
TIMES = [*((seconds, 0) for seconds in SECONDS), (1, -1), (-1, 1), (0, 2**31 - 1), (253_402_300_799, 999_999_999)]
MAPS = (
    {"\0": "a"},
    {"a": "\0"},
    {"": "a"},
    {"a": ""},
    {"a b": "c"},
    {"x" * 70_000: "a"},
    {str(n): "" for n in range(5000)},
)
OF_TIME = ("google.protobuf.Timestamp", "google.protobuf.Duration")
MOST_DEEP = 6


def variants(base: Message) -> Iterator[tuple[str, Message]]:
    """A request, and each of the same with one hostile value; with the field's path and the value."""
    yield "as it is", base
    for path, value in _hostile(base.DESCRIPTOR, 0):
        changed = type(base)()
        changed.CopyFrom(base)
        _set(changed, path, value)
        yield f"{'.'.join(path)}={str(value)[:40]!r}", changed


def _hostile(descriptor: Any, depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    for field in descriptor.fields if depth < MOST_DEEP else ():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            values: Any = MAPS
        elif field.message_type is not None and field.message_type.full_name in OF_TIME:
            values = TIMES
        elif field.message_type is not None:
            for path, value in _hostile(field.message_type, depth + 1):
                yield (field.name, *path), value
            continue
        elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            values = (b"", b"\0") if field.type == FieldDescriptor.TYPE_BYTES else TEXTS
        else:
            values = NUMBERS[field.cpp_type]
        for value in values:
            yield (field.name,), value


def _set(message: Any, path: tuple[str, ...], value: Any) -> None:
    *above, last = path
    for name in above:
        inner = getattr(message, name)
        if hasattr(inner, "add"):
            inner = inner[0] if inner else inner.add()
        else:
            inner.SetInParent()
        message = inner
    field = getattr(message, last)
    if isinstance(value, dict):
        field.clear()
        field.update(value)
    elif isinstance(value, tuple):
        time = field.add() if hasattr(field, "add") else field
        time.seconds, time.nanos = value
    elif hasattr(field, "append"):
        field.append(value)
    else:
        setattr(message, last, value)
