"""The gRPC server: grpcio's, or the native server if the deployer has chosen it. Both have grpc.aio's interface.

The native server is a young project that takes a third of the CPU. Only `_plain` knows it. It has no TLS: a port with
TLS always uses grpcio. It limits neither messages nor streams, and reads a message of any length before its caller is
known; so it is only used when a deployer asks for it.
"""

import contextlib
import importlib
import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import grpc
import grpc.aio
import structlog

from mqbroker.rocketmq import connections, service
from mqbroker.rocketmq.call import Kept
from mqbroker.rocketmq.checks import Checks
from mqbroker.rocketmq.connections import Connections
from mqbroker.rocketmq.renewals import Renewals
from store.process import runtime
from store.process.configuration import setting

logger = structlog.stdlib.get_logger(__name__)

# The maximum size of a message without its body.
HEAD_BYTES = 128 * 1024
# The pause between pings, by which the server notices a client that disappeared without closing its connection.
KEEPALIVE_MILLISECONDS = 60_000
# The maximum number of calls at once on one connection.
MAX_CALLS = 1024
# The maximum number of calls of all connections whose handler has not started.
MAX_PENDING = 4096
# The most bytes that a call may send before its request is read.
AHEAD_BYTES = 16 * 1024
# One bit for each compression that grpc knows; the first bit means none.
UNPACKED_ONLY = 1
# Milliseconds for a connection that has not begun to speak HTTP/2, and for an idle one, which its client can open
# again.
HANDSHAKE_MILLISECONDS = 30_000
IDLE_MILLISECONDS = 300_000
# Seconds for calls that are running when the signal comes.
FINISH_SECONDS = 1.0


class CannotServe(Exception):
    """This process cannot listen: the port is taken, or a certificate cannot be read."""


class Ports(NamedTuple):
    """The ports of the process: a plain port, and a port with TLS if a certificate is configured."""

    host: str
    plain: int
    tls: int
    certificate: str
    key: str


def options() -> Sequence[tuple[str, Any]]:
    """The options of both servers."""
    return [
        # Without this option a taken port would go unnoticed: both processes would listen on the port.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", setting("MAX_MESSAGE_BYTES") + HEAD_BYTES),
        # Clients may ping as often as they want without being disconnected.
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.keepalive_time_ms", KEEPALIVE_MILLISECONDS),
        ("grpc.max_concurrent_streams", MAX_CALLS),
        # This probe is off: with it, each connection may send megabytes for calls that are not read yet.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", AHEAD_BYTES),
        # Calls that wait for the event loop. By default grpc cancels some of them above 1,000, also because of other
        # clients.
        ("grpc.server.max_pending_requests", MAX_PENDING),
        ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING),
        # grpc's own compression is off, because a megabyte could decompress to a gigabyte. Clients compress bodies
        # themselves.
        ("grpc.compression_enabled_algorithms_bitset", UNPACKED_ONLY),
    ]


def bounds() -> Sequence[tuple[str, Any]]:
    """The options that only grpcio's server accepts."""
    return [
        ("grpc.max_allowed_incoming_connections", connections.most()),
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_MILLISECONDS),
        ("grpc.max_connection_idle_ms", IDLE_MILLISECONDS),
    ]


class Served(NamedTuple):
    """A server, and whether it reads a whole request before it calls a handler."""

    server: grpc.aio.Server
    reads_whole: bool


@contextlib.asynccontextmanager
async def serving(ports: Ports) -> AsyncIterator[None]:
    """Serves clients within the block. Raises CannotServe."""
    logging.getLogger("grpc._cython.cygrpc").addFilter(_is_no_end_of_a_client)
    all_served = [_plain(), *([_of_grpcio()] if ports.certificate else [])]
    servers = [served.server for served in all_served]
    for served in all_served:
        served.server.add_registered_method_handlers(service.NAME, service.handlers(read_whole=served.reads_whole))
    _listen(servers[0], f"{ports.host}:{ports.plain}", None)
    if ports.certificate:
        _listen(servers[1], f"{ports.host}:{ports.tls}", _credentials(ports))
    checks, renewals = runtime.control(Checks), runtime.control(Renewals)
    checks.start()
    renewals.start()
    for server in servers:
        await server.start()
    try:
        async with Connections(ports.plain, ports.tls):
            yield
    finally:
        for server in servers:
            await server.stop(FINISH_SECONDS)
        await runtime.control(Kept).finish(FINISH_SECONDS)
        await checks.close()
        await renewals.close()


def _is_no_end_of_a_client(record: logging.LogRecord) -> bool:
    """A filter that drops grpcio's log of an error when a client disconnects during a write."""
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or kind.__name__ != "ExecuteBatchError"


def _plain() -> Served:
    if setting("ROCKETMQ_SERVER") != "native":
        return _of_grpcio()
    logger.warning("the native server takes messages of any length: keep its port to networks that you trust")
    return Served(_native().server(options=options()), reads_whole=True)


def _of_grpcio() -> Served:
    return Served(grpc.aio.server(options=[*options(), *bounds()]), reads_whole=False)


def _native() -> ModuleType:
    try:
        # Imported by its full name: `from pygrpc_native import aio` recurses without end in version 0.5.0.
        return importlib.import_module("pygrpc_native.aio")
    except ImportError as problem:
        raise CannotServe(
            "MQBROKER_ROCKETMQ_SERVER is native, and pygrpc-native is not installed: install mqbroker with its extra "
            "rocketmq-native, or leave the setting out."
        ) from problem


def _listen(server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials | None) -> None:
    try:
        if credentials is None:
            bound = server.add_insecure_port(address)
        else:
            bound = server.add_secure_port(address, credentials)
    except (RuntimeError, OSError) as problem:
        raise CannotServe(f"The port {address} cannot be listened on: it is taken, or not to be had.") from problem
    if not bound:
        raise CannotServe(f"The port {address} cannot be listened on: it is taken, or not to be had.")


def _credentials(ports: Ports) -> grpc.ServerCredentials:
    try:
        key, chain = Path(ports.key).read_bytes(), Path(ports.certificate).read_bytes()
        return grpc.ssl_server_credentials([(key, chain)])
    except (OSError, ValueError, RuntimeError) as problem:
        raise CannotServe(
            f"The certificate {ports.certificate} with the key {ports.key} cannot be used ({problem}): give both as "
            "PEM, by MQBROKER_ROCKETMQ_TLS_CERTIFICATE and MQBROKER_ROCKETMQ_TLS_KEY."
        ) from problem
