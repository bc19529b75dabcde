"""Promises of the sign-on about ID tokens and callbacks that do not hold: nobody comes in by one."""

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest

from tests.sign_on.conftest import CLIENT, private_key
from tests.sign_on.people import Console, Person, Provider

REFUSED = "The ID token of the identity provider was refused:"
Nobody = Callable[[str], None]


@pytest.fixture
def nobody_comes_in(mia: Person, session: psycopg.Connection[Any]) -> Nobody:
    """Holds that a sign-on is refused with a sentence, and leaves no account and no session."""

    def holds(sentence: str) -> None:
        page = mia.signs_on()

        assert page.status == 403
        assert sentence in page.text
        assert "/login/" in mia.operator.sees("topics/").address
        assert session.execute("SELECT count(*) FROM auth_user").fetchone() == (0,)

    return holds


@pytest.mark.parametrize("algorithm", ["RS256", "HS256", "none"])
def test_a_forged_token_is_refused(provider: Provider, nobody_comes_in: Nobody, algorithm: str) -> None:
    keys = {"RS256": private_key(), "HS256": CLIENT["MQBROKER_SIGN_ON_CLIENT_SECRET"], "none": ""}
    provider.gives_wrong_tokens(algorithm=algorithm, key=keys[algorithm])

    nobody_comes_in(REFUSED)


def test_an_expired_token_is_refused(provider: Provider, nobody_comes_in: Nobody) -> None:
    provider.gives_wrong_tokens(claims={"exp": int(time.time()) - 60})

    nobody_comes_in(f"{REFUSED} Signature has expired")


def test_a_token_for_another_audience_is_refused(provider: Provider, nobody_comes_in: Nobody) -> None:
    provider.gives_wrong_tokens(claims={"aud": "another client"})

    nobody_comes_in(f"{REFUSED} Audience doesn't match")


def test_a_token_that_another_client_asked_for_is_refused(provider: Provider, nobody_comes_in: Nobody) -> None:
    provider.gives_wrong_tokens(claims={"aud": ["console", "another client"], "azp": "another client"})

    nobody_comes_in(f"{REFUSED} It was issued to another client.")


def test_a_token_of_another_issuer_is_refused(provider: Provider, nobody_comes_in: Nobody) -> None:
    provider.gives_wrong_tokens(claims={"iss": "https://elsewhere.example"})

    nobody_comes_in(f"{REFUSED} Invalid issuer")


def test_a_token_of_an_earlier_sign_on_is_refused_for_its_nonce(
    mia: Person, provider: Provider, session: psycopg.Connection[Any], nobody_comes_in: Nobody
) -> None:
    mia.signs_on()
    session.execute("DELETE FROM auth_user_groups; DELETE FROM auth_user")
    provider.gives_wrong_tokens(token=provider.latest_token)

    nobody_comes_in(f"{REFUSED} It was issued for another sign-in.")


def test_a_text_that_is_no_token_is_refused(provider: Provider, nobody_comes_in: Nobody) -> None:
    provider.gives_wrong_tokens(token="no.token")

    nobody_comes_in(REFUSED)


@pytest.mark.parametrize("subject", ["a" * 146, "nul\0", "müller", ""])
def test_a_subject_that_is_no_name_is_refused(provider: Provider, nobody_comes_in: Nobody, subject: str) -> None:
    provider.gives_wrong_tokens(claims={"sub": subject})

    nobody_comes_in("The subject in the ID token")


def test_a_wrong_token_at_a_renewal_ends_the_session(mia: Person, console: Console, provider: Provider) -> None:
    mia.signs_on()
    provider.gives_wrong_tokens(claims={"aud": "another client"})
    console.makes_sessions_due()

    page = mia.operator.follows(mia.operator.sees("topics/"), "Continue")

    assert page.status == 403
    assert "/login/" in mia.operator.sees("topics/").address


def test_a_callback_that_this_browser_has_not_begun_is_refused(mia: Person) -> None:
    mia.signs_on()

    page = mia.operator.sees(f"sign-on/return/?{urlencode({'code': 'x', 'state': 'of another browser'})}")

    assert page.status == 403
    assert "This sign-on was begun in another browser, or is over: begin again." in page.text
    # A link that somebody else made signs nobody out.
    assert mia.operator.sees("topics/").status == 200


def test_a_callback_is_taken_once(mia: Person, console: Console) -> None:
    mia.operator.sees("sign-on/")
    state = next(iter(console.states()))
    answers = [mia.operator.sees(f"sign-on/return/?{urlencode({'code': 'x', 'state': state})}") for _ in range(2)]

    assert "The identity provider does not accept the code of this sign-in: begin again." in answers[0].text
    assert "or is over: begin again." in answers[1].text


def test_an_error_of_the_provider_is_shown(mia: Person, console: Console) -> None:
    mia.operator.sees("sign-on/")
    query = urlencode({"error": "access_denied", "state": next(iter(console.states()))})

    page = mia.operator.sees(f"sign-on/return/?{query}")

    assert (page.status, "ended the sign-on (access_denied)" in page.text) == (403, True)


def test_too_many_sign_ons_from_one_address_wait(mia: Person) -> None:
    looks = [mia.operator.looks_at("sign-on/")[0] for _ in range(21)]

    assert looks == [302] * 20 + [429]


def test_the_sign_in_form_takes_no_code_of_the_provider(mia: Person) -> None:
    mia.operator.sees("login/")

    page = mia.operator.posts("login/?code=x&state=x", {"username": "oidc:1", "password": "x"})

    assert "Please enter the correct username and password" in page.text


def test_the_console_leads_to_the_providers_address_only(mia: Person, provider: Provider) -> None:
    page = mia.signs_on("topics/&next=https://elsewhere.example/")

    assert page.address.startswith(mia.console.url)
