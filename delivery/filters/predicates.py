"""Predicates: an SQL filter as a function of a message's properties, built once and called for every message.

SQL has TRUE, FALSE and unknown; a filter takes the messages for which it is TRUE. The builder first moves NOT down to
the comparisons, by De Morgan's laws, which also hold for three values. After that a filter need not distinguish unknown
from FALSE, and a predicate returns a plain bool.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from delivery.filters.operands import READ, Node, child, children, number_of, operand_of, refuse_part

Fields = Mapping[str, str]
Condition = Callable[[Fields], bool]

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def of(tree: Node) -> Condition:
    """Whether the filter is TRUE for a message's properties.

    The literal beside a property decides whether the property is read as a number, a text or a truth value. A property
    that is missing or cannot be read in this way makes the comparison unknown. Two properties are compared as numbers
    where both are numbers, else as texts. Names are case-sensitive. Raises FilterIllegal for an illegal comparison.
    """
    return _condition(tree, wanted=True)


def names(tree: Node) -> frozenset[str]:
    """The properties that a filter reads."""
    return frozenset(found.value for node in tree.find_data("operand") if (found := operand_of(node)).kind == "name")


def _condition(node: Node, wanted: bool) -> Condition:
    """A predicate for a part of the filter. With `wanted` True the predicate says whether the part is TRUE, with
    `wanted` False whether the part is FALSE.
    """
    if node.data == "group" and len(node.children) == 1:
        return _condition(child(node, 0), wanted)
    if node.data == "negation":
        return _condition(child(node, 0), not wanted)
    if node.data in ("both", "either"):
        parts = [_condition(part, wanted) for part in children(node)]
        return _all(parts) if (node.data == "both") == wanted else _any(parts)
    if node.data == "comparison":
        kind = str(node.children[1])
        left, right = children(node)
        return _comparison(kind if wanted else OPPOSITE[kind], node, left, right)
    if test := TESTS.get(node.data):
        build, affirmed = test
        return build(node, affirmed is wanted)
    return _literal(node, wanted)


def _all(parts: Sequence[Condition]) -> Condition:
    def holds(fields: Fields) -> bool:
        for part in parts:  # noqa: SIM110  # `all` takes 0.2 µs more per message
            if not part(fields):
                return False
        return True

    return holds


def _any(parts: Sequence[Condition]) -> Condition:
    def holds(fields: Fields) -> bool:
        for part in parts:  # noqa: SIM110  # `any` takes 0.2 µs more per message
            if part(fields):
                return True
        return False

    return holds


def _always(value: bool) -> Condition:
    return lambda fields: value


def _comparison(kind: str, node: Node, left_node: Node, right_node: Node) -> Condition:
    left, right = operand_of(left_node), operand_of(right_node)
    kinds = {left.kind, right.kind}
    if "null" in kinds:
        refuse_part(node, "nothing is equal to NULL: ask with IS NULL or IS NOT NULL")
    if "boolean" in kinds and kind not in ("=", "<>"):
        refuse_part(node, "TRUE and FALSE have no order: compare them with = or <>")
    if left.kind != "name" and right.kind == "name":
        left, right, kind = right, left, MIRRORED[kind]
    compare = COMPARE[kind]
    if left.kind != "name":
        if len(kinds) > 1:
            refuse_part(node, f"a {left.kind} cannot be compared with a {right.kind}")
        return _always(compare(left.value, right.value))
    if right.kind == "name":
        return _compared_names(compare, left.value, right.value)
    return _compared(compare, READ[right.kind], left.value, right.value)


def _compared(
    compare: Callable[[Any, Any], bool], read: Callable[[str | None], Any], name: str, value: Any
) -> Condition:
    def holds(fields: Fields) -> bool:
        found = read(fields.get(name))
        return found is not None and compare(found, value)

    return holds


def _compared_names(compare: Callable[[Any, Any], bool], left: str, right: str) -> Condition:
    def holds(fields: Fields) -> bool:
        texts = fields.get(left), fields.get(right)
        if None in texts:
            return False
        numbers = number_of(texts[0]), number_of(texts[1])
        return compare(*texts) if None in numbers else compare(*numbers)

    return holds


def _between(node: Node, wanted: bool) -> Condition:
    asked, low, high = children(node)
    above, below = (">=", "<=") if wanted else ("<", ">")
    parts = [_comparison(above, node, asked, low), _comparison(below, node, asked, high)]
    return _all(parts) if wanted else _any(parts)


def _membership(node: Node, wanted: bool) -> Condition:
    asked, group = children(node)
    name = operand_of(asked)
    if name.kind != "name":
        refuse_part(node, "IN asks about a property")
    if group.data != "group":
        refuse_part(node, "IN is followed by literals in parentheses")
    return _among(name.value, *_items(group), wanted)


def _items(group: Node) -> tuple[str, frozenset[Any]]:
    """The kind and the values of the literals in the parentheses after IN."""
    parts = children(group)
    items = [operand_of(part) for part in parts]
    for item, part in zip(items, parts, strict=True):
        if item.kind not in READ or item.kind != items[0].kind:
            refuse_part(part, "IN is followed by literals of one kind")
    return items[0].kind, frozenset(item.value for item in items)


def _among(name: str, kind: str, values: frozenset[Any], wanted: bool) -> Condition:
    read = READ[kind]

    def holds(fields: Fields) -> bool:
        found = read(fields.get(name))
        return found is not None and (found in values) is wanted

    return holds


def _is_null(node: Node, wanted: bool) -> Condition:
    asked, null = children(node)
    name = operand_of(asked)
    if operand_of(null).kind != "null":
        refuse_part(null, "IS asks for NULL or NOT NULL")
    if name.kind != "name":
        refuse_part(node, "IS asks about a property")
    return (lambda fields: name.value not in fields) if wanted else (lambda fields: name.value in fields)


def _literal(node: Node, wanted: bool) -> Condition:
    operand = operand_of(node)
    if operand.kind == "name":
        refuse_part(node, f"a name alone is no condition: compare it, such as {operand.written} = TRUE")
    if operand.kind != "boolean":
        refuse_part(node, "a literal alone is no condition")
    return _always(operand.value is wanted)


# For each test of the grammar: the function that builds its condition, and False if the test is negated by NOT.
TESTS: dict[str, tuple[Callable[[Node, bool], Condition], bool]] = {
    "between": (_between, True),
    "not_between": (_between, False),
    "is_in": (_membership, True),
    "is_not_in": (_membership, False),
    "is_null": (_is_null, True),
    "is_not_null": (_is_null, False),
}
