"""How drf-spectacular reads the control plane's views."""

from typing import Any

from drf_spectacular.extensions import (
    OpenApiAuthenticationExtension,
    OpenApiSerializerExtension,
    OpenApiSerializerFieldExtension,
)
from drf_spectacular.openapi import AutoSchema


class ControlSchema(AutoSchema):
    """Bodies are JSON whatever the content type says, and the errors are those that every path has."""

    def get_summary(self) -> str:
        """The first sentence of what the view's method says of itself."""
        return str(self.get_description()).partition(".")[0]

    def map_parsers(self) -> list[str]:
        return ["application/json"]


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # its registry has no types
    """API keys."""

    target_class = "mqbroker.access.ApiKeyAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An API key, `mq_…`, made at /v1/api-keys."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # as above
    """Whoever is signed in to the console."""

    target_class = "mqbroker.access.ConsoleSession"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid", "description": "A console session."}


class GivenExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]  # as above
    """What a caller gives has no fields but those that are named."""

    target_class = "mqbroker.api.control.fields.Given"
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
