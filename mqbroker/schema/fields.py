"""The fields of bodies in words, from the schemas of the OpenAPI document: the tables of docs/api.md."""

import json
from collections.abc import Iterator
from typing import Any

from store.naming import names

Document = dict[str, Any]
# A table may name an earlier call instead of repeating common fields: only if at least FEWEST_COMMON fields are common,
# and at most MOST_EXCEPTED differ.
FEWEST_COMMON, MOST_EXCEPTED = 3, 3
TYPES = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
}
NAME = f"^[{names.CHARACTERS}]{{1,{names.MAX_CHARACTERS}}}$"
# A field of several shapes, which the schema leaves open.
OPEN = {"filter": "tags or SQL: see [filters](filters.md)"}
# Names of schemas that describe one message within a body.
MESSAGES = ("Message", "BatchedMessage")
FORMATS = {"uuid": "a UUID", "date-time": "a time", "uri": "a URL"}
HEAD = ("|field|rule|default|", "|---|---|---|")


class Tables:
    """The tables of a page. A table names the fields of an earlier call instead of printing them again."""

    def __init__(self, schemas: Document) -> None:
        self._schemas = schemas
        self._printed: dict[str, dict[str, str]] = {}

    def of(self, label: str, operation: Document) -> Iterator[str]:
        """The lines of the table of a call's body; none if the call takes no body, or an empty one."""
        rows = self.rows(operation)
        if not rows:
            return
        earlier, common = max(
            ((other, _equal(rows, theirs)) for other, theirs in self._printed.items()),
            key=lambda one: len(one[1]),
            default=("", set[str]()),
        )
        excepted = [f"`{name}`" for name in self._printed.get(earlier, {}) if name not in rows]
        left = rows
        is_same = len(common) == len(rows) and not excepted
        if is_same or (len(common) >= FEWEST_COMMON and len(excepted) <= MOST_EXCEPTED):
            left = {name: row for name, row in rows.items() if name not in common}
            yield f"Takes the fields of `{earlier}`{' except ' + ', '.join(excepted) if excepted else ''}{_and(left)}"
            yield ""
        else:
            self._printed[label] = rows
        if left:
            yield from HEAD
            yield from left.values()
            yield ""

    def rows(self, operation: Document) -> dict[str, str]:
        """The row of each field of a call's body, by the field's name."""
        schema = self._resolved(
            operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        )
        needed = {
            *schema.get("required", ()),
            *(name for one in schema.get("allOf", ()) for name in one.get("required", ())),
        }
        fields = schema.get("properties", {}).items()
        return {name: self._row(name, field, is_needed=name in needed) for name, field in fields}

    def _row(self, name: str, field: Document, *, is_needed: bool) -> str:
        said, _, default = field.get("description", "").partition("Default: ")
        if default == "" and field.get("default") is not None:
            default = f"`{json.dumps(field['default'])}`"
        meaning = ". ".join(filter(None, (OPEN.get(name) or self._kind(field), said.strip().rstrip("."))))
        return f"|`{name}`|{meaning}|{'needed' if is_needed else default.rstrip('.')}|".replace("\n", " ")

    def _kind(self, field: Document) -> str:
        """The type of a field and its rule, in words."""
        field = self._resolved(field)
        if len(field.get("allOf", ())) == 1 and "properties" not in field:
            return self._kind(field["allOf"][0])
        alternatives: list[Document] = field.get("anyOf") or field.get("oneOf") or []
        branches = [one for one in alternatives if one != {"type": "null"}]
        if branches:
            return " or ".join(dict.fromkeys(self._kind(one) for one in branches))
        if "enum" in field:
            return "one of " + ", ".join(f"`{one}`" for one in field["enum"] if one is not None)
        kinds = field.get("type", "")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return " or ".join(self._plain(one, field) for one in kinds if one != "null") or "any value"

    def _plain(self, kind: str, field: Document) -> str:
        if kind == "array":
            items = field.get("items", {})
            inner = self._objects(items) or self._many(items)
            return f"a list of {inner}{_range(field, 'minItems', 'maxItems')}"
        if kind == "object" and "type" in (values := field.get("additionalProperties") or {}):
            return f"an object of {self._many(values)}{_range(field, 'minProperties', 'maxProperties')}"
        if kind == "string" and field.get("contentEncoding"):
            return str(field["contentEncoding"])
        if field.get("pattern") == NAME:
            return "a name"
        named = FORMATS.get(field.get("format", ""), TYPES.get(kind, kind))
        unit = " characters" if kind == "string" else ""
        return f"{named}{_range(field, 'minimum', 'maximum') or _range(field, 'minLength', 'maxLength', unit)}"

    def _objects(self, items: Document) -> str:
        """The objects of a list in words: the calls whose bodies have the same fields; empty for other items."""
        if items.get("$ref", "").rpartition("/")[2] in MESSAGES:
            return "objects with the fields of `POST /v1/messages`"
        tags = items.get("discriminator", {}).get("mapping", ())
        named = ", ".join(f"`{tag}`" for tag in tags)
        return f"objects with `op`: one of {named}" if named else ""

    def _many(self, items: Document) -> str:
        return self._kind(items).partition(",")[0].removeprefix("a ").removeprefix("an ").replace("text", "texts", 1)

    def _resolved(self, schema: Document) -> Document:
        while "$ref" in schema:
            found: Document = self._schemas[schema["$ref"].rpartition("/")[2]]
            schema = found
        return schema


def _and(left: Document) -> str:
    return ", and:" if left else "."


def _equal(rows: dict[str, str], theirs: dict[str, str]) -> set[str]:
    return {name for name, row in rows.items() if theirs.get(name) == row}


def _range(field: Document, low: str, high: str, unit: str = "") -> str:
    """The bounds of a number, a length or a count."""
    least, most = field.get(low), field.get(high)
    if most is None:
        return ", not empty" if least == 1 and low != "minimum" else f", at least {least:,}{unit}" if least else ""
    return f", {least:,} to {most:,}{unit}" if least is not None else f", at most {most:,}{unit}"
