"""The diary of a deployer: docs/deployment.md, from an own PostgreSQL and Redis to a transaction behind nginx."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.servers import valkey
from tests import packages
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.wire import Wire
from tests.docs import proxies, stories
from tests.docs.pages import page
from tests.docs.reader import Postgres, Reader, postgres

PAGE = page("docs/deployment.md")
# Of the page's `systemctl enable`, in its order.
UNITS = re.findall(r"mqbroker-\w+", PAGE.section("systemd").blocks_of("sh")[0].splitlines()[-1])
HOST = "mq.example.org"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Postgres]:
    if shutil.which("psql") is None:
        packages.skip_for_want_of("postgresql-client", "psql")
    (tmp_path / "postgres").mkdir()
    with postgres(tmp_path / "postgres") as made:
        yield made


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    """The URL of a Redis that is the deployer's own."""
    made = valkey.Server(tmp_path / "redis")
    made.start()
    yield made.url
    made.child.stop()


def environment(reader: Reader, server: Postgres, redis: str) -> dict[str, str]:
    """/etc/mqbroker.env as the page shows it, with secrets by its command; this server has no TLS."""
    section = PAGE.section("Settings")
    [secret] = re.findall(r"`(od [^`]+)` makes a secret", section.text)
    [text] = section.blocks_of("sh")
    text = re.sub(r"(?<=@)db\.internal:5432/mqbroker\?\S+", f"{server.place}/mqbroker", text)
    text = re.sub(r"^REDIS_URL=.*", f"REDIS_URL={redis}", text, flags=re.MULTILINE).replace(HOST, "127.0.0.1")
    while "…" in text:
        text = text.replace("…", reader.types(secret), 1)
    return dict(line.split("=", 1) for line in text.splitlines())


def starts(unit: str) -> list[str]:
    """The command of a unit in deploy/systemd."""
    text = (ROOT / "deploy" / "systemd" / f"{unit}.service").read_text()
    [command] = re.findall(r"^ExecStart=(.*)", text, re.MULTILINE)
    return shlex.split(command)


def is_ready(port: int) -> bool:
    try:
        return Wire(f"http://127.0.0.1:{port}", "").get("/readyz").status == 200
    except OSError:
        return False


def test_a_first_transaction_passes_nginx_by_the_lines_of_the_page(
    server: Postgres, redis: str, tmp_path: Path
) -> None:
    home, web, port = stories.checkout(tmp_path), free_port(), free_port()
    file = home / "mqbroker.env"
    own = {"/srv/mqbroker": str(home), "/etc/mqbroker.env": str(file), f"https://{HOST}": f"http://127.0.0.1:{port}"}
    deployer = Reader(home, {**own, "8000": str(web), "/tmp/beat-schedule": str(tmp_path / "beat-schedule")})
    variables = environment(deployer, server, redis)
    file.write_text("".join(f"{name}={value}\n" for name, value in variables.items()))
    [password] = re.findall("mqbroker:([^@]+)@", variables["DATABASE_URL"])
    for statement in PAGE.section("A PostgreSQL of your own").blocks_of("sql")[0].replace("…", password).splitlines():
        subprocess.run(["psql", server.url(), "-c", statement], check=True, capture_output=True)
    prepare, *processes = [[deployer.writes(word) for word in starts(unit)] for unit in UNITS]
    whole = stories.BARE | variables

    prepared = subprocess.run(prepare, cwd=home, env=whole, capture_output=True, text=True, timeout=300)

    assert prepared.returncode == 0, prepared.stderr
    with ExitStack() as stack:
        log = stack.enter_context((tmp_path / "log").open("w"))
        for words in processes:
            started = stack.enter_context(subprocess.Popen(words, cwd=home, env=whole, stdout=log, stderr=log))
            stack.callback(started.terminate)
        eventually(lambda: is_ready(web), within_seconds=120)
        (tmp_path / "nginx").mkdir()
        stack.enter_context(proxies.nginx(tmp_path / "nginx", port, f"http://127.0.0.1:{web}"))

        printed = deployer.types(*PAGE.section("The first transaction").blocks_of("sh"))

    assert "order 1" in printed.splitlines()[-1]
