"""Promises about what the console keeps: no list, however it is narrowed or ordered, says anything of a secret."""

from collections.abc import Iterator

import pytest
from django.contrib import admin
from django.db.models import Model

from tests.console.operators import Operator
from tests.console.rows import Broker

# The lists that the addresses of the console have.
admin.autodiscover()
SECRET = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cw=="
OTHER_SECRET = "whsec_YW5vdGhlciBzZWNyZXQgb2YgdGVzdHM="
# Relations are followed so far: from a group to its endpoints, from a user to its log entries and back.
DEPTH = 2
SHAPES = ("", "__startswith", "__contains", "__regex", "__gt")
KEPT_SECRET = ("secret", "previous_secret", "digest", "password")


def lookups(model: type[Model], depth: int = DEPTH) -> Iterator[str]:
    """Every column that a list of this model could be narrowed by, its own and those of its relations."""
    for field in model._meta.get_fields():
        if field.is_relation and depth > 1 and field.related_model is not None:
            related = field.related_model
            assert isinstance(related, type)
            yield from (f"{field.name}__{lookup}" for lookup in lookups(related, depth - 1))
        elif getattr(field, "column", None):
            yield field.name


def lists() -> list[tuple[str, str]]:
    """Each list of the console with each column that it could be narrowed by."""
    return [
        (f"{model._meta.app_label}/{model._meta.model_name}/", lookup)
        for model in admin.site._registry
        for lookup in dict.fromkeys(lookups(model))
    ]


def shapes(lookup: str) -> tuple[str, ...]:
    """In what ways a column is asked after: in all of them where it holds a secret."""
    return SHAPES if lookup.rpartition("__")[2] in KEPT_SECRET else SHAPES[:2]


@pytest.fixture
def keeper(broker: Broker) -> Broker:
    """A broker with a signing secret and the digest of a key."""
    broker.endpoint(broker.producer_group("shop"), "https://shop.example/checks", secret=SECRET)
    broker.api_key("shop", hint="x2Qd", scopes=["manage"], digest=b"whsec digest of a key of the tests")
    return broker


def test_the_lists_hold_what_must_not_be_asked_after() -> None:
    found = {(path, lookup) for path, lookup in lists() if lookup.rpartition("__")[2] in KEPT_SECRET}

    assert {
        ("transactions/endpoint/", "secret"),
        ("transactions/endpoint/", "previous_secret"),
        ("transactions/producergroup/", "endpoints__secret"),
    } <= found


@pytest.mark.parametrize("path", sorted({path for path, _ in lists()}))
def test_a_list_is_narrowed_by_no_column_that_it_does_not_declare(keeper: Broker, ada: Operator, path: str) -> None:
    narrowed = [f"{path}?{lookup}{shape}=w" for of, lookup in lists() if of == path for shape in shapes(lookup)]

    answered = [asked for asked in narrowed if ada.looks_at(asked)[0] != 400]

    assert answered == []


@pytest.mark.parametrize("number", range(1, 8))
def test_a_list_is_ordered_by_no_secret(broker: Broker, ada: Operator, number: int) -> None:
    group = broker.producer_group("shop")
    first = broker.endpoint(group, "https://shop.example/1", secret=SECRET)
    broker.endpoint(group, "https://shop.example/2", secret=OTHER_SECRET)
    orders = (f"transactions/endpoint/?o={number}", f"transactions/endpoint/?o=-{number}")
    before = [urls(ada, order) for order in orders]

    broker.connection.execute(
        "UPDATE endpoint SET secret = CASE id WHEN %s THEN %s ELSE %s END", (first, OTHER_SECRET, SECRET)
    )

    assert [urls(ada, order) for order in orders] == before
    assert all(len(found) == 2 for found in before)


def urls(operator: Operator, path: str) -> list[str]:
    """The endpoints of a list, in its order."""
    return [words for words in operator.sees(path).reader.words if words.startswith("https://shop.example/")]


def test_no_page_of_a_row_shows_its_secret(keeper: Broker, ada: Operator, bob: Operator) -> None:
    hashes = keeper.connection.execute("SELECT split_part(password, '$', 4) AS hash FROM auth_user").fetchall()
    secrets = [SECRET, "whsec digest", *(row.hash for row in hashes)]
    endpoints = keeper.connection.execute("SELECT id FROM endpoint").fetchall()
    paths = [*(f"transactions/endpoint/{row.id}/change/" for row in endpoints), "api-keys/", "users/"]

    for operator in (ada, bob):
        for page in map(operator.sees, paths):
            assert not [secret for secret in secrets if secret in page.html], page.address
    assert ada.sees(paths[0]).status == 200
