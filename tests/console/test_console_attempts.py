"""Promises about guessing: how often a password may be tried, where that is counted, and whom it never keeps out."""

import http.client
import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
import urllib3
from django.conf import LazySettings
from django.test import RequestFactory

from console.models import SLOTS
from console.users import sign_in_attempts
from tests.broker.ports import free_port
from tests.console.conftest import PASSWORD, serving
from tests.console.operators import Operator
from tests.console.rows import Broker

REFUSED = "Too many wrong passwords for this name or from this address: try again in "
WRONG = "Please enter the correct username and password"


@dataclass(frozen=True)
class Visitor:
    """A caller at an address of the loopback network, whose browser keeps the cookies it is given."""

    console: str
    address: str
    cookies: dict[str, str]

    def tries(self, name: str, password: str, **headers: str) -> tuple[int, str, dict[str, str]]:
        """Status, page and headers of an attempt to sign in."""
        self._asks("GET", {}, headers)
        form = {"username": name, "password": password, "csrfmiddlewaretoken": self.cookies["csrftoken"]}
        return self._asks("POST", form, headers)

    def _asks(self, method: str, form: dict[str, str], headers: dict[str, str]) -> tuple[int, str, dict[str, str]]:
        place = urlsplit(self.console).netloc
        line = http.client.HTTPConnection(place, timeout=120, source_address=(self.address, 0))
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {"Cookie": cookies, "Content-Type": "application/x-www-form-urlencoded", **headers}
        line.request(method, "/console/login/", urlencode(form) if form else None, sent)
        answer = line.getresponse()
        page = answer.read().decode()
        for given in answer.headers.get_all("Set-Cookie", []):
            name, _, value = given.partition(";")[0].partition("=")
            self.cookies[name] = value
        line.close()
        return answer.status, page, {name.lower(): value for name, value in answer.getheaders()}


def visitor(console: str, address: str = "127.0.0.1") -> Visitor:
    """A caller with a browser that was never here."""
    return Visitor(console, address, {})


@pytest.fixture(scope="module")
def second_console(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Another web process of the same broker."""
    port, log = free_port(), Path(tmp_path_factory.mktemp("second") / "web.log")
    with serving(database, port, log):
        address = f"http://127.0.0.1:{port}"
        patient = urllib3.Retry(total=100, backoff_factor=0.05, backoff_max=0.2)
        urllib3.request("GET", f"{address}/console/login/", retries=patient)
        yield address


def use_up(broker: Broker) -> None:
    """Takes every attempt of those that have made one; in an hour the first comes back."""
    broker.connection.execute("UPDATE sign_in_limit SET free_at = now() + interval '2 hours'")


def leave(broker: Broker, user: str, left: int) -> None:
    """Takes every attempt but so many at a user at whom there was an attempt."""
    spent = (sign_in_attempts.OF_USER.attempts - left) * sign_in_attempts.OF_USER.seconds_each
    broker.connection.execute(
        "UPDATE sign_in_limit SET free_at = now() + %s * interval '1 second' WHERE slot = %s",
        [spent, sign_in_attempts.slot("user", user)],
    )


def most(left: int, started: float) -> int:
    """Guesses at a user that may have been looked at since: those left, and those that came back meanwhile."""
    return left + int((time.monotonic() - started) / sign_in_attempts.OF_USER.seconds_each) + 1


def test_guesses_at_one_user_are_limited_over_all_web_processes_and_addresses(
    broker: Broker, console: str, second_console: str
) -> None:
    def guess(number: int) -> int:
        place = (console, second_console)[number % 2]
        return visitor(place, f"127.0.1.{number + 1}").tries("ada", f"guess {number}")[0]

    # Of ten, because each that is looked at takes a third of a second of processor time.
    visitor(console).tries("ada", "wrong")
    leave(broker, "ada", 3)
    started = time.monotonic()
    with ThreadPoolExecutor(20) as many:
        statuses = list(many.map(guess, range(20)))

    looked_at = statuses.count(200)
    assert 1 <= looked_at <= most(3, started)
    assert statuses.count(429) == 20 - looked_at


def test_ten_guesses_at_a_user_are_looked_at(broker: Broker, console: str) -> None:
    guesser, started = visitor(console), time.monotonic()

    pages = list(
        itertools.takewhile(lambda page: REFUSED not in page, (guesser.tries("ada", "no")[1] for _ in "x" * 60))
    )

    assert all(WRONG in page for page in pages)
    assert sign_in_attempts.OF_USER.attempts <= len(pages) <= most(sign_in_attempts.OF_USER.attempts, started)


def test_a_guess_too_many_is_refused_without_a_look_at_the_password(broker: Broker, console: str) -> None:
    guesser = visitor(console)
    guesser.tries("ada", "wrong")
    use_up(broker)

    status, page, headers = guesser.tries("ada", PASSWORD)

    assert status == 429
    assert REFUSED in page
    assert 3600 <= int(headers["retry-after"]) <= 7200
    assert "sessionid" not in guesser.cookies


def test_an_attempt_comes_back_with_time(broker: Broker, console: str) -> None:
    guesser = visitor(console)
    guesser.tries("ada", "wrong")
    use_up(broker)
    assert guesser.tries("ada", PASSWORD)[0] == 429

    broker.connection.execute("UPDATE sign_in_limit SET free_at = free_at - interval '2 hours'")

    assert guesser.tries("ada", PASSWORD)[0] == 302


def test_guesses_from_one_address_are_limited_whatever_the_names_and_the_headers(broker: Broker, console: str) -> None:
    assert visitor(console, "127.0.2.1").tries("user 1", "wrong")[0] == 200
    use_up(broker)

    forwarded = {"X-Forwarded-For": "203.0.113.7"}
    assert visitor(console, "127.0.2.1").tries("user 2", "wrong", **forwarded)[0] == 429
    assert visitor(console, "127.0.2.2").tries("user 2", "wrong")[0] == 200


def test_a_stranger_keeps_nobody_out_whose_browser_has_signed_in_before(broker: Broker, console: str) -> None:
    ada = visitor(console)
    assert ada.tries("ada", PASSWORD)[0] == 302
    visitor(console).tries("ada", "wrong")
    use_up(broker)
    assert visitor(console, "127.0.3.1").tries("ada", PASSWORD)[0] == 429

    del ada.cookies["sessionid"]

    assert ada.tries("ada", PASSWORD)[0] == 302


def test_a_browser_of_another_user_has_no_attempts_of_its_own(broker: Broker, console: str) -> None:
    bob = visitor(console)
    bob.tries("bob", PASSWORD)
    del bob.cookies["sessionid"]
    bob.tries("ada", "wrong")
    use_up(broker)

    assert bob.tries("ada", PASSWORD)[0] == 429


def test_the_right_password_uses_no_attempt_up(broker: Broker, console: str) -> None:
    visitor(console).tries("ada", "wrong")
    leave(broker, "ada", 1)

    statuses = {visitor(console).tries("ada", PASSWORD)[0] for _ in range(3)}

    assert statuses == {302}


def test_guesses_at_ones_own_old_password_are_limited(broker: Broker, console: str) -> None:
    bob = Operator.signed_in(console, "bob", PASSWORD)
    token = next(cookie.value or "" for cookie in bob.cookies if cookie.name == "csrftoken")
    new = {"new_password1": "a longer secret", "new_password2": "a longer secret", "csrfmiddlewaretoken": token}
    assert bob.sees("password_change/", old_password="wrong", **new).status == 200
    use_up(broker)

    page = bob.sees("password_change/", old_password=PASSWORD, **new)

    assert page.status == 429
    assert "Too many wrong passwords for this user: try again in " in page.text


def test_the_table_of_attempts_has_a_bounded_number_of_rows() -> None:
    slots = {sign_in_attempts.slot("user", f"user {number}") for number in range(10_000)}

    assert 0 <= min(slots) < max(slots) < SLOTS


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.7", "198.51.100.1", "203.0.113.7"),
        ("10.0.0.2", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.2", "192.0.2.66, 198.51.100.1, 10.0.0.3", "198.51.100.1"),
        ("10.0.0.2", "10.0.0.3", "10.0.0.3"),
        ("10.0.0.2", "", "10.0.0.2"),
        ("10.0.0.2", "unknown", "unknown"),
    ],
)
def test_only_a_trusted_proxy_is_believed_where_a_request_comes_from(
    settings: LazySettings, peer: str, forwarded: str, address: str
) -> None:
    settings.TRUSTED_PROXIES = ("10.0.0.0/8",)
    request = RequestFactory().get("/console/login/", REMOTE_ADDR=peer, headers={"X-Forwarded-For": forwarded})

    assert sign_in_attempts.address_of(request) == address


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:0:7:1:2:3:4", "2001:db8:0:7::/64"),
        ("x" * 100, "x" * 64),
    ],
)
def test_an_address_of_ipv6_counts_with_its_network(address: str, network: str) -> None:
    assert sign_in_attempts.network_of(address) == network
