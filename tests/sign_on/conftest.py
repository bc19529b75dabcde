"""The characters of the sign-on: an identity provider with two users, and a console that knows no other way in."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import urllib3
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mqbroker.embedded import commands
from tests.broker import databases, forks
from tests.broker.ports import free_port
from tests.console.conftest import ROOT, environment
from tests.sign_on.people import Console, Person, Provider

CLIENT = {"MQBROKER_SIGN_ON_CLIENT_ID": "console", "MQBROKER_SIGN_ON_CLIENT_SECRET": "secret of the console"}


def private_key() -> str:
    """A new RSA key, as PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@contextmanager
def serving(name: str, command: list[str], variables: dict[str, str], log: Path, address: str) -> Iterator[None]:
    """A process that answers at the address."""
    child = forks.ForkedChild(name, command, variables, log, ROOT, stop_seconds=20)
    child.start()
    try:
        patient = urllib3.Retry(total=900, backoff_factor=0.05, backoff_max=0.2)
        answer = urllib3.request("GET", address, retries=patient)
        assert answer.status == 200, log.read_text()
        yield
    finally:
        child.stop()


@pytest.fixture(scope="package")
def ports() -> tuple[int, int]:
    """The ports of the provider and of the console, each of which has to know the other."""
    return free_port(), free_port()


@pytest.fixture(scope="package")
def running_provider(ports: tuple[int, int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    """The provider's process."""
    folder = tmp_path_factory.mktemp("provider")
    (folder / "provider.pem").write_text(private_key())
    provider = Provider(f"http://127.0.0.1:{ports[0]}", folder)
    callback = f"http://127.0.0.1:{ports[1]}/console/sign-on/return/"
    command = commands.python("-m", "tests.sign_on.provider", str(ports[0]), callback)
    variables = {
        "PATH": "/usr/bin:/bin",
        "DJANGO_SETTINGS_MODULE": "tests.sign_on.provider.settings",
        "PROVIDER_FOLDER": str(folder),
        "PROVIDER_ISSUER": provider.issuer,
        "OAUTHLIB_INSECURE_TRANSPORT": "1",
    }
    discovery = f"{provider.issuer}/.well-known/openid-configuration"
    with serving("provider", command, variables, folder / "provider.log", discovery):
        yield provider


@pytest.fixture
def provider(running_provider: Provider) -> Provider:
    """The identity provider, with nothing wrong, at which nobody is signed in or has a role."""
    running_provider.gives_wrong_tokens()
    running_provider.ends_sessions()
    for name in ("mia", "noa"):
        running_provider.gives_roles(name)
    return running_provider


@pytest.fixture(scope="package")
def running_console(
    prepared: str, ports: tuple[int, int], running_provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Console]:
    """A web process whose users are the provider's."""
    log = tmp_path_factory.mktemp("console") / "web.log"
    with databases.copied(prepared) as database:
        console = Console(f"http://127.0.0.1:{ports[1]}", database, variables(database, running_provider))
        command = commands.web(ports[1], processes=1, reload=False)
        with serving("web", command, console.variables, log, f"{console.url}/console/login/"):
            yield console
        assert "Traceback" not in log.read_text(), log.read_text()


def variables(database: str, provider: Provider, **more: str) -> dict[str, str]:
    """The environment of a console that signs on at the provider."""
    return {**environment(database), "MQBROKER_SIGN_ON_ISSUER": provider.issuer, **CLIENT, **more}


@pytest.fixture
def console(running_console: Console, session: psycopg.Connection[Any]) -> Console:
    """The console, at which nobody is signed in, and which knows nobody."""
    session.execute("DELETE FROM auth_user_groups; DELETE FROM auth_user; DELETE FROM django_session")
    session.execute("TRUNCATE sign_in_limit")
    return running_console


@pytest.fixture(scope="package")
def session(running_console: Console) -> Iterator[psycopg.Connection[Any]]:
    """A session at the console's database."""
    with psycopg.connect(running_console.database, autocommit=True) as session:
        yield session


@pytest.fixture
def mia(console: Console, provider: Provider) -> Person:
    """An operator at the provider."""
    provider.gives_roles("mia", "operator")
    return Person("mia", console, provider)


@pytest.fixture
def noa(console: Console, provider: Provider) -> Person:
    """Somebody whom the provider knows, without a role."""
    return Person("noa", console, provider)
