"""Fields that take what the schema says and nothing that merely looks like it: "5" is no number, 1 is no switch."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from rest_framework import serializers
from rest_framework.fields import empty

from store.errors import MessageIllegal
from store.messages import Time as ZonedTime

MAX_NAMED_FIELDS = 5


class Shape(serializers.Serializer[Any]):
    """An object of the API. As a request it refuses fields that it does not know, and names them."""

    def run_validation(self, data: Any = empty) -> Any:
        if isinstance(data, Mapping):
            self._judge_names(data)
        elif data is not empty:
            raise MessageIllegal("The body is no JSON object: give one, such as {}.")
        return super().run_validation(data)

    def _judge_names(self, data: Mapping[str, Any]) -> None:
        unknown = sorted(set(data) - set(self.fields))
        if unknown:
            named = ", ".join(name[:60] for name in unknown[:MAX_NAMED_FIELDS])
            raise MessageIllegal(f"There is no field {named} here: the fields are {', '.join(self.fields) or 'none'}.")


class Whole(serializers.IntegerField):
    """A whole number."""

    default_error_messages = {  # noqa: RUF012  # Django REST framework declares it so
        "invalid": "it is no whole number.",
        "min_value": "it is below {min_value}.",
        "max_value": "it is above {max_value}.",
        "null": "it cannot be null.",
        "required": "it is missing.",
    }

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:
            self.fail("invalid")
        return super().to_internal_value(data)


class Number(serializers.FloatField):
    """A number, with or without a fraction."""

    default_error_messages = {**Whole.default_error_messages, "invalid": "it is no number."}  # noqa: RUF012  # as above

    def to_internal_value(self, data: Any) -> float:
        if type(data) not in (int, float):
            self.fail("invalid")
        return super().to_internal_value(data)


class Switch(serializers.BooleanField):
    """True or false."""

    default_error_messages = {**Whole.default_error_messages, "invalid": "it is neither true nor false."}  # noqa: RUF012  # as above

    def to_internal_value(self, data: Any) -> bool:
        if type(data) is not bool:
            self.fail("invalid")
        return bool(data)


class Text(serializers.CharField):
    """A text, kept as it came."""

    default_error_messages = {  # noqa: RUF012  # as above
        **Whole.default_error_messages,
        "invalid": "it is no text.",
        "blank": "it is empty.",
        "max_length": "it is longer than {max_length} characters.",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        if type(data) is not str:
            self.fail("invalid")
        return data


class Choice(serializers.ChoiceField):
    """One of a few words."""

    default_error_messages = {**Whole.default_error_messages, "invalid_choice": "it is none of {choices}."}  # noqa: RUF012  # as above

    def to_internal_value(self, data: Any) -> str:
        if type(data) is not str or data not in self.choices:
            self.fail("invalid_choice", choices=", ".join(map(str, self.choices)))
        return data


class Time(serializers.DateTimeField):
    """A time in RFC 3339, with its offset."""

    default_error_messages = {**Whole.default_error_messages, "invalid": "it is no RFC 3339 time with an offset."}  # noqa: RUF012  # as above

    def to_internal_value(self, value: Any) -> datetime:
        try:
            return msgspec.convert(value, ZonedTime)
        except msgspec.ValidationError:
            self.fail("invalid")
