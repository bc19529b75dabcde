"""Promises about where a call goes: only to an allowed address, and over TLS only to a trusted server."""

import asyncio
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from tests import packages
from tests.webhooks.calls import SHORT, ask
from tests.webhooks.strangers import Connection, Stranger, answer
from webhooks.addresses import check_url, parse_networks
from webhooks.caller import Caller
from webhooks.connections import Exchange, connector, exchange_under_way


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:127.0.0.1]"])
async def test_loopback_in_any_spelling_is_not_connected_to(
    strict_caller: Caller, stranger: Stranger, secret: str, host: str
) -> None:
    port = URL(await stranger.answers(answer())).port

    got = await ask(strict_caller, f"http://{host}:{port}/", secret)

    assert (got.outcome, got.asked, got.status) == ("forbidden_address", False, None)
    assert got.reason.endswith("is a loopback address, which WEBHOOK_ALLOWED_NETWORKS does not list.")
    assert stranger.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:127.0.0.1]"])
async def test_the_same_spellings_are_called_where_the_operator_allows_loopback(
    caller: Caller, stranger: Stranger, secret: str, host: str
) -> None:
    port = URL(await stranger.answers(answer())).port

    assert (await ask(caller, f"http://{host}:{port}/", secret)).ok


async def test_ipv6_loopback_is_compared_with_its_own_network(stranger: Stranger, secret: str) -> None:
    url = await stranger.listen(_answering, host="::1")
    async with Caller(parse_networks("::1")) as allowed, Caller(parse_networks("127.0.0.0/8")) as forbidden:
        assert (await ask(allowed, url, secret)).ok
        assert (await ask(forbidden, url, secret)).outcome == "forbidden_address"


async def test_a_name_is_judged_by_the_address_it_has_when_it_is_connected_to(
    strict_caller: Caller, stranger: Stranger, secret: str
) -> None:
    url = str(URL(await stranger.answers(answer())).with_host("localhost"))
    check_url(url, parse_networks("127.0.0.0/8,::1/128"))  # It passed at registration, in another light.

    got = await ask(strict_caller, url, secret)

    assert (got.outcome, got.asked) == ("forbidden_address", False)
    assert stranger.connections == 0


async def test_a_name_with_one_allowed_address_is_called_at_that_one(stranger: Stranger, secret: str) -> None:
    url = str(URL(await stranger.answers(answer())).with_host("localhost"))
    async with Caller(parse_networks("127.0.0.1/32")) as caller:
        assert (await ask(caller, url, secret)).ok


class StrangersNames(AbstractResolver):
    """A foreign name server: its answers are arbitrary, and differ each time."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self._answers.pop(0)
        ]

    async def close(self) -> None:
        pass


async def test_a_name_that_points_inside_is_not_connected_to_at_any_of_its_addresses(stranger: Stranger) -> None:
    port = URL(await stranger.answers(answer())).port
    names = StrangersNames(["127.0.0.1", "::1", "10.0.0.1"])
    exchange = Exchange()
    exchange_under_way.set(exchange)

    async with aiohttp.ClientSession(
        connector=connector((), ssl.create_default_context(), names, keep=True)
    ) as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.post(f"http://shop.example:{port}/")

    assert exchange.forbidden
    assert (exchange.kept, stranger.connections) == (True, 0)


async def test_of_the_addresses_of_a_name_only_those_that_may_be_called_are(stranger: Stranger) -> None:
    port = URL(await stranger.answers(answer())).port
    names = StrangersNames(["10.0.0.1", "::1", "127.0.0.1"])
    exchange_under_way.set(Exchange())

    async with (
        aiohttp.ClientSession(
            connector=connector(parse_networks("127.0.0.1"), ssl.create_default_context(), names, keep=True)
        ) as session,
        session.post(f"http://shop.example:{port}/") as response,
    ):
        assert response.status == 200


async def test_https_is_spoken_to_a_server_with_a_trusted_certificate(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, stranger: Stranger, secret: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))  # As an operator with a private CA does.
    url = await stranger.listen(_answering, tls=_server_tls(certificate))
    async with Caller(parse_networks("127.0.0.0/8")) as caller:
        first, second = await ask(caller, url, secret), await ask(caller, url, secret)

    assert (first.outcome, first.status, second.ok) == ("answered", 200, True)
    assert stranger.connections == 1


async def test_an_untrusted_certificate_is_not_asked(
    certificate: Path, caller: Caller, stranger: Stranger, secret: str
) -> None:
    url = await stranger.listen(_answering, tls=_server_tls(certificate))

    got = await ask(caller, url, secret)

    assert (got.outcome, got.asked) == ("tls", False)
    assert "certificate verify failed" in got.reason
    assert stranger.requests == []


async def test_https_to_a_server_that_speaks_plain_http_is_not_asked(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    async def speak_plainly(connection: Connection) -> None:
        await connection.reader.read(1)
        await connection.send(answer())

    url = str(URL(await stranger.listen(speak_plainly)).with_scheme("https"))

    got = await ask(caller, url, secret)

    assert (got.outcome, got.asked) == ("tls", False)


async def test_a_handshake_that_never_ends_is_held_to_the_deadline(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    async def stay_silent(connection: Connection) -> None:
        await connection.closed_by_caller()

    url = str(URL(await stranger.listen(stay_silent)).with_scheme("https"))

    got = await ask(caller, url, secret, SHORT)

    assert (got.outcome, got.asked) == ("timeout", False)
    assert got.reason == f"The deadline of {SHORT:g} s passed before it was asked."


async def test_many_calls_at_once_to_one_server_are_all_answered(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    url = await stranger.listen(_answering)

    answers = await asyncio.gather(*(ask(caller, url, secret) for _ in range(200)))

    assert {got.outcome for got in answers} == {"answered"}
    assert len(stranger.requests) == 200


async def _answering(connection: Connection) -> None:
    while True:
        await connection.request()
        await connection.send(answer())


def _server_tls(certificate: Path) -> ssl.SSLContext:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    return tls


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that signs itself, made anew so that no key is kept in the repository."""
    if shutil.which("openssl") is None:
        packages.skip_for_want_of("openssl", "The command openssl")
    folder = tmp_path_factory.mktemp("certificate")
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*make.split(), "-keyout", "key.pem", "-out", "cert.pem"], cwd=folder, check=True)
    return folder
