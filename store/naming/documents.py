"""Replaces names of topics and groups: in the decoded body of a request, and in the JSON of an answer."""

from collections.abc import Callable, Generator, Sequence
from functools import cache
from typing import Any, get_args

import msgspec
from msgspec import Raw

# The JSON fields whose value is the name of a topic, a group or a subscription.
NAMING = frozenset(("topic", "producer_group", "group", "to_topic", "subscription", "name"))
# The field whose content the client chooses. In this field only names that the broker adds, NAMING_PROPERTIES, are
# changed.
OWN_WORDS = "properties"
NAMING_PROPERTIES = frozenset(("RETRY_TOPIC", "REAL_TOPIC", "PGROUP", "DLQ_ORIGIN_TOPIC"))
# The field with the sentence of a refusal, which may contain names of the request.
SENTENCE = "detail"
Changed = Callable[[str], str]
# The deepest name is in a message of a transaction in a list, five levels deep.
MAX_DEPTH = 8

_fields = msgspec.json.Decoder(dict[str, Raw])
_entries = msgspec.json.Decoder(list[Raw])
_text = msgspec.json.Decoder(str)


def wrap_names(given: object, wrap: Changed, depth: int = MAX_DEPTH) -> None:
    """Changes the names in the decoded body of a request: in fields of structs, or of JSON objects."""
    if not depth:
        return
    if isinstance(given, list):
        for one in given:
            wrap_names(one, wrap, depth - 1)
    elif isinstance(given, dict):
        _wrap_names_of_object(given, wrap, depth)
    elif isinstance(given, msgspec.Struct):
        names, nested = _names_of(type(given))
        for name in names:
            if (value := getattr(given, name)) is not None:
                setattr(given, name, wrap(value))
        for name in nested:
            wrap_names(getattr(given, name), wrap, depth - 1)


def _wrap_names_of_object(given: dict[str, object], wrap: Changed, depth: int) -> None:
    for name, value in given.items():
        if isinstance(value, str):
            given[name] = wrap(value) if name in NAMING else value
        elif name != OWN_WORDS:
            wrap_names(value, wrap, depth - 1)


@cache
def _names_of(struct: type[msgspec.Struct]) -> tuple[Sequence[str], Sequence[str]]:
    """The fields of a struct that hold a name, and the fields that hold structs."""
    fields = msgspec.structs.fields(struct)
    return [one.name for one in fields if one.name in NAMING], [one.name for one in fields if _has_structs(one.type)]


def _has_structs(kind: Any) -> bool:
    return (isinstance(kind, type) and issubclass(kind, msgspec.Struct)) or any(map(_has_structs, get_args(kind)))


def rewritten(content: bytes, change: Changed, sentence: Changed, depth: int = MAX_DEPTH) -> bytes:
    """The JSON of an answer with names and sentences changed. All other bytes are kept; message bodies are not decoded.

    `depth` limits the levels that are parsed, because parsing each level reads all levels below it again. Below these
    levels there are no names.
    """
    content = content.lstrip()
    if depth and content.startswith(b"{"):
        given = _fields.decode(content)
        fields = {name: Raw(_field(name, bytes(value), change, sentence, depth - 1)) for name, value in given.items()}
        return msgspec.json.encode(fields)
    if depth and content.startswith(b"["):
        entries = _entries.decode(content)
        return b"[%s]" % b",".join([rewritten(bytes(entry), change, sentence, depth - 1) for entry in entries])
    return content


def rewriting(content: bytes, change: Changed, sentence: Changed) -> Generator[None, None, bytes]:
    """Does what `rewritten` does for a large object, with a pause after each entry of the object's lists."""
    fields: dict[str, Raw] = {}
    for name, value in _fields.decode(content).items():
        if not bytes(value).startswith(b"["):
            fields[name] = Raw(_field(name, bytes(value), change, sentence, MAX_DEPTH - 1))
            continue
        entries = []
        for entry in _entries.decode(value):
            entries.append(rewritten(bytes(entry), change, sentence, MAX_DEPTH - 2))
            yield
        fields[name] = Raw(b"[%s]" % b",".join(entries))
    return msgspec.json.encode(fields)


def _field(name: str, value: bytes, change: Changed, sentence: Changed, depth: int) -> bytes:
    if value.startswith(b'"'):
        if name == SENTENCE:
            return _text_changed(value, sentence)
        return _text_changed(value, change) if name in NAMING else value
    if name != OWN_WORDS:
        return rewritten(value, change, sentence, depth)
    given = _fields.decode(value) if value.startswith(b"{") else {}
    if not given.keys() & NAMING_PROPERTIES:
        return value
    return msgspec.json.encode(
        {
            one: Raw(_text_changed(bytes(text), change)) if one in NAMING_PROPERTIES else text
            for one, text in given.items()
        }
    )


def _text_changed(value: bytes, change: Changed) -> bytes:
    return msgspec.json.encode(change(_text.decode(value)))
