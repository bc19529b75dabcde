"""The form of an API key: scopes are ticked, its end is chosen in a calendar, and a mistake loses nothing."""

import re

import pytest

from tests.actions.test_configuring import Form
from tests.actions.test_shown_once import secret_of
from tests.broker import characters
from tests.broker.wire import Wire
from tests.console.operators import Operator


def ticked(html: str) -> list[str]:
    """The scopes whose boxes are ticked."""
    boxes = re.findall(r'<input type="checkbox" name="scopes" value="([^"]+)"( checked)?>', html)
    assert [value for value, _ in boxes] == ["manage", "metrics", "produce:*", "consume:*", "read:*"]
    return [value for value, tick in boxes if tick]


def typed(html: str, name: str) -> str:
    """What the text input of a field holds."""
    [found] = [tag for tag in re.findall(r"<input [^>]+>", html) if f'name="{name}"' in tag and "checkbox" not in tag]
    value = re.search(r'value="([^"]*)"', found)
    return value[1] if value else ""


def form(name: str, *scopes: str, **more: object) -> Form:
    return {"action": "key.make", "target": name, "scopes": list(scopes), "reason": "of a test", **more}


def test_ticked_and_typed_scopes_are_those_of_the_key(ada: Operator, wire: Wire) -> None:
    name = characters.name("shop-key")

    secret_of(ada.posts("actions/once/", form(name, "metrics", "read:*", "produce:orders-* consume:coupons")))

    found = wire.get(f"/v1/api-keys/{name}").document
    assert found["scopes"] == ["metrics", "read:*", "produce:orders-*", "consume:coupons"]


def test_a_mistake_in_the_scopes_keeps_what_was_ticked_and_typed(ada: Operator, wire: Wire) -> None:
    name = characters.name("shop-key")

    page = ada.posts(
        "actions/once/", form(name, "metrics", "consume:*", "prodce:orders", expires_at="2087-01-31T12:00")
    )

    assert page.status == 422
    assert "'prodce:orders'" in page.text
    assert ticked(page.html) == ["metrics", "consume:*"]
    assert typed(page.html, "scopes") == "prodce:orders"
    assert typed(page.html, "expires_at") == "2087-01-31T12:00:00"
    assert typed(page.html, "target") == name
    assert wire.get(f"/v1/api-keys/{name}").status == 404


@pytest.mark.parametrize("given", ["2087-01-31T12:00", "2087-01-31T12:00:00", "2087-01-31T17:45:00+05:45"])
def test_a_time_without_a_zone_is_that_of_utc(ada: Operator, wire: Wire, given: str) -> None:
    name = characters.name("shop-key")

    secret_of(ada.posts("actions/once/", form(name, "metrics", expires_at=given)))

    assert wire.get(f"/v1/api-keys/{name}").document["expires_at"].startswith("2087-01-31T12:00:00")


def test_the_form_of_a_change_shows_the_scopes_and_the_end_that_stand(ada: Operator) -> None:
    name = characters.name("shop-key")
    secret_of(ada.posts("actions/once/", form(name, "manage", "read:orders", expires_at="2087-01-31T12:00:00Z")))

    page = ada.sees(f"actions/new/?action=key.change&target={name}")

    assert ticked(page.html) == ["manage"]
    assert typed(page.html, "scopes") == "read:orders"
    assert typed(page.html, "expires_at") == "2087-01-31T12:00:00"
    assert 'type="datetime-local"' in page.html
