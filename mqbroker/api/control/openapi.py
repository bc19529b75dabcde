"""How drf-spectacular reads the control plane's views, and the JSON schemas of msgspec structs within them."""

from inspect import cleandoc
from typing import Any

import msgspec
from drf_spectacular.extensions import (
    OpenApiAuthenticationExtension,
    OpenApiSerializerExtension,
    OpenApiSerializerFieldExtension,
)
from drf_spectacular.openapi import AutoSchema


class ControlSchema(AutoSchema):
    """Bodies are JSON whatever their content type is, and the errors are those that every path has."""

    def get_summary(self) -> str:
        """The first sentence of the method's docstring."""
        return str(self.get_description()).partition(".")[0]

    def map_parsers(self) -> list[str]:
        return ["application/json"]


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # its registry has no types
    """API keys."""

    target_class = "mqbroker.rights.ApiKeyAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An API key, `mq_…`, made at /v1/api-keys."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # as above
    """The session of a console user."""

    target_class = "mqbroker.rights.ConsoleSession"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid", "description": "A console session."}


class GivenExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]  # as above
    """A body that a caller sends has no other fields than the named ones."""

    target_class = "mqbroker.api.control.shapes.Given"
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(  # type: ignore[no-untyped-call]  # as above
            self.target, direction, bypass_extensions=True
        )
        return {**schema, "additionalProperties": False}


class ChoiceExtension(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # as above
    """Each set of words is a component of its own name, wherever it is used."""

    target_class = "mqbroker.api.control.fields.Choice"

    def get_name(self) -> str:
        return str(self.target.component)

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.target.choices)}


def inlined(type_: Any) -> dict[str, Any]:
    """The schema of a type with its references resolved; for types that do not refer to themselves."""
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
    # A discriminator refers to components; the branches' own constants distinguish them, too.
    resolved = {name: _resolve(inner, definitions) for name, inner in node.items() if name != "discriminator"}
    if isinstance(node.get("description"), str):
        resolved["description"] = cleandoc(node["description"])
    return resolved
