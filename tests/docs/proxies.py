"""nginx and Caddy with the files of deploy/proxies, on a port of this machine, without root."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from mqbroker.embedded.commands import ROOT
from tests.broker.polling import eventually
from tests.broker.running import API_KEY
from tests.broker.wire import Document
from tests.packages import skip_for_want_of

FILES = ROOT / "deploy" / "proxies"


@dataclass(frozen=True)
class Proxy:
    """A proxy that runs."""

    url: str

    def asks(self, path: str, document: Document) -> socket.socket:
        """Sends a request, and leaves its answer."""
        place = urlsplit(self.url)
        body = json.dumps(document).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: mq.example.org\r\nAuthorization: Bearer {API_KEY}\r\n"
        caller = socket.create_connection((place.hostname, place.port), timeout=120)
        caller.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return caller


@contextlib.contextmanager
def nginx(folder: Path, port: int, broker_url: str) -> Iterator[Proxy]:
    """nginx, without TLS: the rest of its file as it is."""
    program = shutil.which("nginx", path=f"/usr/sbin:{os.environ['PATH']}") or skip_for_want_of("nginx", "nginx")
    text = (FILES / "nginx.conf").read_text()
    for old, new in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port};"),
        ("server 127.0.0.1:8000;", f"server {urlsplit(broker_url).netloc};"),
        ("    ssl_certificate /etc/ssl/certs/mq.example.org.pem;\n", ""),
        ("    ssl_certificate_key /etc/ssl/private/mq.example.org.key;\n", ""),
    ):
        assert old in text
        text = text.replace(old, new)
    paths = "".join(
        f"{word} {folder}/{word};"
        for word in (
            "client_body_temp_path",
            "proxy_temp_path",
            "fastcgi_temp_path",
            "uwsgi_temp_path",
            "scgi_temp_path",
        )
    )
    # Root's workers would be another user, who may not enter the folder.
    user = "user root; " if os.geteuid() == 0 else ""
    main = f"{user}pid {folder}/pid; error_log {folder}/error.log; events {{}}"
    whole = f"{main} http {{ access_log off; {paths} {text} }}"
    (folder / "nginx.conf").write_text(whole)
    with _running([program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"], port) as found:
        yield found


@contextlib.contextmanager
def caddy(folder: Path, port: int, broker_url: str) -> Iterator[Proxy]:
    """Caddy, without TLS: the rest of its file as it is."""
    program = shutil.which("caddy") or skip_for_want_of("caddy", "Caddy")
    text = (FILES / "Caddyfile").read_text()
    for old, new in (
        ("mq.example.org {", f"http://127.0.0.1:{port}, http://mq.example.org:{port} {{"),
        ("reverse_proxy 127.0.0.1:8000 {", f"reverse_proxy {urlsplit(broker_url).netloc} {{"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https off\n}\n" + text)
    words = [program, "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    with _running(words, port, {"HOME": str(folder), "XDG_DATA_HOME": str(folder)}) as found:
        yield found


@contextlib.contextmanager
def _running(words: list[str], port: int, environment: dict[str, str] | None = None) -> Iterator[Proxy]:
    process = subprocess.Popen(words, env=os.environ | (environment or {}), stderr=subprocess.PIPE)
    try:
        eventually(lambda: _listens(port))
        yield Proxy(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.communicate(timeout=300)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
