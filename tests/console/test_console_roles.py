"""Promises of the roles in the console: one to a user, given by an admin, and what each may see."""

from datetime import timedelta

import pytest

from tests.console.conftest import PASSWORD, forget_attempts
from tests.console.operators import Operator
from tests.console.rows import Broker


def token_of(operator: Operator) -> str:
    """The operator's CSRF token."""
    return next(cookie.value or "" for cookie in operator.cookies if cookie.name == "csrftoken")


def test_an_admin_makes_a_viewer_and_then_an_operator_of_her(
    database: str, broker: Broker, console: str, ada: Operator
) -> None:
    forget_attempts(database)
    token = token_of(ada)
    passwords = {
        "password1": "let me see too",
        "password2": "let me see too",
        "usable_password": "true",
        "is_active": "on",
    }

    made = ada.sees("auth/user/add/", username="eli", role="viewer", csrfmiddlewaretoken=token, **passwords)

    assert made.address.endswith("/change/"), made.text
    eli = Operator.signed_in(console, "eli", "let me see too")
    assert eli.sees("topics/").status == 200
    assert roles_of(broker, "eli") == ["viewer"]
    path = made.address.partition("/console/")[2]
    ada.sees(path, username="eli", is_active="on", role="operator", csrfmiddlewaretoken=token, **dates(ada, path))
    assert roles_of(broker, "eli") == ["operator"]
    assert "operator" in ada.sees("auth/user/").text


def dates(operator: Operator, path: str) -> dict[str, str]:
    """The fields of a user's page that have to be sent back."""
    assert operator.sees(path).status == 200
    return {"date_joined_0": "2026-01-01", "date_joined_1": "12:00:00"}


def roles_of(broker: Broker, name: str) -> list[str]:
    """The groups of a user."""
    query = """
    SELECT g.name FROM auth_user AS u JOIN auth_user_groups AS m ON m.user_id = u.id
    JOIN auth_group AS g ON g.id = m.group_id WHERE u.username = %s ORDER BY 1
    """
    return [row.name for row in broker.connection.execute(query, (name,))]


def test_a_user_without_a_role_does_not_come_in(console: str, database: str) -> None:
    forget_attempts(database)
    noel = Operator(console)
    noel.sees("login/")

    page = noel.sees("login/", username="noel", password=PASSWORD, csrfmiddlewaretoken=token_of(noel))

    assert "This user has no role yet: an admin gives one at Users." in page.text
    assert noel.sees("topics/").address.startswith(f"{console}/console/login/")


@pytest.mark.parametrize("reader", ["ada", "oda", "bob"])
def test_a_body_is_seen_by_those_who_may(broker: Broker, request: pytest.FixtureRequest, reader: str) -> None:
    half = broker.half(broker.producer_group("shop"), broker.topic("orders"), b"order 4711", timedelta(minutes=5))

    assert "order 4711" in request.getfixturevalue(reader).sees(f"transactions/{half}/").text


def test_a_viewer_sees_everything_of_a_transaction_but_its_body(broker: Broker, vic: Operator) -> None:
    half = broker.half(broker.producer_group("shop"), broker.topic("orders"), b"order 4711", timedelta(minutes=5))

    page = vic.sees(f"transactions/{half}/")

    assert "order 4711" not in page.html
    assert "Viewers see no bodies unless an admin gives them that at Users." in page.text
    assert "orders" in page.links
