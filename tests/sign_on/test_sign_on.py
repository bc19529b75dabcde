"""Promises of the sign-on: the identity provider says who comes in, as what, and for how long."""

from typing import Any

import psycopg

from tests.sign_on.people import Console, Person, Provider


def roles_of(person: Person, session: psycopg.Connection[Any]) -> list[str]:
    """The roles of a person's user at the console, as the database has them."""
    query = """
        SELECT g.name FROM auth_user u JOIN auth_user_groups ug ON ug.user_id = u.id
        JOIN auth_group g ON g.id = ug.group_id WHERE u.username = %s ORDER BY g.name
    """
    return [name for (name,) in session.execute(query, [person.subject])]


def test_a_user_of_the_provider_comes_to_the_page_that_was_wanted(mia: Person) -> None:
    stranger = mia.operator.sees("topics/")
    assert "Sign in with 127.0.0.1" in stranger.links

    page = mia.signs_on()

    assert (page.status, page.address) == (200, f"{mia.console.url}/console/topics/")
    assert mia.operator.sees("users/").status == 403


def test_a_role_changed_at_the_provider_holds_at_the_next_sign_on(
    mia: Person, provider: Provider, session: psycopg.Connection[Any]
) -> None:
    mia.signs_on()
    assert roles_of(mia, session) == ["operator"]

    provider.gives_roles("mia", "viewer", "bodies", "unknown")
    mia.signs_on()
    assert roles_of(mia, session) == ["bodies", "viewer"]

    provider.gives_roles("mia", "admin", "viewer")
    mia.signs_on()
    assert roles_of(mia, session) == ["admin"]
    assert mia.operator.sees("users/").status == 200


def test_the_audit_names_the_subject(mia: Person, provider: Provider, session: psycopg.Connection[Any]) -> None:
    mia.signs_on()
    provider.gives_roles("mia", "admin")
    mia.signs_on()
    mia.signs_on()

    query = (
        "SELECT author_kind, author, action, target, reason, before, after FROM audit_entry ORDER BY id DESC LIMIT 2"
    )
    changes = session.execute(query).fetchall()

    signed = ("user", "oidc:1", "user.change", "oidc:1", f"sign-on at {provider.issuer}")
    assert changes == [
        (*signed, {"role": "operator"}, {"role": "admin"}),
        (*signed, {"role": None}, {"role": "operator"}),
    ]


def test_a_user_whose_last_role_is_taken_away_is_refused_and_out(
    mia: Person, provider: Provider, session: psycopg.Connection[Any]
) -> None:
    mia.signs_on()
    provider.gives_roles("mia")

    page = mia.signs_on()

    assert page.status == 403
    assert "The identity provider gives oidc:1 no role: its claim roles needs viewer, operator or admin." in page.text
    assert roles_of(mia, session) == []
    assert "/login/" in mia.operator.sees("topics/").address


def test_a_user_without_a_role_leaves_no_account(noa: Person, session: psycopg.Connection[Any]) -> None:
    assert noa.signs_on().status == 403

    assert session.execute("SELECT count(*) FROM auth_user").fetchone() == (0,)


def test_a_user_whom_an_admin_has_made_inactive_is_refused(mia: Person, session: psycopg.Connection[Any]) -> None:
    mia.signs_on()
    session.execute("UPDATE auth_user SET is_active = false")

    page = mia.signs_on()

    assert page.status == 403
    assert "The console user oidc:1 is not active: an admin changes this under Users." in page.text


def test_a_session_that_lasts_at_the_provider_is_renewed_with_its_role(
    mia: Person, console: Console, provider: Provider
) -> None:
    mia.signs_on()
    provider.gives_roles("mia", "admin")
    console.makes_sessions_due()

    due = mia.operator.sees("topics/")
    assert 'http-equiv="refresh"' in due.html
    page = mia.operator.follows(due, "Continue")

    assert (page.status, page.address) == (200, f"{console.url}/console/topics/")
    assert mia.operator.sees("users/").status == 200


def test_a_session_ends_with_that_of_the_provider(mia: Person, console: Console, provider: Provider) -> None:
    mia.signs_on()
    provider.ends_sessions()
    console.makes_sessions_due()

    page = mia.operator.follows(mia.operator.sees("topics/"), "Continue")

    assert page.address == f"{console.url}/console/login/"
    assert "/login/" in mia.operator.sees("").address


def test_a_session_that_is_not_renewed_ends_after_twice_the_time(mia: Person, session: psycopg.Connection[Any]) -> None:
    mia.signs_on()

    query = "SELECT max(expire_date) <= now() + interval '30 minutes' FROM django_session"
    assert session.execute(query).fetchone() == (True,)


def test_parts_of_a_page_are_not_led_away(mia: Person, console: Console) -> None:
    mia.signs_on()
    console.makes_sessions_due()
    mia.operator.opener.addheaders = [("Sec-Fetch-Mode", "cors")]

    assert 'http-equiv="refresh"' not in mia.operator.sees("topics/").html
