"""`./mq audit` passes where each locked package was looked up and none has a known weakness, and nowhere else."""

import json
import re
import shutil
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import packages
from tests.cli.conftest import Run
from tests.cli.test_locks import pins

Answers = Callable[[str], dict[str, Any] | None]
WEAKNESS = {"id": "PYSEC-2026-1", "aliases": [], "fixed_in": ["99.0"], "details": "of this test"}


class Index(socketserver.ThreadingTCPServer):
    """An HTTP proxy that answers for the package index itself, by TLS with a certificate of its own."""

    daemon_threads = True

    def __init__(self, certificate: Path) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.tls.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
        self.answers: Answers = lambda package: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Connection(socketserver.StreamRequestHandler):
    """One connection of pip-audit: CONNECT, then requests for packages."""

    server: Index

    def handle(self) -> None:
        self._head()
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with self.server.tls.wrap_socket(self.connection, server_side=True) as secure:
            self.rfile = secure.makefile("rb")
            while path := self._head():
                found = self.server.answers(path.split("/")[2])
                body = json.dumps(found or {}).encode()
                status = "404 Not Found" if found is None else "200 OK"
                secure.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    def _head(self) -> str:
        """The path of the next request; empty when the connection has ended."""
        lines: list[str] = []
        # Behind the end of a connection each line is empty.
        while (line := self.rfile.readline()) not in (b"", b"\r\n"):
            lines.append(line.decode())
        return lines[0].split()[1] if lines else ""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for the index's name that signs itself, made anew so that no key is kept in the repository."""
    if shutil.which("openssl") is None:
        packages.skip_for_want_of("openssl", "The command openssl")
    folder = tmp_path_factory.mktemp("certificate")
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=pypi.org -addext subjectAltName=DNS:pypi.org"
    subprocess.run([*make.split(), "-keyout", "key.pem", "-out", "cert.pem"], cwd=folder, check=True)
    return folder


@pytest.fixture
def index(certificate: Path) -> Iterator[Index]:
    with Index(certificate) as index:
        threading.Thread(target=index.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield index
        index.shutdown()


def audited(run_python: Run, index: Index, certificate: Path, cache: Path) -> tuple[int, str]:
    """The exit code of an audit that reaches this index, and what it says."""
    places = {"HTTPS_PROXY": index.url, "https_proxy": index.url, "NO_PROXY": "", "no_proxy": ""}
    trusted = {"REQUESTS_CA_BUNDLE": str(certificate / "cert.pem"), "SSL_CERT_FILE": str(certificate / "cert.pem")}
    process = run_python("-m", "mqbroker.embedded.cli", "audit", **places, **trusted, PIP_CACHE_DIR=str(cache))
    said, errors = process.communicate(timeout=120)
    return process.returncode, said + errors


def test_packages_that_the_index_does_not_have_fail_the_audit_by_name(
    run_python: Run, index: Index, certificate: Path, tmp_path: Path
) -> None:
    index.answers = lambda package: None if package in ("django", "aiohttp") else {}

    code, said = audited(run_python, index, certificate, tmp_path)

    assert code == 1, said
    first = re.fullmatch(
        r"2 of (\d+) packages could not be looked up, so nothing is known of them:", said.split("\n")[0]
    )
    assert first, said
    assert int(first[1]) > 50
    named = [line.split(":")[0].strip() for line in said.splitlines() if line.startswith("  ")]
    assert sorted(named) == ["aiohttp", "django"]


@pytest.mark.long
def test_an_index_that_has_no_package_fails_the_audit(
    run_python: Run, index: Index, certificate: Path, tmp_path: Path
) -> None:
    code, said = audited(run_python, index, certificate, tmp_path)

    missing, total = re.findall(r"\d+", said.splitlines()[0])
    assert (code, missing) == (1, total), said
    assert len([line for line in said.splitlines() if line.startswith("  ")]) == int(total) > 50


def test_a_known_weakness_fails_the_audit_and_is_named(
    run_python: Run, index: Index, certificate: Path, tmp_path: Path
) -> None:
    index.answers = lambda package: {"vulnerabilities": [WEAKNESS] if package == "django" else []}

    code, said = audited(run_python, index, certificate, tmp_path)

    assert code == 1, said
    assert f"django {dict(pins('requirements.lock'))['django']}: PYSEC-2026-1, mended in 99.0" in said


def test_an_audit_that_looked_every_package_up_passes(
    run_python: Run, index: Index, certificate: Path, tmp_path: Path
) -> None:
    index.answers = lambda package: {"vulnerabilities": []}

    code, said = audited(run_python, index, certificate, tmp_path)

    assert (code, re.sub(r"\d+", "N", said)) == (0, "No weakness is known of N packages.\n")


def test_an_audit_without_advisories_is_none(run_python: Run) -> None:
    nowhere = "http://127.0.0.1:9"

    process = run_python("-m", "mqbroker.embedded.cli", "audit", HTTPS_PROXY=nowhere, https_proxy=nowhere)
    _, said = process.communicate(timeout=120)

    assert process.returncode == 1
    assert "The advisories could not be read, so nothing is known: " in said
