"""Connections to outside servers: opened only to allowed addresses, kept for the next call, closed without waiting."""

import asyncio
import functools
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from typing import Any, cast

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage

from webhooks.addresses import Networks, forbidden_kind, look_up

# The limit bounds the file descriptors. The slots of calls stay far below; a wait for a connection counts in the call's
# deadline.
MAX_CONNECTIONS = 1_000
# The time is shorter than the 5 s of uvicorn and Node, so that the server seldom closes a kept connection first.
KEEP_SECONDS = 4.0
# A slow name server occupies a thread for its time-out, 10 s and more; aiohttp looks up a name only once at a time.
LOOKUP_THREADS = 16
DNS_CACHE_SECONDS = 10
# More interim answers (100 Continue, 103 Early Hints) than a correct server sends. With more the connection is closed.
MAX_INTERIM_ANSWERS = 16
# The most bytes that a server may send in addition to the body: heads, and the framing of small chunks. A correct
# server sends much less. The limit is needed because chunk extensions and trailers are otherwise unlimited.
HEADS_BYTES = 128 * 1024
FRAMED_TIMES = 8


@dataclass(slots=True)
class Exchange:
    """The state of one request while it is sent and answered."""

    #: Whether the request uses a connection of an earlier call, which the server may have just closed.
    kept: bool = True
    #: Whether the headers and the beginning of the body were written to a connection.
    written: bool = False
    #: Whether the last byte was written. Before that, no server can have read the whole request.
    whole: bool = False
    #: The reason why the connection to an address of the host was refused.
    forbidden: str | None = None
    status: int | None = None
    retry_after_seconds: float | None = None
    #: The URL to which the answer redirects.
    location: str | None = None
    #: The time of the signature. Below: the seconds by which the server's clock is ahead of this time.
    signed_at: datetime | None = None
    ahead_seconds: float | None = None
    #: How many bytes the answer may have.
    limit: int = 0
    #: Whether the server sent far more bytes than the limit.
    flooded: bool = False


#: The request for which this task is opening a connection; aiohttp has no other way to pass it to the connector.
exchange_under_way: ContextVar[Exchange] = ContextVar("exchange_under_way")


def connector(allowed: Networks, tls: ssl.SSLContext, resolver: AbstractResolver, keep: bool) -> aiohttp.TCPConnector:
    """A connector that checks each address at the time of the connection, whatever earlier look-ups returned."""
    made = aiohttp.TCPConnector(
        ssl=tls,
        resolver=resolver,
        ttl_dns_cache=DNS_CACHE_SECONDS,
        limit=MAX_CONNECTIONS,
        socket_factory=functools.partial(_open_socket, allowed),
        **({"keepalive_timeout": KEEP_SECONDS} if keep else {"force_close": True}),
    )
    # aiohttp has no public way to set the protocol class; the tests of Line fail if this attribute moves.
    made._factory = cast("functools.partial[ResponseHandler]", functools.partial(Line, asyncio.get_running_loop()))
    return made


def _open_socket(allowed: Networks, addr_info: aiohttp.AddrInfoType) -> socket.socket:
    """A socket for one address. The kernel connects to the same address that is checked here."""
    family, kind, protocol, _, sockaddr = addr_info
    exchange = exchange_under_way.get()
    forbidden = forbidden_kind(ip_address(str(sockaddr[0])), allowed)
    if forbidden:
        exchange.forbidden = f"{sockaddr[0]} is {forbidden}"
        raise PermissionError("This address may not be called.")
    exchange.kept = False
    return socket.socket(family, kind, protocol)


class Line(ResponseHandler):
    """A connection that closes when a server sends bytes without a request, or endlessly.

    aiohttp parses and queues bytes of an idle connection without a limit: 170 MB of memory a second, and an event loop
    blocked for 0.2 s at a time, when a server sends empty answers in a loop. aiohttp then takes the first queued
    answer, for instance a proxy's 408, for the answer to the next request.
    """

    _awaited = False
    _interim_answers = 0
    _exchange: Exchange | None = None
    _left_bytes = 0

    def set_response_params(self, **params: Any) -> None:
        """Notes, before a request is sent, that one answer is expected."""
        self._awaited, self._interim_answers = True, 0
        self._exchange = exchange_under_way.get()
        self._left_bytes = HEADS_BYTES + FRAMED_TIMES * self._exchange.limit
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Parses received bytes, unless the server has sent far more than an answer may have."""
        self._left_bytes -= len(data)
        if self._left_bytes < 0 and self._exchange is not None:
            self._exchange.flooded = True
            # The code does not call self.abort(), after which the reader of the answer would wait until the deadline.
            if self.transport is not None:
                self.transport.abort()
            return
        super().data_received(data)

    def feed_data(self, data: tuple[RawResponseMessage, aiohttp.StreamReader], size: int = 0) -> None:
        """Queues the head of a received answer, if an answer is expected."""
        interim = data[0].code < 200 and data[0].code != 101
        self._interim_answers += interim
        if not self._awaited or self._interim_answers > MAX_INTERIM_ANSWERS:
            self.abort()
            return
        self._awaited = interim
        super().feed_data(data, size)

    def close(self) -> None:
        """Closes at once. With a server that does not read, an orderly close would wait for ever to send the rest."""
        self.abort()


class ThreadResolver(AbstractResolver):
    """Resolves names by the operating system, in separate threads: a slow name server delays no other work."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(LOOKUP_THREADS, thread_name_prefix="webhook-lookup")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a host; raises `OSError`."""
        found = await asyncio.get_running_loop().run_in_executor(self._threads, look_up, host, port)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in found
        ]

    async def close(self) -> None:
        """Ends the threads without waiting for look-ups under way."""
        self._threads.shutdown(wait=False, cancel_futures=True)
