"""Promises of the roles in the console: one to a user, given by an admin, and what each may see."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.actions.test_shown_once import secret_of
from tests.console.conftest import PASSWORD, forget_attempts
from tests.console.operators import Operator, Page
from tests.console.rows import Broker


def token_of(operator: Operator) -> str:
    """The operator's CSRF token."""
    return next(cookie.value or "" for cookie in operator.cookies if cookie.name == "csrftoken")


def test_an_admin_makes_a_viewer_and_then_an_operator_of_her(
    database: str, broker: Broker, console: str, ada: Operator
) -> None:
    forget_attempts(database)
    form = ada.follows(ada.sees("users/"), "Make a user")
    assert '<option value="viewer" selected>' in form.html

    made = ada.posts("actions/once/", {"action": "user.make", "target": "eli", "role": "viewer", "reason": "is new"})

    eli = Operator.signed_in(console, "eli", secret_of(made))
    assert eli.sees("topics/").status == 200
    assert roles_of(broker, "eli") == ["viewer"]
    done = changes(ada, "eli", role="operator")
    assert done.table("results")[0][-2] == "done"
    assert roles_of(broker, "eli") == ["operator"]
    assert [row[2] for row in ada.sees("users/?q=eli").table("users")] == ["operator"]
    entries = ada.sees("audit/?target=eli").text
    assert "role viewer → operator" in entries
    assert "user.make" in entries


def changes(admin: Operator, name: str, **values: str) -> Page:
    """The page of an admin's change of a user."""
    return admin.posts("actions/new/", {"action": "user.change", "target": name, "reason": "of a test", **values})


def test_a_new_password_is_shown_once_and_ends_the_sessions_of_its_user(
    database: str, broker: Broker, console: str, ada: Operator
) -> None:
    forget_attempts(database)
    made: dict[str, object] = {"action": "user.make", "target": "mia", "role": "viewer", "reason": "is new"}
    first = secret_of(ada.posts("actions/once/", made))
    mia = Operator.signed_in(console, "mia", first)

    again = secret_of(ada.posts("actions/once/", {"action": "user.password", "target": "mia", "reason": "was lost"}))

    assert mia.sees("topics/").address.startswith(f"{console}/console/login/")
    assert Operator.signed_in(console, "mia", again).sees("topics/").status == 200
    pages = (ada.sees("users/"), ada.sees("audit/?target=mia"), ada.posts("actions/once/", made))
    assert not [page.address for page in pages if first in page.html or again in page.html]
    assert "There is already a user mia: change this user, or choose another name." in pages[2].text


@pytest.fixture
def only_admin(broker: Broker, ada: Operator) -> Iterator[Operator]:
    """Ada, while no other admin is active."""
    others = (
        "UPDATE auth_user SET is_active = false WHERE is_superuser AND is_active AND username <> 'ada' RETURNING id"
    )
    ids = [row.id for row in broker.connection.execute(others)]
    yield ada
    broker.connection.execute("UPDATE auth_user SET is_active = true WHERE id = ANY (%s)", (ids,))


def test_the_last_active_admin_stays(broker: Broker, only_admin: Operator) -> None:
    ada = only_admin
    for values in ({"role": "viewer"}, {"active": "no"}):
        refused = changes(ada, "ada", **values)
        assert "ada is the last active admin: first give another user the role admin." in refused.text
    deleted = ada.posts("actions/new/", {"action": "user.delete", "target": "ada", "reason": "of a test"})

    assert "ada is the last active admin" in deleted.text
    assert roles_of(broker, "ada") == ["admin", "bodies"]
    assert ada.sees("users/").status == 200


def test_a_name_that_may_be_a_subject_of_an_identity_provider_is_no_name_of_a_local_user(ada: Operator) -> None:
    page = ada.posts("actions/once/", {"action": "user.make", "target": "oidc:1", "role": "viewer", "reason": "why"})

    assert page.status == 422
    assert "'oidc:1' is not a valid user name: give 1 to 150 letters, digits and _ . @ + -." in page.text


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
    assert "Viewers see no bodies unless an admin gives them this right at Users." in page.text
    assert "orders" in page.links
