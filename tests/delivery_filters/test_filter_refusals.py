"""What is no filter is refused with the position of the first word that cannot stand there, and what may."""

import contextlib
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery import filters
from delivery.filters.forms import MAX_CHARACTERS
from store.errors import FilterIllegal
from tests.broker.polling import at_this_load
from tests.delivery_filters.trees import message

ALLOWED = (
    "A filter has names of properties, numbers, 'text', TRUE, FALSE, =, <>, <, <=, >, >=, BETWEEN, IN, IS [NOT] NULL, "
    "AND, OR, NOT and parentheses."
)
FORMS = 'give a tag expression such as "A || B", "*" for every message, or {"sql": "price > 10"}.'


def refusal(given: Any) -> FilterIllegal:
    with pytest.raises(FilterIllegal) as raised:
        filters.parse(given)
    return raised.value


def test_a_refusal_names_the_word_its_position_the_reason_and_what_is_allowed() -> None:
    refused = refusal({"sql": "price > 10 AND region LIKE 'e%'"})

    assert refused.code == "filter_illegal"
    assert refused.detail == (
        f"The filter cannot be used: LIKE at position 23: an operator is expected here. {ALLOWED}"
    )
    assert refused.extra == {"position": 23}


@pytest.mark.parametrize(
    ("expression", "position", "reason"),
    [
        ("", 1, "The filter is empty"),
        ("-- all of it", 1, "The filter is empty"),
        ("price >", 7, "something is missing after it"),
        ("price IS", 7, "something is missing after it"),
        ("price = 1 OR", 11, "something is missing after it"),
        ("price BETWEEN 1", 15, "something is missing after it"),
        ("AND price = 1", 1, "something is missing before it"),
        ("price = = 1", 9, "something is missing before it"),
        ("region IN ()", 12, "something is missing before it"),
        ("price = 1 price = 2", 11, "an operator is expected here"),
        ("price = 5 euro", 11, "an operator is expected here"),
        ("price = 5e", 9, "it is no number"),
        ("price = 1e99999999999999999999", 9, "it is no number"),
        ("price = 9223372036854775808", 9, "it is no number: a whole one of 64 bits or one of a double's range"),
        ("price IN (1, -9223372036854775809)", 14, "it is no number: a whole one of 64 bits"),
        ("price = 1e309", 9, "it is no number: a whole one of 64 bits or one of a double's range"),
        ("price = 1." + "0" * 63, 9, "it is no number: a whole one of 64 bits or one of a double's range"),
        ("price = " + "+" * 1000 + "1", 1007, "the filter has more than 1000 words"),
        ("price = -(5)", 9, "it is no number"),
        ("price = - region", 9, "it is no number"),
        ("price = -/* euro */price", 9, "it is no number"),
        ("price = 'ten", 9, "it is never closed"),
        ('"price = 10', 1, "it is never closed"),
        ("price = 10 /* euro", 12, "it is never closed"),
        ("(price = 10", 1, "it is never closed"),
        ("price = 10)", 11, "it was never opened"),
        ("NOT NOT price = 1", 5, "NOT follows NOT"),
        ("price != 10", 7, "write <>"),
        ("price == 10", 7, "it is not allowed"),
        ("price + 1 > 10", 7, "it is not allowed"),
        ("price > 1; DROP TABLE topic", 10, "it is not allowed"),
        ("shop.price > 1", 5, "it is not allowed"),
        ("price > ?", 9, "it is not allowed"),
        ("region = N'eu'", 10, "it is not allowed"),
        ("region || 'x' = 'eux'", 8, "it is not allowed"),
        ("upper(region) = 'EU'", 6, "there are no functions here"),
        ("pg_sleep(10) IS NULL", 9, "there are no functions here"),
        ("price IN (SELECT 1)", 18, "an operator is expected here"),
        ("price IN (limit)", 11, "IN is followed by literals of one kind"),
        ("price IN (1, 'two')", 14, "IN is followed by literals of one kind"),
        ("price IN (1, NULL)", 14, "IN is followed by literals of one kind"),
        ("price IN 1", 1, "IN is followed by literals in parentheses"),
        ("'eu' IN ('eu')", 1, "IN asks about a property"),
        ("price", 1, "a name alone is no condition: compare it, such as price = TRUE"),
        ("price = 1 AND (region)", 16, "a name alone is no condition: compare it, such as region = TRUE"),
        ("'eu' OR price = 1", 1, "a literal alone is no condition"),
        ("price = NULL", 1, "nothing is equal to NULL: ask with IS NULL or IS NOT NULL"),
        ("price > TRUE", 1, "TRUE and FALSE have no order: compare them with = or <>"),
        ("price = 1 AND 1 = 'one'", 15, "a number cannot be compared with a text"),
        ("price IS TRUE", 10, "IS asks for NULL or NOT NULL"),
        ("1 IS NULL", 1, "IS asks about a property"),
        ("1 < price < 5", 1, "a name or a literal is expected"),
        ("paid = (price > 5)", 9, "a name or a literal is expected"),
        ("(price, region) = 1", 2, "a name or a literal is expected"),
        ("price NOT = 1", 11, "something is missing before it"),
        ("price = 1, region = 'eu'", 10, "it cannot stand here"),
        ("\n  price = 1 AND\n  region = ", 27, "something is missing after it"),
        ("(" * 17 + "price = 1" + ")" * 17, 17, "more than 16 parentheses are open"),
        ("price = 1 OR " * 65 + "TRUE", 839, "the filter has more than 64 conditions"),
        ("price IN (" + "1," * 600 + "1)", 1008, "the filter has more than 1000 words"),
    ],
)
def test_what_breaks_the_subset_is_refused_where_it_does(expression: str, position: int, reason: str) -> None:
    refused = refusal({"sql": expression})

    assert reason in refused.detail
    assert ALLOWED in refused.detail
    assert refused.extra == {"position": position}


@pytest.mark.parametrize(
    ("given", "detail", "position"),
    [
        ("", f"filter '' has no tag at position 1: {FORMS}", 1),
        ("paid ||", f"filter 'paid ||' has no tag at position 8: {FORMS}", 8),
        ("paid || new | old", f"filter 'paid || new | old' has no tag at position 8: {FORMS}", 8),
        ("paid\n", None, None),
        (5, f"filter 5 is not a filter: {FORMS}", None),
        (["paid"], f"filter ['paid'] is not a filter: {FORMS}", None),
        ({}, f"filter {{}} is not a filter: {FORMS}", None),
        ({"sql": 5}, f"filter {{'sql': 5}} is not a filter: {FORMS}", None),
        ({"sql": "a = 1", "tags": "A"}, f"filter {{'sql': 'a = 1', 'tags': 'A'}} is not a filter: {FORMS}", None),
        ("x" * 4097, "The filter has 4097 characters, the limit is 4096.", None),
        ({"sql": " " * 4097}, "The filter has 4097 characters, the limit is 4096.", None),
    ],
)
def test_what_is_neither_form_is_refused(given: Any, detail: str | None, position: int | None) -> None:
    if detail is None:
        assert filters.parse(given) is not None
        return

    refused = refusal(given)

    assert refused.detail == detail
    assert refused.extra.get("position") == position


# Of the subset, and of SQL beyond it; some that only look like words, and the characters that open something.
WORDS = """
price region NOT not AND OR IN IS NULL TRUE FALSE BETWEEN ( ) , = <> < <= > >= != == - + . * / ; 10 -5 1e5 .5 'eu' ''
"is_it" ' " /* */ -- LIKE select from CASE WHEN END CAST AS ANY ALL EXISTS interval date order by :: { } {{ [ ] @ ? $1
N'x' X'1f' é ıs ſ \x00 \\ || && ~ ^ # %
""".split()  # noqa: SIM905  # eighty words are read more easily than a list of them


@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join) | st.lists(st.sampled_from(WORDS)).map("".join))
@settings(max_examples=500)
def test_any_text_is_a_filter_or_refused_at_a_position_within_it(expression: str) -> None:
    try:
        wants = filters.parse({"sql": expression})
    except FilterIllegal as refused:
        position = refused.extra["position"]
        assert isinstance(position, int)
        assert 1 <= position <= max(len(expression), 1)
    else:
        assert wants is not None
        assert wants(message({"price": "10", "region": "eu"})) in (True, False)


@given(st.text(max_size=60))
@settings(max_examples=300)
def test_any_unicode_is_a_filter_or_refused(expression: str) -> None:
    for form in (expression, {"sql": expression}):
        with contextlib.suppress(FilterIllegal):
            filters.parse(form)


# Each as long as a filter may be, of what a reader might go through again and again.
HOSTILE = ("'", '"', "/*", "/ ", "(", "NOT ", "- ", "<", "9", "9e", " ", "\n--", "a ", "a IN (", "1,", "1<", "a=1 OR ")


@pytest.mark.parametrize("part", HOSTILE)
def test_a_filter_of_any_content_is_read_or_refused_in_bounded_time(part: str) -> None:
    """The slowest of these takes some 15 ms; one that took quadratic time would take seconds."""
    expression = (part * MAX_CHARACTERS)[:MAX_CHARACTERS]
    began = time.process_time()

    with pytest.raises(FilterIllegal):
        filters.parse({"sql": expression})

    assert time.process_time() - began < at_this_load(0.5)


def test_a_filter_with_two_faults_is_refused_at_the_first() -> None:
    assert refusal({"sql": "price != 1 AND region LIKE 'e%'"}).extra == {"position": 7}
