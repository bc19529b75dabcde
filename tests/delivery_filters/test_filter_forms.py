"""What a consumer may give as a filter, and which messages it then gets."""

from typing import Any

import pytest

from delivery import filters
from tests.delivery_filters.trees import Properties, message

ORDER = {
    "price": "12.50",
    "region": "eu",
    "paid": "True",
    "number": "9007199254740993",
    "note": "it's new",
    "zip": "007",
}


def takes(given: Any, properties: Properties = ORDER, tags: str | None = None) -> bool:
    wants = filters.parse(given)
    assert wants is not None
    return wants(message(properties, tags))


@pytest.mark.parametrize("given", [None, "*", " * "])
def test_every_message_is_wanted_without_a_filter(given: str | None) -> None:
    assert filters.parse(given) is None


@pytest.mark.parametrize(
    ("given", "tags", "wanted"),
    [
        ("paid", "paid", True),
        ("paid || cancelled", "cancelled", True),
        ("paid||cancelled", "paid", True),
        ("paid || cancelled", "pai", False),
        ("paid || cancelled", "PAID", False),
        ("paid || cancelled", None, False),
        ("two words", "two words", True),
        # Tags of one CRC-32: a reader that compared hashes would take the one for the other.
        ("plumless", "buckeroo", False),
        ("plumless", "plumless", True),
    ],
)
def test_a_tag_expression_takes_its_own_tags(given: str, tags: str | None, wanted: bool) -> None:
    assert takes(given, tags=tags) is wanted


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("price > 10 AND region = 'eu'", True),
        ("price > 10 and region = 'us'", False),
        ("10 < price", True),
        ("price = 12.5", True),
        ("price = '12.5'", False),
        ("price BETWEEN 12.5 AND 13", True),
        ("price NOT BETWEEN 12.5 AND 13", False),
        ("price BETWEEN 13 AND 12", False),
        ("region IN ('us', 'eu')", True),
        ("region NOT IN ('us', 'eu')", False),
        ("price IN (1, 12.50)", True),
        ("price > -1e2 AND price < +.2E3", True),
        ("note = 'it''s new'", True),
        ("note > 'is' AND note < 'iu'", True),
        ("zip = 7 AND zip <> '7'", True),
        ("paid = TRUE AND paid <> FALSE", True),
        # No float: this number is not its neighbour.
        ("number = 9007199254740992", False),
        # A property that is missing is neither 5 nor anything else.
        ("discount = 5", False),
        ("discount <> 5", False),
        ("NOT (discount = 5)", False),
        ("discount = 5 OR region = 'eu'", True),
        ("discount IS NULL", True),
        ("region IS NOT NULL AND NOT (discount IS NOT NULL)", True),
        # Nor is one that is no number compared with numbers.
        ("region > 5", False),
        ("NOT (region > 5)", False),
        ("region = TRUE OR region <> TRUE", False),
        # Names are taken as they are written, keywords in any case.
        ("Region = 'eu'", False),
        ("rEgIoN IS nULL", True),
        # Two properties: numbers if both are, else texts.
        ("price < number", True),
        ("price <> region", True),
        # AND binds closer than OR, and NOT closer than both.
        ("region = 'eu' OR price < 5 AND price < 6", True),
        ("(region = 'eu' OR price < 5) AND price < 6", False),
        ("NOT region = 'us' AND price > 5", True),
        ("TRUE", True),
        ("1 = 1 AND NOT FALSE", True),
        ("price > 10 -- euro\n AND /* and */ region = 'eu'", True),
    ],
)
def test_an_expression_takes_what_it_is_true_of(expression: str, wanted: bool) -> None:
    assert takes({"sql": expression}) is wanted


def test_tags_have_a_name_in_expressions() -> None:
    expression = {"sql": "TAGS IN ('paid', 'new') AND price > 10"}

    assert takes(expression, tags="paid")
    assert not takes(expression, tags="cancelled")
    assert not takes(expression, tags=None)
    assert takes({"sql": "TAGS IS NULL"}, tags=None)
    assert takes({"sql": "TAGS <> 'paid'"}, {}, tags="new")


def test_words_of_sql_are_names_of_properties_and_any_other_name_stands_in_quotes() -> None:
    properties = {
        "order": "5",
        "date": "2024-01-01",
        "select": "x",
        "unit price": "3",
        'a"b': "4",
        "a.b": "5",
        "$x": "6",
        "größe": "7",
    }

    assert takes({"sql": "order = 5 AND date > '2023' AND select = 'x' AND $x = 6 AND größe = 7"}, properties)
    assert takes({"sql": '"unit price" = 3 AND "a""b" = 4 AND "a.b" = 5'}, properties)


def test_a_message_without_properties_is_judged_too() -> None:
    assert takes({"sql": "price IS NULL"}, {})
    assert not takes({"sql": "price > 1"}, {})


@pytest.mark.parametrize(
    "value",
    [
        *["1_0", " 10", "10 ", "٣", "NaN", "inf", "Infinity", "0x1F", "1e", "", "1e99999999999999999999"],
        # Beyond RocketMQ's long and double, or too long for either.
        *["9223372036854775808", "-9223372036854775809", "1e309", "-1.8e308", "1." + "0" * 63, "9" * 15_999 + "x"],
    ],
)
def test_what_is_no_number_of_sql_is_compared_with_none(value: str) -> None:
    assert not takes({"sql": "price = 0 OR price <> 0"}, {"price": value})


@pytest.mark.parametrize(
    "value",
    ["9223372036854775807", "-9223372036854775808", "1.7e308", "-1e-400", "1." + "0" * 62, "+00000000000000000001"],
)
def test_a_number_is_one_up_to_its_bounds(value: str) -> None:
    assert takes({"sql": f"price = {value} AND price <> 0"}, {"price": value})


def test_a_filter_is_read_once() -> None:
    expression = {"sql": "region = 'eu' AND price BETWEEN 1 AND 1000 AND paid = TRUE"}

    assert filters.parse(expression) is filters.parse(dict(expression))
