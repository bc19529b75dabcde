"""What hypothesis makes filters and messages from: few names and values, so that they meet."""

from decimal import Decimal

from hypothesis import strategies as st

from tests.delivery_filters.trees import (
    OPERATORS,
    Absence,
    Comparison,
    Constant,
    Junction,
    Literal,
    Membership,
    NameComparison,
    Negation,
    Range,
    Tree,
)

# Upper case beside lower case; words of SQL and what needs its quotes are names of properties too.
NAMES = ("price", "Price", "order", 'say "so"', "a.b-c", "not")
names = st.sampled_from(NAMES)
NUMBERS = tuple(map(Decimal, ("-5", "0", "0.1", "5", "5.00", "10", "9007199254740993", "1E+30")))
TEXTS = ("eu", "us", "", "EU", "it's", "10", "9", "true", "é", "\U0001f600", "\uffff", " ", "\\", "%")
NUMERALS = ("-5", "+5", "5.", "05", ".5e1", "-0", ".1", "10.0", "1e1", "9007199254740992", "1E+30")
NO_NUMERALS = ("TRUE", "False", "1_0", " 5", "5 ", "٣", "NaN", "inf", "--5", "5e", ".", "0x5")
VALUES = (*TEXTS, *map(str, NUMBERS), *NUMERALS, *NO_NUMERALS)
numbers, texts, values = st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.sampled_from(VALUES)
properties = st.dictionaries(names, values, max_size=6) | st.fixed_dictionaries(dict.fromkeys(NAMES, values))
operators = st.sampled_from(list(OPERATORS))


def literals_of(kind: type[Literal]) -> st.SearchStrategy[Literal]:
    if kind is bool:
        return st.booleans()
    return numbers if kind is Decimal else texts


ordered = st.sampled_from([Decimal, str])
comparisons = st.builds(Comparison, names, operators, numbers | texts, st.booleans()) | st.builds(
    Comparison, names, st.sampled_from(["=", "<>"]), st.booleans(), st.booleans()
)  # fmt: skip -- a line to a strategy
ranges = ordered.flatmap(lambda kind: st.builds(Range, names, literals_of(kind), literals_of(kind)))
memberships = st.sampled_from([Decimal, str, bool]).flatmap(
    lambda kind: st.builds(Membership, names, st.lists(literals_of(kind), min_size=1, max_size=4).map(tuple))
)
leaves = st.one_of(
    comparisons,
    comparisons,
    ranges,
    memberships,
    st.builds(NameComparison, names, operators, names),
    st.builds(Absence, names),
    st.builds(Constant, st.booleans()),
)


def _joined(parts: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.builds(Negation, parts) | st.builds(Junction, st.sampled_from(["AND", "OR"]), parts, parts)


trees: st.SearchStrategy[Tree] = st.recursive(leaves, _joined, max_leaves=12)
