"""The gRPC server: grpcio's, or the native one where a deployer has chosen it; both have grpc.aio's interface.

The native server is a young project that takes a third of the CPU. Nothing but `_plain` knows of it. It has no TLS: a
port with TLS is grpcio's, beside the plain one. It bounds neither messages nor streams, and takes a message of any
length into memory before its caller is known: it is never chosen by itself.
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

# What a message has besides its body, at most.
HEAD_BYTES = 128 * 1024
# A connection whose other end is gone without a word is found so.
KEEPALIVE_MILLISECONDS = 60_000
# Calls of one connection at a time.
MAX_CALLS = 1024
# Calls of all connections whose handler has not begun.
MAX_PENDING = 4096
# Bytes that a call may send before its request is read.
AHEAD_BYTES = 16 * 1024
# A bit for each form of packing that grpc knows, the first for none.
UNPACKED_ONLY = 1
# A connection that has not begun to speak HTTP/2, and one without a call, which its client opens again.
HANDSHAKE_MILLISECONDS = 30_000
IDLE_MILLISECONDS = 300_000
# Calls that are under way at a signal have so long.
FINISH_SECONDS = 1.0


class CannotServe(Exception):
    """Why this process cannot listen: a port that is taken, or a certificate that cannot be read."""


class Ports(NamedTuple):
    """Where the process listens: a plain port, and one with TLS where there is a certificate."""

    host: str
    plain: int
    tls: int
    certificate: str
    key: str


def options() -> Sequence[tuple[str, Any]]:
    """The options of a server."""
    return [
        # Else a taken port goes unnoticed: both processes would listen on it.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", setting("MAX_MESSAGE_BYTES") + HEAD_BYTES),
        # Clients ping as often as they want: none is cut for it.
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.keepalive_time_ms", KEEPALIVE_MILLISECONDS),
        ("grpc.max_concurrent_streams", MAX_CALLS),
        # Megabytes that each connection may send ahead, of calls that are not read.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", AHEAD_BYTES),
        # Calls that wait for the event loop; by default some are cancelled from 1,000 on, also for what others do.
        ("grpc.server.max_pending_requests", MAX_PENDING),
        ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING),
        # Of grpc, where a megabyte may unpack to a gigabyte; clients pack bodies, which is theirs.
        ("grpc.compression_enabled_algorithms_bitset", UNPACKED_ONLY),
    ]


def bounds() -> Sequence[tuple[str, Any]]:
    """The options that the native server does not take."""
    return [
        ("grpc.max_allowed_incoming_connections", connections.most()),
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_MILLISECONDS),
        ("grpc.max_connection_idle_ms", IDLE_MILLISECONDS),
    ]


class Served(NamedTuple):
    """A server, and whether it reads requests whole before it calls a handler."""

    server: grpc.aio.Server
    reads_whole: bool


@contextlib.asynccontextmanager
async def serving(ports: Ports) -> AsyncIterator[None]:
    """Clients are served within the block. Raises CannotServe."""
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
    """Drops what grpcio logs as an error where a client goes away while it is written to."""
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
        # By its whole name: `from pygrpc_native import aio` calls itself without end, in 0.5.0.
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
