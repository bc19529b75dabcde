"""JSON schemas of msgspec structs."""

from inspect import cleandoc
from typing import Any

import msgspec


def inlined(type_: Any) -> dict[str, Any]:
    """The schema of a type, with what it refers to in its place; for types that do not refer to themselves."""
    schema = msgspec.json.schema(type_)
    definitions = schema.pop("$defs", {})
    resolved: dict[str, Any] = _resolve(schema, definitions)
    return resolved


def _resolve(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_resolve(inner, definitions) for inner in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _resolve(definitions[node["$ref"].rpartition("/")[2]], definitions)
    # A discriminator refers to components; the branches' own constants tell them apart as well.
    resolved = {name: _resolve(inner, definitions) for name, inner in node.items() if name != "discriminator"}
    if isinstance(node.get("description"), str):
        resolved["description"] = cleandoc(node["description"])
    return resolved
