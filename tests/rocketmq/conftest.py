"""The process for RocketMQ's clients, beside the broker of the tests, by either of its servers."""

import datetime
import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from mqbroker.embedded import commands
from mqbroker.rocketmq.protocol import service_pb2
from tests.broker import forks
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.running import RunningBroker
from tests.rocketmq import official
from tests.rocketmq.official import Language, Official
from tests.rocketmq.stub import Client

# The server of the extra rocketmq-native, which a deployer chooses by its name.
NATIVE = pytest.param(
    "native",
    marks=[
        pytest.mark.long,
        pytest.mark.skipif(find_spec("pygrpc_native") is None, reason="the extra rocketmq-native is not installed"),
    ],
)
SERVERS = ["auto", NATIVE]


class Gateway:
    """The process, on a port of its own. It may be killed and started again."""

    def __init__(self, broker: RunningBroker, folder: Path, **settings: str) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.log = folder / f"rocketmq-{self.port}.log"
        environment = broker.environment | {f"MQBROKER_{name}": value for name, value in settings.items()}
        self.child = forks.ForkedChild("rocketmq", commands.rocketmq(self.port), environment, self.log, broker.checkout)

    def start(self) -> None:
        """Returns once it answers."""
        self.child.start()
        eventually(self._answers, within_seconds=60)

    def _answers(self) -> bool:
        assert self.child.is_running(), self.child.last_lines()
        try:
            with Client(self.address) as client:
                return int(client.call("Heartbeat", service_pb2.HeartbeatRequest(), timeout=2).status.code) == 20000
        except grpc.RpcError:
            return False


@contextmanager
def running(broker: RunningBroker, folder: Path, **settings: str) -> Iterator[Gateway]:
    """The process with settings of its own, within the block. What it failed at is a failure of the test."""
    gateway = Gateway(broker, folder, **settings)
    try:
        gateway.start()
        yield gateway
    finally:
        gateway.child.ask_to_stop()
        gateway.child.stop()
    assert "Traceback" not in gateway.log.read_text(), gateway.log.read_text()[-3000:]


@pytest.fixture(scope="module")
def plain(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The process that a start chooses: with grpcio's server. Of a file, for it has sessions of the database."""
    with running(broker, tmp_path_factory.mktemp("grpcio")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def native(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The process with the native server."""
    with running(broker, tmp_path_factory.mktemp("native"), ROCKETMQ_SERVER="native") as gateway:
        yield gateway


@pytest.fixture(params=["plain", NATIVE])
def gateway(request: pytest.FixtureRequest) -> Gateway:
    """The process by either server: the same tests hold for both."""
    found: Gateway = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def client(gateway: Gateway) -> Iterator[Client]:
    """A client without anything of its own."""
    with Client(gateway.address) as client:
        yield client


@pytest.fixture
def other(gateway: Gateway) -> Iterator[Client]:
    """Another client, with another id and connection."""
    with Client(gateway.address) as client:
        yield client


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where RocketMQ's own clients are installed, once for all tests of this process."""
    return tmp_path_factory.getbasetemp() / "rocketmq-clients"


@pytest.fixture(scope="session", params=["python", pytest.param("node", marks=pytest.mark.long)])
def language(request: pytest.FixtureRequest, installed: Path) -> Language:
    """RocketMQ's own client of a language."""
    return {"python": official.python, "node": official.node}[request.param](installed)


@pytest.fixture
def program(language: Language, plain: Gateway) -> Iterator[Official]:
    """A client that a test commands."""
    with language.starts(plain.address) as program:
        yield program


@pytest.fixture
def second(language: Language, plain: Gateway) -> Iterator[Official]:
    """Another client of the same language, in another process."""
    with language.starts(plain.address) as program:
        yield program


@pytest.fixture(scope="module")
def quick(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A process whose deliveries are hidden for 2 s by default, and renewed each second."""
    with running(broker, tmp_path_factory.mktemp("quick"), DEFAULT_INVISIBLE_SECONDS="2") as gateway:
        yield gateway


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate of 127.0.0.1 that it has signed itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "chain.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder


@pytest.fixture(scope="module")
def tls_port(
    broker: RunningBroker, certificate: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[int, int]]:
    """The plain port and that with TLS of a process that has both."""
    port = free_port()
    settings = {
        "ROCKETMQ_TLS_PORT": str(port),
        "ROCKETMQ_TLS_CERTIFICATE": str(certificate / "chain.pem"),
        "ROCKETMQ_TLS_KEY": str(certificate / "key.pem"),
    }
    with running(broker, tmp_path_factory.mktemp("with-tls"), **settings) as gateway:
        yield gateway.port, port
