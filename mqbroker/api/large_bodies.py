"""Decodes large JSON bodies in steps, so that no step blocks the event loop for more than some milliseconds.

A decoder in C blocks the event loop until it ends, even in another thread: 16 MB of `1,1,1` took 11 s and 1.9 GB. So
the body is first scanned, piece by piece. The scan refuses a body with more values than a valid request, and finds

1. the long texts, which are bodies of messages: each is decoded piece by piece;
2. the objects of the one list of messages or operations that a request may have: some are decoded at a time.

The rest of the body has the other fields, and is small.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from mqbroker.api.json_bodies import decode, no_json
from mqbroker.api.outline import AT_ONCE_BYTES, MANY_VALUES, Excess, Outline, Span, Work
from store.errors import MessageIllegal, Refusal
from store.messages import Message

Shape = TypeVar("Shape")
# A body of at most this size has few values in any case.
FEW_BYTES = 64 * 1024
# The fields of a message whose texts may be long.
BODIES = frozenset(("body", "body_base64"))

_text = msgspec.json.Decoder(str).decode


def is_large(body: bytes) -> bool:
    """Whether a body has to be decoded in steps."""
    if len(body) <= FEW_BYTES:
        return False
    return len(body) > AT_ONCE_BYTES or body.count(b",") + body.count(b"{") + body.count(b"[") > MANY_VALUES


def reading(shape: type[Shape], body: bytes) -> Work[Shape]:
    """Decodes a large body as `decode` does.

    Also raises MessageIllegal for more values or longer texts than a valid request has.
    """
    # mypy does not accept a class as Hashable.
    known: Any = shape
    name, kind = _list_of(known)
    outline = yield from _outline(shape, body)
    found = decode(shape, outline.beside())
    yield
    members: list[Any] = []
    for together in outline.groups():
        members += _members(kind, name, together)
        yield
    if members:
        setattr(found, name, members)
    yield from _restored(outline, [found, *members], (0, len(body)))
    return found


def reading_each(shape: Any, body: bytes, kind: Any) -> Work[list[tuple[Any, int]]]:
    """The objects of a list, each decoded as `kind` or replaced by its refusal, with its size in bytes.

    `shape` has the list, but does not decode its objects. For the rest of the body raises the errors of `reading`.
    """
    outline = yield from _outline(shape, body)
    decode(shape, outline.beside())
    found: list[tuple[Any, int]] = []
    for begin, end in outline.objects:
        try:
            one = decode(kind, outline.written(begin, end))
            yield from _restored(outline, [one], (begin, end))
        except Refusal as refusal:
            one = refusal
        found.append((one, end - begin))
        yield
    return found


def _outline(shape: Any, body: bytes) -> Work[Outline]:
    if (first := (body[:FEW_BYTES].lstrip() or body.lstrip())[:1]) != b"{":
        decode(shape, b"[]" if first == b"[" else first)
        raise no_json("it does not begin as an object")
    outline = Outline(body, _list_of(shape)[0])
    try:
        yield from outline.scan()
    except Excess as excess:
        name, before = outline.before_excess()
        if before:
            # If this field or an earlier one has another error, the other error is raised first.
            decode(shape, before)
        of_field = f"The field {name!r} of the request" if before else "The request"
        raise MessageIllegal(f"{of_field} has {excess}.") from excess
    return outline


def _members(kind: Any, name: str, together: bytes) -> list[Any]:
    try:
        found: list[Any] = decode(list[kind], together)
    except MessageIllegal as problem:
        # The path in the error does not contain the name of the list, because the list was decoded separately.
        raise MessageIllegal(str(problem).replace("`$[", f"`$.{name}[")) from problem
    return found


@cache
def _list_of(shape: Any) -> tuple[str, Any]:
    """The field of a shape that is a list of structs or raw objects, and their type; an empty name if there is none."""
    for field in msgspec.structs.fields(shape):
        for kind in get_args(field.type) if isinstance(field.type, UnionType) else (field.type,):
            if get_origin(kind) is list and _is_object(get_args(kind)[0]):
                return field.name, get_args(kind)[0]
    return "", None


def _is_object(kind: Any) -> bool:
    kinds = get_args(kind) or (kind,)
    return all(isinstance(one, type) and issubclass(one, (msgspec.Struct, msgspec.Raw)) for one in kinds)


def _restored(outline: Outline, found: Sequence[Any], within: Span) -> Work[None]:
    """Puts the long texts back in place of their marks."""
    left = outline.marks(within)
    messages = list(_messages(found)) if left else []
    for message in messages:
        for name in BODIES:
            span = left.pop(getattr(message, name) or "", None)
            if span is not None:
                setattr(message, name, (yield from _decoded(outline, span)))
    # A property of a message may also be named `body` or `body_base64`.
    for properties in [message.properties or {} for message in messages]:
        for name in properties.keys() & BODIES:
            if (span := left.pop(properties[name], None)) is not None:
                properties[name] = yield from _decoded(outline, span)
    for begin, end in left.values():
        raise MessageIllegal(f"A text field has {end - begin} bytes: only the body of a message may be so long.")


def _messages(found: Sequence[Any]) -> Iterator[Message]:
    """The decoded messages, including messages within transactions of several messages and acks."""
    for one in found:
        if isinstance(one, Message):
            yield one
        yield from getattr(one, "messages", None) or ()


def _decoded(outline: Outline, span: Span) -> Work[str]:
    parts: list[str] = []
    for part in outline.parts(span):
        try:
            parts.append(_text(b'"%s"' % part))
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise no_json(problem) from problem
        yield
    return "".join(parts)
