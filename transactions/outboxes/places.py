"""The place of a source: server, port, database and user, as libpq reads them from a URL, and its addresses."""

import asyncio
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any, NamedTuple

import psycopg
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import make_conninfo

from store.db import sealing, server_url
from store.db.sealing import SecretUnreadable
from store.errors import MessageIllegal, Refusal
from store.process import runtime
from webhooks.addresses import Lookups, forbidden_kind, literal_address, look_up

DEFAULT_PORT = 5432
MAX_PORT = 65535
MAX_HOSTS = 10
MAX_SAID = 500
SHORT_PASSWORD = 3
PLACE = ("host", "port", "dbname", "user", "password")
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
SESSIONS = ("any", "read-write", "read-only", "primary", "standby", "prefer-standby")
# The valid values by option; None: any text. Other options could name files of this machine, or change the connection's
# behaviour.
OPTIONS: Mapping[str, Sequence[str] | None] = {
    "application_name": None,
    "channel_binding": ("disable", "prefer", "require"),
    "connect_timeout": tuple(map(str, range(1, 61))),
    "sslmode": SSL_MODES,
    "target_session_attrs": SESSIONS,
}


class SourceForbidden(MessageIllegal):
    """The broker may not connect to the address of this outbox's server."""


class Place(NamedTuple):
    """The place of a source: its hosts with ports, and the other parameters for libpq in `given`."""

    servers: tuple[tuple[str, int], ...]
    database: str
    user: str
    given: Mapping[str, str]

    @property
    def named(self) -> str:
        """The place as text for a sentence or a line."""
        return f"{','.join(map(_with_port, self.servers))}/{self.database}"

    def said(self, problem: BaseException) -> str:
        """A driver's message about a problem, in one line and without the password, which the server's answer may
        contain.

        Only the first sentence of a server's answer is kept, because its details may quote a whole row.
        """
        first = problem.diag.message_primary if isinstance(problem, psycopg.Error) else None
        said = " ".join((first or str(problem)).split()) or type(problem).__name__
        password = self.given["password"]
        # A shorter password is not replaced: it would match parts of words, and is no secret.
        return (said.replace(password, "…") if len(password) > SHORT_PASSWORD else said)[:MAX_SAID]

    @property
    def shown(self) -> dict[str, Any]:
        """Server, port, database and user for answers, the console and the audit.

        Several hosts are separated by commas, each with its port if the ports differ.
        """
        ports = {port for _, port in self.servers}
        if len(ports) == 1:
            server, port = ",".join(host for host, _ in self.servers), next(iter(ports))
        else:
            server, port = ",".join(map(_with_port, self.servers)), None
        return {"server": server, "port": port, "database": self.database, "user": self.user}


def _with_port(server: tuple[str, int]) -> str:
    host, port = server
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def read(url: str) -> Place:
    """The place in a URL. Raises MessageIllegal, whose text has no part of the URL except the name of an option."""
    if not url.isprintable() or " " in url:
        raise _illegal("holds a blank or a character of control: write it as %20, %0A, …")
    try:
        found = server_url.parts(url, "url")
    except ImproperlyConfigured as problem:
        raise MessageIllegal(str(problem)) from None
    for name, value in found.items():
        _require_option(name, value)
    for name, meaning in (("host", "server"), ("dbname", "database"), ("user", "user"), ("password", "password")):
        if not found.get(name, "").strip():
            raise _illegal(f"names no {meaning}: {server_url.FORM}")
    if not (found["dbname"] + found["user"]).isprintable():
        raise _illegal("names a database or a user with a character of control")
    # The broker itself sets the last two of these options.
    left = ("host", "port", "connect_timeout", "application_name")
    given = {name: value for name, value in found.items() if name not in left}
    return Place(_servers(found["host"], found.get("port", "")), found["dbname"], found["user"], given)


def _require_option(name: str, value: str) -> None:
    if name in PLACE:
        return
    if name not in OPTIONS:
        raise MessageIllegal(
            f"url has the option {name}: the URL of an outbox may only have the options {', '.join(sorted(OPTIONS))}."
        )
    valid = OPTIONS[name]
    if valid is not None and value not in valid:
        words = f"{valid[0]} to {valid[-1]}" if valid[0].isdigit() else ", ".join(valid)
        raise MessageIllegal(f"The option {name} of url has an invalid value: give {words}.")


def _servers(hosts: str, ports: str) -> tuple[tuple[str, int], ...]:
    names = hosts.split(",")
    numbers = ports.split(",") if ports else [""]
    if any(not name or name.startswith(("/", "@")) for name in names):
        raise _illegal("leads to a socket file: name a host or an address")
    if len(names) > MAX_HOSTS or len(numbers) not in (1, len(names)):
        raise _illegal(f"has more than {MAX_HOSTS} servers, or more of them than ports: {server_url.HOSTS}")
    found = [_port(number) for number in numbers]
    return tuple(zip(names, found * len(names) if len(found) == 1 else found, strict=True))


def _port(text: str) -> int:
    if not text:
        return DEFAULT_PORT
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_PORT)) and 1 <= int(text) <= MAX_PORT):
        raise _illegal(f"has a port that is none from 1 to {MAX_PORT}")
    return int(text)


def _illegal(complaint: str) -> MessageIllegal:
    return MessageIllegal(f"url {complaint}.")


def said_of(problem: BaseException, stored_url: str) -> str:
    """The message about an error of the source with this stored URL, without the password."""
    try:
        return read(sealing.opened(stored_url)).said(problem)
    except (Refusal, SecretUnreadable) as unreadable:
        # An earlier version has stored this URL. A driver's message may contain it, so this message is returned
        # instead.
        return str(unreadable)


async def reachable(place: Place) -> str:
    """Calls `conninfo` in a thread. A name server that hangs delays only other look-ups of names."""
    return await asyncio.get_running_loop().run_in_executor(runtime.control(Lookups), conninfo, place)


def conninfo(place: Place) -> str:
    """The connection string of a place, with an allowed address for each host.

    The address is fixed here, so that the driver looks up no other. Blocks while names are looked up. Raises
    SourceForbidden if no address is allowed, and OSError if no name has an address.
    """
    found: list[tuple[str, str, int]] = []
    unknown: OSError | None = None
    for host, port in place.servers:
        try:
            found += [(host, address, port) for address in _addresses(host, port)]
        except OSError as problem:
            unknown = OSError(f"the name {host} has no address ({problem.strerror or type(problem).__name__})")
    allowed = [one for one in found if _forbidden(one[1]) is None]
    if not allowed and unknown is not None:
        raise unknown
    if not allowed:
        address = found[0][1]
        raise SourceForbidden(
            f"The broker may not connect to the server of the outbox: {address} is {_forbidden(address)}. Use "
            "a public address, or list its network in OUTBOX_ALLOWED_NETWORKS."
        )
    hosts, addresses, ports = (",".join(map(str, column)) for column in zip(*allowed, strict=True))
    return make_conninfo(**{**place.given, "host": hosts, "hostaddr": addresses, "port": ports})


def _addresses(host: str, port: int) -> Sequence[str]:
    literal = literal_address(host)
    return look_up(host, port) if literal is None else [str(literal)]


def _forbidden(address: str) -> str | None:
    return forbidden_kind(ip_address(address.partition("%")[0]), settings.OUTBOX_ALLOWED_NETWORKS)
