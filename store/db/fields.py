"""Fields that operators set: each is declared once, by the registry that keeps it.

From the declaration the API makes the fields of its request and answer (`mqbroker/api/control/fields.py`), and the
console the input of a form (`console/forms.py`).
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from django.db.models import Model

MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class Field:
    """A field by its name in the API, with its label in the console. `help`: what it does, without a full stop.

    `unset`: the meaning of null; a field without `unset` is never null. `default`: the value of a new object whose
    request lacks the field. `needed`: a new object must have the field. `source`: the column, if its name is not the
    field's.
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
        """The column in which the field is stored."""
        return self.source or self.name

    def sentence(self, null: str) -> str:
        """The sentences that explain the field; `null` is the word for null where the sentences are read."""
        unset = self.unset and f"{null}: {self.unset}"
        meaning = "; ".join(text for text in (self.help, unset) if text)
        return " ".join(f"{text}." for text in (meaning, self.default and f"Default: {self.default}") if text)


@dataclass(frozen=True, slots=True)
class Whole(Field):
    """A whole number from `least` to `most`. `own_refusal`: the registry refuses others, by a special code."""

    _: KW_ONLY
    least: int
    most: int
    own_refusal: bool = False


@dataclass(frozen=True, slots=True)
class Number(Field):
    """A number from `least` to `most`, with or without a fraction."""

    _: KW_ONLY
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Switch(Field):
    """True or false."""


@dataclass(frozen=True, slots=True)
class Choice(Field):
    """A column whose value is one of a few words; `component` is the name of these words in the API's schema."""

    _: KW_ONLY
    component: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Text(Field):
    """A text. `may_be_empty`: an empty text is a value and does not mean null. `is_long`: the text may fill a line.

    `has_lines`: the text may have several lines. `is_secret`: no page shows what was typed.
    """

    _: KW_ONLY
    most: int = MAX_TEXT
    may_be_empty: bool = False
    is_long: bool = False
    has_lines: bool = False
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class Words(Field):
    """A list of words that match `pattern`, which `rule` explains. In one text, `between` separates the words.

    A form shows the `offered` words as boxes to tick.
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
    """A JSON object, or a text. `parse` raises the registry's refusals; `schema` is a JSON schema, or a type."""

    _: KW_ONLY
    parse: Callable[[Any], object]
    schema: Any
    may_be_text: bool = False


def of(model: type[Model], *declared: Field) -> tuple[Field, ...]:
    """The fields, with the defaults of their columns in a model filled in."""
    return tuple(replace(one, default=one.default or _default(model, one.column)) for one in declared)


def _default(model: type[Model], column: str) -> str:
    found: Any = model._meta.get_field(column)
    if not found.has_default() or callable(found.default):
        return ""
    return str(found.default).lower() if isinstance(found.default, bool) else str(found.default)


def named(declared: tuple[Field, ...], *names: str) -> tuple[Field, ...]:
    """The fields with these names, in the order of the names."""
    return tuple(next(one for one in declared if one.name == name) for name in names)
