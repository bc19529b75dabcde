"""Serializer fields that accept only values of the schema's type: "5" is not a number, 1 is not a boolean."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rest_framework import serializers

from store.messages import times


class Strict(serializers.Field[Any, Any, Any, Any]):
    """Base of fields whose value must already have the right JSON type."""

    types: tuple[type, ...] = ()
    default_error_messages = {  # noqa: RUF012  # Django REST framework collects this from each class
        "null": "it cannot be null.",
        "required": "it is missing.",
        "min_value": "it is below {min_value}.",
        "max_value": "it is above {max_value}.",
    }

    def to_internal_value(self, data: Any) -> Any:
        if type(data) not in self.types:
            self.fail("invalid")
        return super().to_internal_value(data)


class Whole(Strict, serializers.IntegerField):
    """A whole number."""

    types = (int,)
    default_error_messages = {"invalid": "it is no whole number."}  # noqa: RUF012  # Django REST framework collects this from each class


class Bounded(Whole):
    """A whole number. The schema shows its bounds; a registry validates them and raises its own refusal."""

    def __init__(self, min_value: int, max_value: int, **options: Any) -> None:
        super().__init__(**options)
        self.min_value, self.max_value = min_value, max_value


class Number(Strict, serializers.FloatField):
    """A number, with or without a fraction."""

    types = (int, float)
    default_error_messages = {"invalid": "it is not a number."}  # noqa: RUF012  # Django REST framework collects this from each class


class Switch(Strict, serializers.BooleanField):
    """True or false."""

    types = (bool,)
    default_error_messages = {"invalid": "it is neither true nor false."}  # noqa: RUF012  # Django REST framework collects this from each class


class Text(Strict, serializers.CharField):
    """A text, which is not stripped."""

    types = (str,)
    default_error_messages = {  # noqa: RUF012  # Django REST framework collects this from each class
        "invalid": "it is no text.",
        "blank": "it is empty.",
        "max_length": "it is longer than {max_length} characters.",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)


class Choice(Strict, serializers.ChoiceField):
    """A field whose value is one of a few words; `component` is the name of these words in the schema."""

    types = (str,)

    def __init__(self, component: str, choices: Sequence[str], **options: Any) -> None:
        self.component = component
        sentence = f"it is none of {', '.join(choices)}."
        super().__init__(choices, error_messages={"invalid": sentence, "invalid_choice": sentence}, **options)


class Word(Strict, serializers.RegexField):
    """A text that matches a pattern."""

    types = (str,)

    def __init__(self, pattern: str, rule: str, **options: Any) -> None:
        # Django would search with `$`, which also matches before a final newline.
        whole = re.compile(pattern.removesuffix("$") + r"\Z")
        super().__init__(
            whole, error_messages={"invalid": f"{rule}."}, help_text=rule, trim_whitespace=False, **options
        )


class Words(Strict, serializers.ListField):
    """A list of texts."""

    types = (list,)
    default_error_messages = {  # noqa: RUF012  # Django REST framework collects this from each class
        "invalid": "it is no list.",
        "min_length": "it has fewer than {min_length}.",
        "max_length": "it has more than {max_length}.",
    }


class Time(serializers.DateTimeField):
    """A time in RFC 3339, with its offset."""

    default_error_messages = {  # noqa: RUF012  # Django REST framework collects this from each class
        **Strict.default_error_messages,
        "invalid": "it is no RFC 3339 time with an offset, such as 2026-01-01T00:00:00Z.",
    }

    def to_representation(self, value: datetime) -> str:
        return times.written(value)

    def to_internal_value(self, value: Any) -> datetime:
        try:
            return times.read(value)
        except ValueError:
            self.fail("invalid")


class Json(Strict, serializers.JSONField):
    """A JSON object; a registry validates its contents."""

    types: tuple[type, ...] = (dict,)
    default_error_messages = {"invalid": "it is no object."}  # noqa: RUF012  # Django REST framework collects this from each class


class JsonOrText(Json):
    """A JSON object or a text; a registry validates its contents."""

    types = (str, dict)
    default_error_messages = {"invalid": "it is neither a text nor an object."}  # noqa: RUF012  # Django REST framework collects this from each class
