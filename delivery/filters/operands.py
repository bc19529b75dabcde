"""Operands: the names and literals of an SQL filter, and how a property's text becomes a number, text or boolean."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from typing import Any, Literal, NoReturn, TypeAlias

from lark import Token, Tree

from delivery.filters.grammar import refuse

Node: TypeAlias = Tree[Token]
Kind = Literal["name", "number", "text", "boolean", "null"]

# The quantifiers are possessive: with ordinary quantifiers the regular expression would try each way of splitting many
# digits.
NUMBER = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?", re.ASCII)
# RocketMQ compares whole numbers as `long` and other numbers as `double`; Java writes a number of either type in at
# most 26 characters.
MAX_NUMBER_CHARACTERS = 64
WHOLE = range(-(2**63), 2**63)
MAX_DOUBLE = Decimal(sys.float_info.max)
NO_NUMBER = f"it is no number: a whole one of 64 bits or one of a double's range, in {MAX_NUMBER_CHARACTERS} characters"
BOOLEANS = {"true": True, "false": False}
MAX_BOOLEAN_CHARACTERS = max(map(len, BOOLEANS))


def number_of(text: str | None) -> Decimal | None:
    """A property as an exact number, or None: 0.1 stays 0.1, and two ids of 19 digits stay different.

    Also None for a number outside RocketMQ's bounds, because a property may be long, and each condition reads it again.
    """
    if text is None or len(text) > MAX_NUMBER_CHARACTERS or not NUMBER.fullmatch(text):
        return None
    try:
        number = Decimal(text)
    except DecimalException:
        return None
    is_whole = text.lstrip("+-").isdigit()
    return number if (int(number) in WHOLE if is_whole else abs(number) <= MAX_DOUBLE) else None


def text_of(text: str | None) -> str | None:
    """A property as text: the property unchanged. Texts are ordered by their code points."""
    return text


def boolean_of(text: str | None) -> bool | None:
    """A property as a truth value: `true` or `false` in any case, as in RocketMQ; None for other texts."""
    return None if text is None or len(text) > MAX_BOOLEAN_CHARACTERS else BOOLEANS.get(text.lower())


READ: dict[str, Callable[[str | None], Any]] = {"number": number_of, "text": text_of, "boolean": boolean_of}


@dataclass(frozen=True, slots=True)
class Operand:
    """A name or a literal. `value` is the name, a Decimal, a str, a bool, or None for NULL."""

    kind: Kind
    value: Any
    written: str


def operand_of(node: Node) -> Operand:
    """The operand at a leaf, with or without parentheses around it. Raises FilterIllegal for any other part."""
    leaf = node
    while leaf.data == "group" and len(leaf.children) == 1:
        leaf = child(leaf, 0)
    if leaf.data != "operand":
        refuse_part(node, "a name or a literal is expected")
    words = [word for word in leaf.children if isinstance(word, Token)]
    written, kind = "".join(words), words[-1].type
    if kind == "NUMBER":
        return Operand("number", _number(leaf, written), written)
    if kind == "TEXT":
        return Operand("text", written[1:-1].replace("''", "'"), written)
    if kind == "BOOLEAN":
        return Operand("boolean", BOOLEANS[written.lower()], written)
    if kind == "NULL":
        return Operand("null", None, written)
    return Operand("name", written[1:-1].replace('""', '"') if kind == "QUOTED" else written, written)


def _number(leaf: Node, written: str) -> Decimal:
    value = number_of(written)
    if value is None:
        refuse_part(leaf, NO_NUMBER)
    return value


def refuse_part(node: Node, reason: str) -> NoReturn:
    """Raises FilterIllegal at the first operand of a part."""
    first = node
    while first.data != "operand":
        first = child(first, 0)
    word = first.children[0]
    assert isinstance(word, Token)
    assert word.start_pos is not None
    refuse("".join(map(str, first.children)), word.start_pos + 1, reason)


def child(node: Node, number: int) -> Node:
    """The part of a node with this number, from 0; words are not counted."""
    found = node.children[number]
    assert isinstance(found, Tree)
    return found


def children(node: Node) -> list[Node]:
    """The parts of a node, without its words."""
    return [found for found in node.children if isinstance(found, Tree)]
