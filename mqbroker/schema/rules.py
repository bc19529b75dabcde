"""The rules for fields that the data plane's structs do not declare, because validating by hand is faster."""

from inspect import cleandoc
from typing import Any

from delivery.receipts.given import MAX_HANDLES
from store.messages import MAX_SHARDING_KEY
from store.messages.properties import MAX_PROPERTIES
from store.messages.rules import MAX_BORN_HOST, MAX_RECONSUME_TIMES
from store.naming import names
from transactions import schedule
from transactions.checks.polling import MAX_TRANSACTIONS

BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
NO_CONTROL = r"^[^\u0000-\u001f\u007f-\u009f]*$"
NAME = {"type": "string", "pattern": f"^[{names.CHARACTERS}]{{1,{names.MAX_CHARACTERS}}}$"}


def rules(settings: Any) -> dict[str, dict[str, Any]]:
    """The schema rule of each field by name; a rule holds in every request that has the field."""
    return {
        "topic": NAME,
        "producer_group": NAME,
        "group": NAME,
        "tags": {"type": "string", "minLength": 1},
        "keys": {"type": "array", "items": {"type": "string", "minLength": 1}},
        "properties": {
            "type": "object",
            "propertyNames": {"type": "string", "minLength": 1, "pattern": NO_CONTROL},
            "additionalProperties": {"type": "string", "pattern": NO_CONTROL},
            "maxProperties": MAX_PROPERTIES,
        },
        "sharding_key": {"type": "string", "minLength": 1, "maxLength": MAX_SHARDING_KEY},
        "body": {"type": "string", "minLength": 1},
        "body_base64": {"type": "string", "minLength": 4, "pattern": BASE64, "contentEncoding": "base64"},
        "born_host": {"type": "string", "minLength": 1, "maxLength": MAX_BORN_HOST},
        "max_reconsume_times": {"type": "integer", "minimum": 0, "maximum": MAX_RECONSUME_TIMES},
        "queue_id": {"type": "integer", "minimum": 0},
        "delay_level": {"type": "integer", "minimum": 0},
        "delay_seconds": {"type": "number", "minimum": 0, "maximum": settings.MAX_TIMER_DELAY_SECONDS},
        "check_immunity_seconds": {"type": "number", "maximum": schedule.longest_seconds()},
        "max_messages": {"type": "integer", "minimum": 1, "maximum": settings.MAX_RECEIVE_MESSAGES},
        "max_transactions": {"type": "integer", "minimum": 1, "maximum": MAX_TRANSACTIONS},
        "invisible_seconds": {
            "type": "number",
            "minimum": settings.MIN_INVISIBLE_SECONDS,
            "maximum": settings.MAX_INVISIBLE_SECONDS,
        },
        "wait_seconds": {"type": "number", "minimum": 0, "maximum": settings.MAX_WAIT_SECONDS},
        "receipt_handles": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_HANDLES},
        "messages": {"minItems": 1},
    }


# Requirements that the structs cannot express, because the fields have defaults.
ONE_BODY = {"oneOf": [{"required": ["body"]}, {"required": ["body_base64"]}]}
A_MESSAGE = {"required": ["topic"], **ONE_BODY}
ONE_OR_SEVERAL = {"anyOf": [A_MESSAGE, {"required": ["messages"]}]}
NEEDED = {
    "Message": A_MESSAGE,
    "SendOperation": A_MESSAGE,
    "BatchedMessage": ONE_BODY,
    "BeginTransaction": ONE_OR_SEVERAL,
    "HalfOperation": ONE_OR_SEVERAL,
}


def narrow(schemas: dict[str, Any], settings: Any) -> dict[str, Any]:
    """The schemas of msgspec, with the rules added to the schemas of requests."""
    known = rules(settings)
    return {name: _narrowed(name, _described(schema), known) for name, schema in schemas.items()}


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its struct's docstring as one text without line breaks."""
    return {**schema, "description": cleandoc(schema.get("description", ""))}


def _narrowed(name: str, schema: dict[str, Any], known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    # Only schemas of requests forbid unknown fields.
    if schema.get("additionalProperties") is not False:
        return schema
    properties = {field: _field(inner, known.get(field, {})) for field, inner in schema["properties"].items()}
    narrowed = {**schema, "properties": properties}
    return {**narrowed, "allOf": [NEEDED[name]]} if name in NEEDED else narrowed


def _field(schema: dict[str, Any], rule: dict[str, Any]) -> dict[str, Any]:
    """Adds the rule to the branches other than null.

    If the rule forbids an empty text, removes the empty default, which only means that the field was left out.
    """
    if schema.get("default") == "" and ("pattern" in rule or rule.get("minLength")):
        schema = {name: value for name, value in schema.items() if name != "default"}
    if "anyOf" not in schema:
        return {**schema, **rule}
    branches = [branch if branch == {"type": "null"} else {**branch, **rule} for branch in schema["anyOf"]]
    return {**schema, "anyOf": branches}
