"""Filters as trees: each can be written as a filter, evaluated by three-valued logic, and sent to PostgreSQL.

This is the model that the broker's filters are held against; it shares no code with them.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
from psycopg import sql

# TRUE, FALSE, or None for unknown.
Truth = bool | None
Properties = Mapping[str, str]
Literal = Decimal | str | bool

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
RESERVED = {"AND", "OR", "NOT", "IN", "IS", "BETWEEN", "TRUE", "FALSE", "NULL"}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Message(msgspec.Struct):
    """What a filter sees of a message."""

    properties: bytes | None
    tags: str | None = None


def message(properties: Properties, tags: str | None = None) -> Message:
    """A stored message with these properties."""
    return Message(json.dumps(properties).encode() if properties else None, tags)


def read(text: str | None, literal: Literal) -> Any:
    """A property as what it is compared with, or None."""
    if text is None or isinstance(literal, str):
        return text
    if isinstance(literal, bool):
        return {"true": True, "false": False}.get(text.lower())
    return Decimal(text) if re.fullmatch(NUMBER, text) else None


def negation(value: Truth) -> Truth:
    return None if value is None else not value


def conjunction(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def disjunction(left: Truth, right: Truth) -> Truth:
    return negation(conjunction(negation(left), negation(right)))


@dataclass(frozen=True)
class Comparison:
    """A property and a literal, in this order or mirrored."""

    name: str
    operator: str
    literal: Literal
    mirrored: bool = False

    def truth(self, properties: Properties) -> Truth:
        found = read(properties.get(self.name), self.literal)
        return None if found is None else OPERATORS[self.operator](found, self.literal)

    def written(self) -> str:
        name, literal = name_written(self.name), literal_written(self.literal)
        if self.mirrored:
            return f"{literal} {MIRRORED[self.operator]} {name}"
        return f"{name}{self.operator}{literal}"

    def asked(self) -> sql.Composable:
        return sql.SQL("({} {} {})").format(
            property_asked(self.name, self.literal), sql.SQL(self.operator), sql.Literal(self.literal)
        )


@dataclass(frozen=True)
class NameComparison:
    """Two properties: numbers where both are, else texts."""

    left: str
    operator: str
    right: str

    def truth(self, properties: Properties) -> Truth:
        for kind in (Decimal(0), ""):
            found = read(properties.get(self.left), kind), read(properties.get(self.right), kind)
            if None not in found:
                return OPERATORS[self.operator](*found)
        return None

    def written(self) -> str:
        return f"{name_written(self.left)} {self.operator} {name_written(self.right)}"

    def asked(self) -> sql.Composable:
        parts = [
            sql.SQL("({} {} {})").format(
                property_asked(self.left, kind), sql.SQL(self.operator), property_asked(self.right, kind)
            )
            for kind in (Decimal(0), "")
        ]
        return sql.SQL("coalesce({}, {})").format(*parts)


@dataclass(frozen=True)
class Range:
    """BETWEEN: both ends belong to it."""

    name: str
    low: Literal
    high: Literal

    def truth(self, properties: Properties) -> Truth:
        low, high = Comparison(self.name, ">=", self.low), Comparison(self.name, "<=", self.high)
        return conjunction(low.truth(properties), high.truth(properties))

    def written(self) -> str:
        return f"{name_written(self.name)} BETWEEN {literal_written(self.low)} AND {literal_written(self.high)}"

    def asked(self) -> sql.Composable:
        return sql.SQL("({} BETWEEN {} AND {})").format(
            property_asked(self.name, self.low), sql.Literal(self.low), sql.Literal(self.high)
        )


@dataclass(frozen=True)
class Membership:
    """IN, with literals of one kind."""

    name: str
    literals: tuple[Literal, ...]

    def truth(self, properties: Properties) -> Truth:
        value: Truth = False
        for literal in self.literals:
            value = disjunction(value, Comparison(self.name, "=", literal).truth(properties))
        return value

    def written(self) -> str:
        return f"{name_written(self.name)} in ({', '.join(map(literal_written, self.literals))})"

    def asked(self) -> sql.Composable:
        return sql.SQL("({} IN ({}))").format(
            property_asked(self.name, self.literals[0]), sql.SQL(", ").join(map(sql.Literal, self.literals))
        )


@dataclass(frozen=True)
class Absence:
    """IS NULL."""

    name: str

    def truth(self, properties: Properties) -> Truth:
        return self.name not in properties

    def written(self) -> str:
        return f"{name_written(self.name)} IS null"

    def asked(self) -> sql.Composable:
        return sql.SQL("({} IS NULL)").format(property_asked(self.name, ""))


@dataclass(frozen=True)
class Constant:
    """TRUE or FALSE as a condition of its own."""

    value: bool

    def truth(self, properties: Properties) -> Truth:
        return self.value

    def written(self) -> str:
        return "TRUE" if self.value else "false"

    def asked(self) -> sql.Composable:
        return sql.Literal(self.value)


@dataclass(frozen=True)
class Negation:
    part: "Tree"

    def truth(self, properties: Properties) -> Truth:
        return negation(self.part.truth(properties))

    def written(self) -> str:
        part = self.part
        if isinstance(part, Range | Membership):
            # The other way to say it: `price NOT IN (1, 2)`.
            name = name_written(part.name)
            return f"{name} NOT{part.written().removeprefix(name)}"
        if isinstance(part, Absence):
            return f"{name_written(part.name)} is NOT NULL"
        # NOT binds a comparison closer than AND does, and needs parentheses around the rest.
        return f"not {part.written()}" if isinstance(part, Comparison) else f"NOT({part.written()})"

    def asked(self) -> sql.Composable:
        return sql.SQL("(NOT {})").format(self.part.asked())


@dataclass(frozen=True)
class Junction:
    """AND or OR between two parts."""

    word: str
    left: "Tree"
    right: "Tree"

    def truth(self, properties: Properties) -> Truth:
        join = conjunction if self.word == "AND" else disjunction
        return join(self.left.truth(properties), self.right.truth(properties))

    def written(self) -> str:
        return f"{self._inside(self.left)} {self.word} {self._inside(self.right)}"

    def _inside(self, part: "Tree") -> str:
        """AND binds closer than OR: only an OR within an AND needs its parentheses."""
        looser = isinstance(part, Junction) and part.word == "OR" and self.word == "AND"
        return f"( {part.written()} )" if looser else part.written()

    def asked(self) -> sql.Composable:
        return sql.SQL("({} {} {})").format(self.left.asked(), sql.SQL(self.word), self.right.asked())


Tree = Comparison | NameComparison | Range | Membership | Absence | Constant | Negation | Junction


def name_written(name: str) -> str:
    plain = re.fullmatch(r"[a-z_]+", name, re.IGNORECASE) and name.upper() not in RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


def literal_written(literal: Literal) -> str:
    if isinstance(literal, str):
        return "'" + literal.replace("'", "''") + "'"
    return str(literal)


def property_asked(name: str, literal: Literal) -> sql.Composable:
    """A property of the jsonb column p, with the type that its comparison gives it."""
    text = sql.SQL("(p ->> {})").format(sql.Literal(name))
    if isinstance(literal, bool):
        return sql.SQL("(CASE lower({}) WHEN 'true' THEN true WHEN 'false' THEN false END)").format(text)
    if isinstance(literal, Decimal):
        return sql.SQL("(CASE WHEN {0} ~ {1} THEN {0}::numeric END)").format(text, sql.Literal(NUMBER))
    return sql.SQL('({} COLLATE "C")').format(text)
