"""What is wrong with a field of a request, and what to give, in the words of JSON instead of msgspec's types."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

# The form of msgspec's message: `Expected …, got … - at `$.messages[0].keys``.
PLACED = re.compile(r"(?P<text>.*?)(?: - at `(?P<key>key` in `)?\$(?P<path>[^`]*)`)?", re.DOTALL)
NAMED = re.compile(r"Object (?P<fault>missing required|contains unknown) field `(?P<name>.*)`", re.DOTALL)
FOUND = re.compile(r"got `(?P<found>\w+)`|value (?P<value>.+)", re.DOTALL)
RULE = re.compile(r"Expected `[^`]+`(?P<rule> (?:>|<|of length|matching).*)", re.DOTALL)
STEP = re.compile(r"\.?([^.\[\]]+)|(\[[^\]]*\])")
# The words for JSON's values, by msgspec's names.
VALUES = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
KINDS: dict[type[inspect.Type], str] = {
    inspect.StrType: "a text",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.ListType: "a list",
    inspect.DictType: "an object",
    inspect.StructType: "a JSON object",
    inspect.UUIDType: "a UUID such as 01900000-0000-7000-8000-000000000001",
    inspect.DateTimeType: "a time with its zone, such as 2026-01-31T12:00:00Z",
}
BODY = "body"
# msgspec does not say which name of an object has the wrong value.
ANY_NAME = "[...]"
JSON_IN_A_TEXT = r'; JSON goes in as a string, such as "{\"order\": 1}"'
MOST_CHARACTERS = 60


def sentence(problem: object, shape: Any, body: bytes = b"") -> str:
    """The fault that msgspec found in a request of this shape, as a sentence that says what to give.

    With the `body`, a JSON text, a field of a request without a shape (`object`) is named too.
    """
    placed = PLACED.fullmatch(str(problem))
    if placed is None or placed["key"]:
        return f"The request does not have the right shape: {problem}."
    path = placed["path"] or ""
    if shape is object and path.startswith(ANY_NAME):
        path = f".{_unreadable(body)}{path.removeprefix(ANY_NAME)}"
    types = list(_within([_type_of(shape)], path))
    place = path.lstrip(".")
    if place.endswith(ANY_NAME):
        place = f"A value of {place.removesuffix(ANY_NAME) or 'the request'}"
    if named := NAMED.fullmatch(placed["text"]):
        whole = f"{place}.{named['name']}" if place else named["name"]
        if named["fault"] == "missing required":
            return f"{whole} is missing: give {_wanted(_within(types, '.' + named['name']))}."
        return f"There is no field {whole[: 2 * MOST_CHARACTERS]} here: the fields are {', '.join(_fields(types))}."
    found = FOUND.search(placed["text"])
    is_what = "cannot be read" if found is None else f"is {_shown(found)}"
    rule = RULE.fullmatch(placed["text"])
    hint = rule["rule"] if rule else ""
    hint += JSON_IN_A_TEXT if place.endswith(BODY) and found and found["found"] in ("object", "array") else ""
    return f"{place or 'The body of the request'} {is_what}: give {_wanted(types)}{hint}."


def _unreadable(body: bytes) -> str:
    """The name of the first field whose value no type can hold: a number out of range."""
    for name, value in msgspec.json.decode(body, type=dict[str, msgspec.Raw]).items():
        try:
            msgspec.json.decode(value)
        except msgspec.ValidationError:
            return name[:MOST_CHARACTERS]
    return ANY_NAME


@cache
def _type_of(shape: Any) -> inspect.Type:
    return inspect.type_info(shape)


def _within(types: Sequence[inspect.Type], path: str) -> Iterator[inspect.Type]:
    """The types of the field at a path, of all shapes that a union may have."""
    types = list(_alternatives(types))
    if step := STEP.match(path):
        inner = [inner for one in types for inner in _step(one, step[1])]
        yield from _within(inner, path[step.end() :])
    else:
        yield from types


def _alternatives(types: Sequence[inspect.Type]) -> Iterator[inspect.Type]:
    for one in types:
        if isinstance(one, inspect.UnionType):
            yield from _alternatives(one.types)
        elif isinstance(one, inspect.Metadata):
            yield from _alternatives([one.type])
        else:
            yield one


def _step(one: inspect.Type, name: str | None) -> Iterator[inspect.Type]:
    if name is None:
        if isinstance(one, inspect.CollectionType):
            yield one.item_type
        elif isinstance(one, inspect.DictType):
            yield one.value_type
    elif isinstance(one, inspect.StructType):
        yield from (field.type for field in one.fields if field.encode_name == name)
        if name == one.tag_field:
            yield inspect.LiteralType((one.tag,))


def _fields(types: Sequence[inspect.Type]) -> list[str]:
    names = [field.encode_name for one in types if isinstance(one, inspect.StructType) for field in one.fields]
    return list(dict.fromkeys(names))


def _wanted(types: Iterator[inspect.Type] | Sequence[inspect.Type]) -> str:
    """The values that a field may have, in words; null is only named if the field may have no other value."""
    values: list[str] = []
    kinds: list[str] = []
    for one in types:
        if isinstance(one, inspect.LiteralType):
            values += map(str, one.values)
        elif isinstance(one, inspect.EnumType):
            values += [str(member.value) for member in one.cls]
        elif type(one) in KINDS:
            kinds.append(KINDS[type(one)])
    if values:
        kinds.append(f"one of {', '.join(dict.fromkeys(values))}" if len(values) > 1 else values[0])
    return " or ".join(dict.fromkeys(kinds)) or "another value"


def _shown(found: re.Match[str]) -> str:
    if found["found"]:
        return VALUES.get(found["found"], found["found"])
    value = found["value"]
    return value if len(value) <= MOST_CHARACTERS else f"{value[:MOST_CHARACTERS]}…"
