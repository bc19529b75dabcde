"""The gRPC server: the native one where it is there, else grpcio's; both have grpc.aio's interface.

The native server is a young project that takes a quarter of the CPU. Nothing but `_plain` knows of it. It has no TLS: a
port with TLS is grpcio's, beside the plain one.
"""

import contextlib
import importlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import grpc
import grpc.aio

from mqbroker.rocketmq import service
from mqbroker.rocketmq.call import Kept
from mqbroker.rocketmq.checks import Checks
from mqbroker.rocketmq.renewals import Renewals
from store.process import runtime
from store.process.configuration import setting

# What a message has besides its body, at most.
HEAD_BYTES = 128 * 1024
# A connection whose other end is gone without a word is found so.
KEEPALIVE_MILLISECONDS = 60_000
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
    ]


@contextlib.asynccontextmanager
async def serving(ports: Ports) -> AsyncIterator[None]:
    """Clients are served within the block. Raises CannotServe."""
    plain = _plain()
    servers = [plain, grpc.aio.server(options=options())] if ports.certificate else [plain]
    for server in servers:
        server.add_registered_method_handlers(service.NAME, service.handlers())
    _listen(plain, f"{ports.host}:{ports.plain}", None)
    if ports.certificate:
        _listen(servers[1], f"{ports.host}:{ports.tls}", _credentials(ports))
    checks, renewals = runtime.control(Checks), runtime.control(Renewals)
    checks.start()
    renewals.start()
    for server in servers:
        await server.start()
    try:
        yield
    finally:
        for server in servers:
            await server.stop(FINISH_SECONDS)
        await runtime.control(Kept).finish(FINISH_SECONDS)
        await checks.close()
        await renewals.close()


def _plain() -> grpc.aio.Server:
    wanted = setting("ROCKETMQ_SERVER")
    native = None if wanted == "grpcio" else _native()
    if native is not None:
        server: grpc.aio.Server = native.server(options=options())
        return server
    if wanted == "native":
        raise CannotServe("MQBROKER_ROCKETMQ_SERVER is native, and its wheel is not here: install pygrpc-native.")
    return grpc.aio.server(options=options())


def _native() -> ModuleType | None:
    try:
        # By its whole name: `from pygrpc_native import aio` calls itself without end, in 0.5.0.
        return importlib.import_module("pygrpc_native.aio")
    except ImportError:
        return None


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
