"""Fields that operators set: each is declared once, by the registry that keeps it.

The API makes its request and its answer of the declaration (`mqbroker/api/control/fields.py`), the console the input of
a form (`console/forms.py`).
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from django.db.models import Model

MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class Field:
    """A field by its name in the API, with its label in the console. `help`: what it does, without a full stop.

    `unset`: what null means; a field without it is never null. `default`: what it is where nothing is given of what is
    made. `needed`: nothing is made without it. `source`: the column, where that has another name.
    """

    name: str
    label: str
    _: KW_ONLY
    help: str = ""
    unset: str = ""
    default: str = ""
    needed: bool = False
    source: str = ""

    @property
    def column(self) -> str:
        """The column that keeps it."""
        return self.source or self.name

    def sentence(self, null: str) -> str:
        """All that is to be known of it; `null` is what null is called where it is read."""
        unset = self.unset and f"{null}: {self.unset}"
        meaning = "; ".join(text for text in (self.help, unset) if text)
        return " ".join(f"{text}." for text in (meaning, self.default and f"Default: {self.default}") if text)


@dataclass(frozen=True, slots=True)
class Whole(Field):
    """A whole number between two, both included. `own_refusal`: its registry refuses what is out of range, by a code of
    its own.
    """

    _: KW_ONLY
    least: int
    most: int
    own_refusal: bool = False


@dataclass(frozen=True, slots=True)
class Number(Field):
    """A number, with or without a fraction, between two, both included."""

    _: KW_ONLY
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Switch(Field):
    """True or false."""


@dataclass(frozen=True, slots=True)
class Choice(Field):
    """One of a few words; `component` is what the API's schema calls them."""

    _: KW_ONLY
    component: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Text(Field):
    """A text. `may_be_empty`: an empty one is a value, and does not stand for none. `is_long`: it may fill a line."""

    _: KW_ONLY
    most: int = MAX_TEXT
    may_be_empty: bool = False
    is_long: bool = False


@dataclass(frozen=True, slots=True)
class Words(Field):
    """A list of words of a pattern, which `rule` says in words. `between` parts them where they are one text.

    A form has those that are `offered` as boxes to tick.
    """

    _: KW_ONLY
    pattern: str
    rule: str
    most: int
    between: str
    offered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Time(Field):
    """A time in RFC 3339, with its offset."""


@dataclass(frozen=True, slots=True)
class Json(Field):
    """An object in JSON, or a text as well. `parse` raises what its registry refuses; `schema` is a JSON schema or the
    type that has it.
    """

    _: KW_ONLY
    parse: Callable[[Any], object]
    schema: Any
    may_be_text: bool = False


def of(model: type[Model], *declared: Field) -> tuple[Field, ...]:
    """The fields with the defaults of their columns in a model."""
    return tuple(replace(one, default=one.default or _default(model, one.column)) for one in declared)


def _default(model: type[Model], column: str) -> str:
    found: Any = model._meta.get_field(column)
    if not found.has_default() or callable(found.default):
        return ""
    return str(found.default).lower() if isinstance(found.default, bool) else str(found.default)


def named(declared: tuple[Field, ...], *names: str) -> tuple[Field, ...]:
    """The fields of these names, in their order."""
    return tuple(next(one for one in declared if one.name == name) for name in names)
