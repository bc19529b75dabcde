"""The forms of actions: Django forms with inputs for the fields that registries declare."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec
from django import forms
from django.forms import ValidationError

from console import inputs
from store.db import fields
from store.errors import MessageIllegal, Refusal
from store.messages import strict_json, times

MAX_CHARACTERS = 4000
YES_NO = (("no", "no"), ("yes", "yes"))
WITHOUT_SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
WITHOUT_ZONE = re.compile(rf"{WITHOUT_SECONDS.pattern}:\d\d(\.\d+)?")
OUT_OF_RANGE = ("invalid", "min_value", "max_value")


class Written(forms.Field):
    """An input whose text is converted to a value and back."""

    def prepare_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, str) else self.write(value)

    def to_python(self, value: Any) -> Any:
        text = str(value or "").strip()
        if len(text) > MAX_CHARACTERS:
            raise ValidationError(f"It is longer than {MAX_CHARACTERS} characters.")
        return self.read(text) if text else None

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.prepare_value(initial) != self.prepare_value(self.to_python(data)))

    def read(self, text: str) -> Any:
        """The value of a text that is not empty. Raises ValidationError. Subclasses define it."""
        raise NotImplementedError

    def write(self, value: Any) -> str:
        """The text that `read` converts to this value. Subclasses define it."""
        raise NotImplementedError


class YesOrNo(Written):
    """Yes or no."""

    widget = forms.Select(choices=YES_NO)

    def read(self, text: str) -> bool:
        if text not in dict(YES_NO):
            raise ValidationError("It is neither yes nor no.")
        return text == "yes"

    def write(self, value: Any) -> str:
        return "yes" if value else "no"


class Words(Written):
    """Words that match a pattern, separated by blanks or commas; only by commas if a word may contain blanks."""

    widget = inputs.Wide

    def __init__(self, declared: fields.Words, **options: Any) -> None:
        super().__init__(widget=inputs.Offered(declared.offered) if declared.offered else None, **options)
        self.declared = declared
        self.help_text += f" Apart by {'commas' if declared.between == ',' else 'blanks'}."

    def read(self, text: str) -> list[str] | None:
        one = self.declared
        parts = text.split(",") if one.between == "," else text.replace(",", " ").split()
        words = [part.strip() for part in parts if part.strip()]
        wrong = [word for word in words if not re.fullmatch(one.pattern, word)]
        if wrong or len(words) > one.most:
            raise ValidationError(f"{', '.join(wrong)[:100]!r}: {one.most} at most, and each is {one.rule}.")
        return words or None

    def write(self, value: Any) -> str:
        return ", ".join(value)


class Moment(Written):
    """A time in UTC or with its zone. The value is ISO 8601 text in UTC, because an action's parameters are JSON."""

    # The browser shows a calendar, which sends a time without a zone.
    widget = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"})

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.help_text = f"{self.help_text} In UTC.".strip()

    def read(self, text: str) -> str:
        whole = f"{text}:00" if WITHOUT_SECONDS.fullmatch(text) else text
        zoned = f"{whole}Z" if WITHOUT_ZONE.fullmatch(whole) else whole
        try:
            return times.read(zoned).isoformat()
        except ValueError as problem:
            raise ValidationError("It is no time, such as 2027-01-31T12:00:00Z.") from problem

    def prepare_value(self, value: Any) -> Any:
        """The text for the browser's calendar; a text that is no time is shown unchanged."""
        if value in (None, ""):
            return value
        try:
            moment = value if isinstance(value, datetime) else datetime.fromisoformat(self.read(str(value).strip()))
        except ValidationError:
            return value
        return self.write(moment)

    def write(self, value: datetime) -> str:
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")


class Json(Written):
    """An object in JSON, or a plain text where the field allows a text."""

    widget = inputs.Wide

    def __init__(self, declared: fields.Json, **options: Any) -> None:
        super().__init__(**options)
        self.declared = declared

    def read(self, text: str) -> object:
        try:
            is_text = self.declared.may_be_text and not text.startswith("{")
            value: object = text if is_text else strict_json.decode(text.encode(), object)
            self.declared.parse(value)
        except Refusal as refusal:
            raise ValidationError(refusal.detail) from refusal
        except (ValueError, RecursionError, msgspec.MsgspecError) as problem:
            raise ValidationError(f"It is no JSON: {problem}.") from problem
        return value

    def write(self, value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)


def made(one: fields.Field) -> forms.Field:
    """The input of a declared field."""
    errors = {"required": "It is missing."}
    options: dict[str, Any] = {"label": one.label, "help_text": one.sentence("empty"), "error_messages": errors}
    options["required"] = one.needed
    match one:
        case fields.Whole():
            errors |= dict.fromkeys(OUT_OF_RANGE, f"It is no whole number from {one.least} to {one.most}.")
            return forms.IntegerField(min_value=one.least, max_value=one.most, **options)
        case fields.Number():
            errors |= dict.fromkeys(OUT_OF_RANGE, f"It is no number from {one.least} to {one.most}.")
            return forms.FloatField(min_value=one.least, max_value=one.most, **options)
        case fields.Choice():
            errors["invalid_choice"] = f"It is none of {', '.join(one.choices)}."
            return forms.ChoiceField(choices=[(choice, choice) for choice in one.choices], **options)
        case fields.Text():
            errors["max_length"] = f"It is longer than {one.most} characters."
            return forms.CharField(
                max_length=one.most,
                empty_value="" if one.may_be_empty else None,
                strip=not one.has_lines,
                widget=inputs.of_text(one),
                **options,
            )
        case fields.Words():
            return Words(one, **options)
        case fields.Json():
            return Json(one, **options)
    return (Moment if isinstance(one, fields.Time) else YesOrNo)(**options)


def shown_first(one: fields.Field) -> str | None:
    """The value that the form of a new object shows: otherwise a list of choices would show its first choice."""
    return (one.default or None) if isinstance(one, fields.Choice) else None


class Parameters(forms.Form):
    """The form of an action's parameters, prefilled with `standing`, the current columns that they change.

    A complete `given` is the filled-in form; an incomplete one, as in a link, only prefills the form.
    """

    def __init__(
        self,
        declared: Sequence[fields.Field],
        given: Mapping[str, str],
        standing: Mapping[str, object] | None = None,
        *,
        posted: bool = False,
    ) -> None:
        named = {one.column: made(one) for one in declared}
        stands = {one.column: (standing or {}).get(one.column, shown_first(one)) for one in declared}
        texts = {name: str(named[name].prepare_value(value)) for name, value in stands.items() if value is not None}
        typed = {name: given[name] for name in named if name in given}
        data = {**texts, **typed}
        is_whole = all(name in data for name, one in named.items() if one.required)
        is_filled = posted or (is_whole and bool(typed or not named))
        super().__init__(data if is_filled else None, initial=stands if is_filled else {**stands, **typed})
        self.fields.update(named)

    @cached_property
    def values(self) -> dict[str, Any]:
        """The values to set, by column: values that differ from the current ones."""
        return {name: self.cleaned_data[name] for name in self.changed_data} if self.is_valid() else {}

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        """The label of each changed value, with the texts before and after the change."""
        return [
            (str(self.fields[name].label), self._text(name, self.initial[name]), self._text(name, value))
            for name, value in self.values.items()
        ]

    def _text(self, name: str, value: object) -> str:
        text = self.fields[name].prepare_value(value)
        # The calendar's text has no zone.
        zone = " UTC" if text and isinstance(self.fields[name], Moment) else ""
        return "" if text is None else f"{text}{zone}"


def read(declared: Sequence[fields.Field], given: Mapping[str, str]) -> dict[str, Any]:
    """The values of the fields in an address, by column; fields that the address leaves out are missing.

    Raises MessageIllegal, which names the first invalid field.
    """
    form = Parameters(declared, given, posted=True)
    for name, errors in form.errors.items():
        raise MessageIllegal(f"{form.fields[name].label}: {' '.join(map(str, errors))}")
    empty = {one.column: [None] if isinstance(one, fields.Text) else [None, ""] for one in declared}
    return {name: value for name, value in form.cleaned_data.items() if name in given and value not in empty[name]}
