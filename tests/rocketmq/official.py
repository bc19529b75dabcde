"""RocketMQ's own clients, each in a process of its own, as their package indexes have them."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pytest

from tests.broker.polling import eventually
from tests.broker.running import API_KEY

PROGRAMS = Path(__file__).with_name("programs")
PYTHON, NODE = "rocketmq-python-client==5.1.2", "rocketmq-client-nodejs@1.0.8"
Document = dict[str, Any]
INSTALL_SECONDS = 600


class Failed(Exception):
    """What a client has thrown."""


class Official:
    """A client that a test commands by lines of JSON; the messages that it consumes or checks are kept as events."""

    def __init__(
        self, command: Sequence[str], address: str, *, key: str, secret: str, tls: bool, environment: dict[str, str]
    ) -> None:
        words = [*command, address, key, secret, "tls" if tls else "plain"]
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | environment,
            start_new_session=True,
        )
        self.events: list[Document] = []
        self._answers: list[Document] = []
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin: IO[str] = self.process.stdin
        threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True).start()

    def _read(self, stdout: IO[str]) -> None:
        for line in stdout:
            if line.startswith("{"):
                said = json.loads(line)
                (self.events if "event" in said else self._answers).append(said)

    def do(self, what: str, **command: Any) -> Document:
        """Has the client do something; returns its answer. Raises Failed."""
        if isinstance(body := command.get("body"), bytes):
            command["body"] = base64.b64encode(body).decode()
        if "fails" in command:
            command["fails"] = [base64.b64encode(one).decode() for one in command["fails"]]
        self._stdin.write(json.dumps({"do": what, **command}) + "\n")
        self._stdin.flush()
        eventually(lambda: self._answers, within_seconds=60)
        answer = self._answers.pop()
        if "failed" in answer:
            raise Failed(answer["failed"])
        found: Document = answer["answer"]
        return found

    def bodies(self, event: str = "consumed") -> list[bytes]:
        """The bodies of the messages that the client has said this of."""
        return [base64.b64decode(one["body"]) for one in list(self.events) if one["event"] == event]

    def receives(self, count: int, **command: Any) -> list[Document]:
        """At least `count` messages of its subscription, by at most 20 receives."""
        found: list[Document] = []
        for _ in range(20):
            found += self.do("receive", **{"invisible": 30, **command})["messages"]
            if len(found) >= count:
                return found
        raise AssertionError(f"{len(found)} of {count} messages have come")

    def kill(self) -> None:
        """Ends the process without a word."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


class Language:
    """A client's language, and how its program is run."""

    def __init__(self, name: str, command: Sequence[str], environment: dict[str, str] | None = None) -> None:
        self.name = name
        self.command = command
        self.environment = environment or {}

    def starts(
        self, address: str, *, key: str = API_KEY, secret: str | None = None, tls: bool = False, **variables: str
    ) -> Official:
        """A client of the broker at an address, signing with the key."""
        environment = self.environment | variables
        given = {"key": key, "secret": key if secret is None else secret}
        return Official(self.command, address, tls=tls, environment=environment, **given)


def python(folder: Path) -> Language:
    """The Python client, in an environment of its own. Skips where no package index is reached."""
    program = folder / "python" / "bin" / "python"
    with _alone(folder):
        if not program.exists():
            # Takes 2 s of CPU, where `venv` and `pip` take 11.
            uv, draft = [sys.executable, "-m", "uv", "--quiet"], str(folder / "draft")
            subprocess.run([*uv, "venv", "--python", sys.executable, draft], check=True, timeout=INSTALL_SECONDS)
            install = [*uv, "pip", "install", "--compile-bytecode", "--python", f"{draft}/bin/python", PYTHON]
            _install(install, "the package index has no " + PYTHON)
            (folder / "draft").rename(folder / "python")
    return Language("python", [str(program), str(PROGRAMS / "client.py")], {"PYTHONPATH": "", "HOME": str(folder)})


def node(folder: Path) -> Language:
    """The Node client. Skips where Node or its package index is not there."""
    if shutil.which("npm") is None:
        pytest.skip("Node is not installed")
    with _alone(folder):
        if not (folder / "node" / "node_modules").exists():
            words = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder / "node"), NODE]
            _install(words, "npm finds no package " + NODE)
    modules = {"NODE_PATH": str(folder / "node" / "node_modules")}
    return Language("node", ["node", str(PROGRAMS / "client.js")], modules)


def _install(words: Sequence[str], reason: str) -> None:
    if subprocess.run(words, capture_output=True, timeout=INSTALL_SECONDS).returncode != 0:
        pytest.skip(f"{reason} from here")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process of tests installs, and the others wait for it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
