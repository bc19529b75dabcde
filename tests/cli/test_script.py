"""`./mq` makes its environment once, whole, from the locked hashes, wherever the checkout lies."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from mqbroker.embedded.cli.__main__ import usage
from mqbroker.embedded.commands import ROOT

# Of an install at most, on a machine with much other work.
SECONDS = 240
MODULES = {"1.0": "weight = 1\n", "2.0": "weight = 2\n"}


class Checkout:
    """The real script and command line, with a lock that holds one small package from a folder of wheels."""

    def __init__(self, home: Path, wheels: Path) -> None:
        self.home = home
        self.wheels = wheels
        home.mkdir()
        wheels.mkdir()
        shutil.copy(ROOT / "mq", home)
        # psutil is what the commands need of the lock.
        for package in (ROOT / "mqbroker", ROOT / "tools", Path(psutil.__file__).parent):
            shutil.copytree(package, home / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        # The list of commands has those of the export if its folder is there.
        (home / "analytics").mkdir()
        self.lock("1.0")

    def lock(self, version: str) -> None:
        (self.home / "requirements.lock").write_text(self.wheel("feather", version))

    def wheel(self, package: str, version: str) -> str:
        """Makes the wheel of a package; returns the lines of a lock that pin it."""
        wheel = self.wheels / f"{package}-{version}-py3-none-any.whl"
        about = f"{package}-{version}.dist-info"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, text in (
                (f"{package}.py", MODULES[version]),
                (f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"),
                (f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
                (f"{about}/RECORD", ""),
            ):
                # Without the time of now, so that a version has one hash.
                archive.writestr(zipfile.ZipInfo(name), text)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        return f"{package}=={version} --hash=sha256:{digest}\n"

    def start(self, script: str = "", words: Sequence[str] = ("--help",), **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [script or str(self.home / "mq"), *words],
            cwd="/",
            env={
                # No uv here, which would fetch through an index of its own.
                "PATH": "/usr/bin:/bin",
                "MQ_PYTHON": sys.executable,
                "PIP_NO_INDEX": "1",
                "PIP_FIND_LINKS": str(self.wheels),
                "HOME": str(self.wheels),
                **variables,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str, **variables: str) -> tuple[int | None, str, str]:
        process = self.start(words=words or ("--help",), **variables)
        out, err = process.communicate(timeout=SECONDS)
        return process.returncode, out, err

    def weight(self) -> str:
        """What the installed package says."""
        ask = [str(self.home / ".venv" / "bin" / "python"), "-c", "import feather; print(feather.weight)"]
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout as it was cloned."""
    return Checkout(tmp_path / "a check-out", tmp_path / "wheels")


@dataclass(frozen=True)
class FirstStarts:
    """Two first starts at once in one checkout: the exit code, the output and the complaints of each."""

    checkout: Checkout
    ended: list[tuple[int | None, str, str]]


@pytest.fixture(scope="module")
def first_starts(tmp_path_factory: pytest.TempPathFactory) -> FirstStarts:
    folder = tmp_path_factory.mktemp("made")
    checkout = Checkout(folder / "a check-out", folder / "wheels")
    both = [checkout.start(), checkout.start()]
    printed = [process.communicate(timeout=SECONDS) for process in both]
    return FirstStarts(checkout, [(process.returncode, *said) for process, said in zip(both, printed, strict=True)])


@pytest.fixture
def installed(checkout: Checkout, first_starts: FirstStarts) -> Checkout:
    """A checkout that was started before: a copied environment spares each test the seconds of a first start."""
    shutil.copytree(first_starts.checkout.home / ".venv", checkout.home / ".venv", symlinks=True)
    return checkout


def test_two_first_starts_at_once_install_once(first_starts: FirstStarts) -> None:
    [said] = [err for *_, err in first_starts.ended if "Installing" in err]

    assert "mq: Installing requirements.lock into .venv; the next start skips this." in said
    assert [(code, out) for code, out, _ in first_starts.ended] == [(0, usage() + "\n")] * 2
    assert first_starts.checkout.weight() == "1"


def test_a_second_start_needs_no_wheels(installed: Checkout) -> None:
    shutil.rmtree(installed.wheels)

    assert installed.run() == (0, usage() + "\n", "")


@pytest.mark.parametrize("command", ["test", "check", "bench"])
def test_help_installs_nothing_that_only_the_command_needs(installed: Checkout, command: str) -> None:
    for name in ("dev", "analytics"):
        (installed.home / f"requirements-{name}.lock").write_text("a-gigabyte==1.0 --hash=sha256:00\n")

    code, out, err = installed.run(command, "--help")

    assert code == 0, err
    assert out.startswith(f"usage: mq {command}")
    assert not (installed.home / ".venv" / ".mq" / "requirements-dev.lock").exists()


def test_a_build_installs_the_builder_and_none_of_the_brokers_packages(checkout: Checkout) -> None:
    """The lock of the builder has both; here the wheel of the broker is not even there."""
    pin = checkout.wheel("pluggy", "1.0")
    missing = "feather==9.0 \\\n    --hash=sha256:00\n"
    (checkout.home / "requirements-build.lock").write_text(f"{missing}{pin}")

    _, _, err = checkout.run("build", "--to", "dist")

    assert err.startswith("mq: Installing requirements-build.lock into .venv; the next start skips this.\n")
    assert "failed, see above: check the way" not in err
    assert list((checkout.home / ".venv" / "lib").glob("python*/site-packages/pluggy.py")) != []


def test_a_changed_lock_is_installed_at_the_next_start(installed: Checkout) -> None:
    installed.lock("2.0")

    installed.run()

    assert installed.weight() == "2"


def test_a_package_of_another_hash_is_refused(installed: Checkout) -> None:
    installed.lock("2.0")
    lock = installed.home / "requirements.lock"
    digest = lock.read_text().strip()[-64:]
    lock.write_text(lock.read_text().replace(digest, digest[::-1]))

    code, _, err = installed.run()

    assert code == 1
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in err
    assert err.splitlines()[-1] == (
        "mq: Installing requirements.lock failed, see above: check the way to the package index and start again."
    )


def test_an_install_that_was_killed_is_begun_again(checkout: Checkout) -> None:
    first = checkout.start()
    while not (checkout.home / ".venv" / "bin" / "python").exists():
        assert first.poll() is None
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    assert (checkout.home / ".venv" / ".mq" / "unfinished").exists()

    code, *_ = checkout.run()

    assert code == 0
    assert checkout.weight() == "1"


def test_the_script_is_found_through_a_symbolic_link(installed: Checkout, tmp_path: Path) -> None:
    link = tmp_path / "bin" / "mq"
    link.parent.mkdir()
    link.symlink_to("../a check-out/mq")

    process = installed.start(script=str(link))

    assert process.communicate(timeout=SECONDS)[0] == usage() + "\n"


def test_a_wrong_python_is_refused_in_one_sentence(checkout: Checkout, tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    old.write_text('#!/bin/sh\ncase "$2" in *version_info*) exit 1 ;; *) echo 3.9.18 ;; esac\n')
    old.chmod(0o755)

    assert checkout.run(MQ_PYTHON=str(old)) == (
        1,
        "",
        f"mq: MQ_PYTHON={old} is 3.9.18: set it to a Python 3.11 or newer.\n",
    )


def test_a_machine_without_python_gets_a_sentence_with_what_is_needed(checkout: Checkout, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "dirname", "readlink", "cmp"):
        found = shutil.which(tool)
        assert found
        (tools / tool).symlink_to(found)

    assert checkout.run(PATH=str(tools), MQ_PYTHON="") == (
        1,
        "",
        "mq: Python 3.11 or newer is needed and python3 is not there: install one, or set MQ_PYTHON to it.\n",
    )
