"""Tells drf-spectacular how to read the control plane's views and the JSON schemas of msgspec structs in them."""

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
    """In the document all bodies are JSON, whatever their content type is, and every path has the common errors."""

    def get_summary(self) -> str:
        """The first sentence of the method's docstring, as the operation's summary."""
        return str(self.get_description()).partition(".")[0]

    def map_parsers(self) -> list[str]:
        return ["application/json"]


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # drf-spectacular has no types
    """API keys."""

    target_class = "mqbroker.rights.ApiKeyAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An API key, `mq_…`, made at /v1/api-keys."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # drf-spectacular has no types
    """The security scheme for the session of a console user."""

    target_class = "mqbroker.rights.ConsoleSession"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid", "description": "A console session."}


class GivenExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]  # drf-spectacular has no types
    """The schema of a request body forbids fields that it does not name."""

    target_class = "mqbroker.api.control.shapes.Given"
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(  # type: ignore[no-untyped-call]  # drf-spectacular has no types
            self.target, direction, bypass_extensions=True
        )
        return {**schema, "additionalProperties": False}


class ChoiceExtension(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # drf-spectacular has no types
    """Makes one schema component of each choice field's set of words, which all uses of the set refer to."""

    target_class = "mqbroker.api.control.fields.Choice"

    def get_name(self) -> str:
        return str(self.target.component)

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.target.choices)}


def inlined(type_: Any) -> dict[str, Any]:
    """The schema of a type without references: each is replaced by its definition.

    The type must not refer to itself.
    """
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
    # A discriminator refers to components; the branches also differ by their constant fields.
    resolved = {name: _resolve(inner, definitions) for name, inner in node.items() if name != "discriminator"}
    if isinstance(node.get("description"), str):
        resolved["description"] = cleandoc(node["description"])
    return resolved
