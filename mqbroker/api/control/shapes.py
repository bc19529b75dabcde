"""The bodies, queries and answers of the control plane, including the fields that registries declare."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drf_spectacular.drainage import set_override
from rest_framework import serializers
from rest_framework.fields import empty

from mqbroker.api.control.fields import (
    Bounded,
    Choice,
    Json,
    JsonOrText,
    Number,
    Switch,
    Text,
    Time,
    Whole,
    Word,
    Words,
)
from mqbroker.api.control.openapi import inlined
from store.db import fields
from store.errors import MessageIllegal

MAX_NAMED_FIELDS = 5
Made = serializers.Field[Any, Any, Any, Any]


class Registered(serializers.Field[Any, Any, Any, Any]):
    """A placeholder in a shape. It stands for the fields that a registry declares, in a request or in an answer."""

    def __init__(self, declared: Sequence[fields.Field], *, makes: bool = False, answers: bool = False) -> None:
        super().__init__()
        self.declared, self.makes, self.answers = declared, makes, answers

    def each(self) -> Iterator[tuple[str, Made]]:
        """Yields the API's name of each field, and the field."""
        for one in self.declared:
            options: dict[str, Any] = {"allow_null": True} if one.unset else {}
            if one.source:
                options["source"] = one.source
            if self.answers:
                yield one.name, answered(one, options)
            else:
                options |= {"required": self.makes and one.needed, "help_text": one.sentence("null")}
                yield one.name, given(one, options)


class Shape(serializers.Serializer[Any]):
    """A JSON object in an answer of the API."""

    def get_fields(self) -> dict[str, Made]:
        found: dict[str, Made] = {}
        for name, field in super().get_fields().items():
            found.update(field.each() if isinstance(field, Registered) else {name: field})
        return found


class Given(Shape):
    """A body or a query. An unknown field is refused, and its name is in the refusal."""

    def run_validation(self, data: Any = empty) -> Any:
        if not isinstance(data, Mapping):
            raise MessageIllegal("The body is not a JSON object: give one, such as {}.")
        unknown = sorted(set(data) - set(self.fields))
        if unknown:
            named = ", ".join(name[:60] for name in unknown[:MAX_NAMED_FIELDS])
            raise MessageIllegal(f"There is no field {named} here: the fields are {', '.join(self.fields)}.")
        return super().run_validation(data)


def given(one: fields.Field, options: dict[str, Any]) -> Made:
    """A declared field as part of a request."""
    match one:
        case fields.Whole():
            return (Bounded if one.own_refusal else Whole)(min_value=one.least, max_value=one.most, **options)
        case fields.Number():
            return Number(min_value=one.least, max_value=one.most, **options)
        case fields.Text():
            return Text(min_length=1, max_length=one.most, **options)
        case fields.Words():
            options |= {"min_length": 1} if one.needed else {}
            return Words(child=Word(one.pattern, one.rule), max_length=one.most, **options)
    return answered(one, options)


def answered(one: fields.Field, options: dict[str, Any]) -> Made:
    """A declared field as part of an answer, without bounds: a stored value may be older than a bound."""
    match one:
        case fields.Choice():
            return Choice(one.component, one.choices, **options)
        case fields.Words():
            return serializers.ListField(child=serializers.CharField(), **options)
        case fields.Json():
            made = (JsonOrText if one.may_be_text else Json)(**options)
            schema = one.schema if isinstance(one.schema, dict) else inlined(one.schema)
            set_override(made, "field", schema)
            return made
    return ANSWERED[type(one)](**options)


ANSWERED: Mapping[type[fields.Field], type[Made]] = {
    fields.Whole: Whole,
    fields.Number: Number,
    fields.Switch: Switch,
    fields.Text: serializers.CharField,
    fields.Time: Time,
}
