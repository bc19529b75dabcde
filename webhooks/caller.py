"""Calls a server outside of the broker: one request with one deadline, and an `Answer` whatever the server does."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from webhooks import signing
from webhooks.addresses import Networks, UrlIllegal, parse_url
from webhooks.connections import Exchange, ThreadResolver, connector, exchange_under_way
from webhooks.endpoint_answers import Answer, Outcome, ahead_seconds, retry_after_seconds, sentence

__all__ = ["Answer", "Caller"]

MAX_ANSWER_BYTES = 65_536
# The size of the first write in bytes. It must not wait, but from 64 KiB on aiohttp's writer waits for the server to
# read.
WRITE_BYTES = 32_768
# Makes a context manager; the caller of a server enters it while the first bytes of a request are written.
Guard = Callable[[], contextlib.AbstractAsyncContextManager[None]]
HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "mqbroker"}


class Caller:
    """Makes the outgoing calls of one process. Construct it inside the event loop that will use it, and close it.

    CPU of the caller for a small signed POST, one core, `python -m tests.webhooks.rate` (2 cores, Python 3.11, other
    work beside it): 98 µs over a kept connection (10,000 calls/s), 256 µs over a new one; under uvloop 77 and 227 µs.
    aiohttp takes 80 µs of this, or 100 µs with one of its tracing signals, so `Exchange` is used instead of the
    signals.
    """

    def __init__(self, allowed: Networks) -> None:
        tls = ssl.create_default_context()  # Trusts the certificates of the system, or of the operator's SSL_CERT_FILE.
        tls.set_alpn_protocols(["http/1.1"])
        self._resolver = ThreadResolver()
        self._keeping = _session(connector(allowed, tls, self._resolver, keep=True))
        self._fresh = _session(connector(allowed, tls, self._resolver, keep=False))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; calls under way end as failed."""
        await self._keeping.close()
        await self._fresh.close()
        await self._resolver.close()

    async def post(
        self,
        url: str,
        payload: bytes,
        secrets: Sequence[str],
        webhook_id: str,
        timeout_seconds: float,
        allowance_bytes: int = 0,
        guard: Guard = contextlib.nullcontext,
        *,
        now: datetime | None = None,
    ) -> Answer:
        """Posts UTF-8 JSON, signed with each secret at the time `now`. An answer may have 64 KiB + `allowance_bytes`.

        `now` is the database's time, because a server refuses a signature whose time is minutes off, and a worker's
        clock may be wrong. None: the time of this process.

        Raises nothing for the server's behaviour. Redirects are not followed and bodies are not decompressed: such an
        answer is treated like any other. The request is written within `guard()`: when the guard raises, the server is
        not asked. Raises SecretIllegal for a stored secret that cannot sign.
        """
        signed_at = now or datetime.now(UTC)
        headers = HEADERS | signing.headers(webhook_id, payload, secrets, signed_at)
        exchange = Exchange(limit=MAX_ANSWER_BYTES + allowance_bytes, signed_at=signed_at)
        loop = asyncio.get_running_loop()
        request = partial(_Body, payload, exchange, guard)
        started = loop.time()
        body = b""
        try:
            async with asyncio.timeout(timeout_seconds):
                body = await self._ask(parse_url(url), headers, request, exchange)
            outcome, reason = _answered(exchange)
        except _FAILURES as error:
            outcome, reason = _failed(error, exchange, timeout_seconds)
        return _answer(exchange, outcome, reason, body, loop.time() - started)

    async def _ask(
        self, url: URL, headers: dict[str, str], request: Callable[[], "_Body"], exchange: Exchange
    ) -> bytes:
        exchange_under_way.set(exchange)
        try:
            return await _send_and_read(self._keeping, url, headers, request(), exchange)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            # A server may close a kept connection just when the next request uses it. The request is sent again on a
            # new connection. This does no harm: a check only asks, a push is at least once, the webhook-id is the same.
            if isinstance(error, aiohttp.ClientConnectorError) or not exchange.kept or exchange.status is not None:
                raise
        exchange.written = exchange.whole = False
        return await _send_and_read(self._fresh, url, headers, request(), exchange)


def _answer(exchange: Exchange, outcome: Outcome, reason: str, body: bytes, seconds: float) -> Answer:
    return Answer(
        outcome=outcome,
        asked=exchange.written and not (outcome == "protocol" and not exchange.whole),
        reason=sentence(reason),
        latency_ms=round(seconds * 1_000, 1),
        status=exchange.status,
        body=body if outcome == "answered" else b"",
        retry_after_seconds=exchange.retry_after_seconds,
        cut=exchange.written and not exchange.whole,
        location=exchange.location,
        ahead_seconds=exchange.ahead_seconds,
    )


class _TooLarge(Exception):
    """The answer is larger than the limit."""


# uvloop raises RuntimeError where asyncio's own loop raises OSError.
_FAILURES = (aiohttp.ClientError, OSError, ValueError, RuntimeError, _TooLarge)


class _Body(aiohttp.Payload):
    """The request's body. It notes when the request is written to a connection, because aiohttp has no other hook."""

    _autoclose = True

    def __init__(self, payload: bytes, exchange: Exchange, guard: Guard) -> None:
        super().__init__(payload, content_type=HEADERS["Content-Type"])
        self._size = len(payload)
        self._exchange = exchange
        self._guard = guard

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return bytes(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        async with self._guard():
            # aiohttp writes the headers together with these first bytes.
            await writer.write(self._value[:WRITE_BYTES])
            self._exchange.written = True
        for start in range(WRITE_BYTES, len(self._value), WRITE_BYTES):
            await writer.write(self._value[start : start + WRITE_BYTES])
        self._exchange.whole = True


def _session(over: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=over,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
    )


async def _send_and_read(
    session: aiohttp.ClientSession, url: URL, headers: dict[str, str], body: "_Body", exchange: Exchange
) -> bytes:
    async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
        exchange.status = response.status
        exchange.location = response.headers.get("Location")
        if exchange.signed_at is not None:
            exchange.ahead_seconds = ahead_seconds(response.headers.get("Date"), exchange.signed_at)
        if response.status in (429, 503):
            exchange.retry_after_seconds = retry_after_seconds(response.headers.get("Retry-After"), datetime.now(UTC))
        return await _read(response, exchange.limit)


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    read = bytearray()
    while chunk := await response.content.readany():
        read += chunk
        if len(read) > limit:
            raise _TooLarge(f"The endpoint answered {response.status} with more than {limit} bytes.")
    return bytes(read)


def _answered(exchange: Exchange) -> tuple[Outcome, str]:
    if not exchange.written:
        return "protocol", "The endpoint sent an answer before it was asked."
    return "answered", f"The endpoint answered {exchange.status}."


def _failed(error: Exception, exchange: Exchange, timeout_seconds: float) -> tuple[Outcome, str]:
    """The outcome of a call without a complete answer, and a sentence with the reason."""
    match error:
        case TimeoutError():
            when = "before it was asked" if not exchange.written else "before its whole answer came"
            return "timeout", f"The deadline of {timeout_seconds:g} s passed {when}."
        case _TooLarge():
            return "too_large", str(error)
        case _ if exchange.flooded:
            return "too_large", f"The endpoint sent far more than an answer of {exchange.limit} bytes."
        case UrlIllegal():
            return "refused", str(error)
        case aiohttp.ClientSSLError():
            return "tls", f"No trusted connection: {error.os_error}."
        case aiohttp.ClientConnectorError() if exchange.kept and exchange.forbidden:
            return "forbidden_address", f"{exchange.forbidden}, which WEBHOOK_ALLOWED_NETWORKS does not list."
        case aiohttp.ClientConnectorDNSError():
            return "refused", f"The host {error.host} can't be resolved: {error.os_error}."
        case aiohttp.ClientConnectorError():
            return "refused", f"No connection: {error.os_error}."
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError():
            return "protocol", "The endpoint closed the connection before its whole answer came."
        case _:
            return "protocol", f"What the endpoint sent is no whole HTTP answer: {_detail(error)}."


def _detail(error: Exception) -> str:
    """The text of aiohttp's error without the request's URL and headers, which contain the signature."""
    return error.message if isinstance(error, aiohttp.ClientResponseError) else str(error) or type(error).__name__
