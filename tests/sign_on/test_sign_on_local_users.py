"""Promises about local users beside the sign-on: they are the fallback, and can be turned off."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqbroker.embedded import commands
from tests.broker.ports import free_port
from tests.console.conftest import PASSWORD, USERS
from tests.console.operators import Operator
from tests.sign_on.conftest import serving, variables
from tests.sign_on.people import Console, Provider


@contextmanager
def another_console(beside: Console, provider: Provider, log: Path, **more: str) -> Iterator[Console]:
    """One more web process with the same users, and its settings."""
    port = free_port()
    console = Console(f"http://127.0.0.1:{port}", beside.database, variables(beside.database, provider, **more))
    command = commands.web(port, processes=1, reload=False)
    with serving("web", command, console.variables, log, f"{console.url}/console/login/"):
        yield console


@pytest.fixture
def with_users(console: Console) -> Console:
    """The console with local users."""
    console.manage("shell", "--verbosity", "0", "--command", USERS)
    return console


def test_a_local_user_signs_in_beside_the_provider(with_users: Console) -> None:
    ada = Operator.signed_in(with_users.url, "ada", PASSWORD)
    with_users.makes_sessions_due()

    assert ada.sees("users/").status == 200
    assert 'http-equiv="refresh"' not in ada.sees("topics/").html


def test_while_the_provider_is_away_local_users_sign_in(with_users: Console, tmp_path: Path) -> None:
    nowhere = Provider(f"http://127.0.0.1:{free_port()}", tmp_path)
    with another_console(with_users, nowhere, tmp_path / "web.log") as console:
        page = Operator(console.url).sees("sign-on/")
        assert (page.status, "The identity provider did not answer as expected" in page.text) == (503, True)

        assert Operator.signed_in(console.url, "ada", PASSWORD).sees("topics/").status == 200


def test_without_local_users_no_password_opens_the_console_and_their_sessions_are_over(
    with_users: Console, provider: Provider, tmp_path: Path
) -> None:
    ada = Operator.signed_in(with_users.url, "ada", PASSWORD)
    off = {"MQBROKER_SIGN_ON_LOCAL_USERS": "false"}
    with another_console(with_users, provider, tmp_path / "web.log", **off) as console:
        there = Operator(console.url, ada.cookies)
        page = there.sees("topics/")
        assert page.address.startswith(f"{console.url}/console/login/")
        assert "Sign in with 127.0.0.1" in page.links
        assert 'name="password"' not in page.html

        there.posts("login/", {"username": "ada", "password": PASSWORD})

        assert "/login/" in there.sees("topics/").address
