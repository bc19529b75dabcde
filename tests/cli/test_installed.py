"""What `./mq build` makes: a wheel that is installed anywhere starts the broker in an empty folder."""

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT
from tests.broker.ports import free_port
from tests.broker.wire import Wire
from tests.docs import image
from tools.lock import find_uv


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what `./mq build` makes."""
    folder = tmp_path_factory.mktemp("archives")
    command = [sys.executable, "-m", "mqbroker.embedded.cli", "build", "--to", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def command(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """The program `mqbroker` of the installed wheel, and an environment with no path to the checkout."""
    place = tmp_path_factory.mktemp("installed")
    [wheel] = archives.glob("mqbroker-*.whl")
    install = [find_uv(), "pip", "install", "--quiet", "--offline", "--no-deps", "--python", sys.executable]
    subprocess.run([*install, "--target", str(place), str(wheel)], check=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MQ", "DATABASE", "REDIS"))}
    return str(place / "bin" / "mqbroker"), kept | {"PYTHONPATH": str(place)}


def test_the_wheel_has_one_module_to_import_and_every_file_of_the_image(archives: Path) -> None:
    [wheel] = archives.glob("mqbroker-*.whl")
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"mqbroker_command"}
    files = {name.removeprefix("mqbroker_command/tree/") for name in names}
    missing = {
        str(file.relative_to(ROOT))
        for source in image.copied()
        for file in [ROOT / source, *(ROOT / source).rglob("*")]
        if file.is_file() and file.suffix != ".pyc" and file.parts[len(ROOT.parts) : -1] != ("client",)
    }
    assert missing - files == set()


def test_each_archive_has_the_version_of_the_project_and_a_digest(archives: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    made = {
        f"{name}-{version}{kind}"
        for name in ("mqbroker", "mqbroker_client")
        for kind in ("-py3-none-any.whl", ".tar.gz")
    }

    listed = [line.split("  ")[1] for line in (archives / "SHA256SUMS").read_text().splitlines()]

    assert set(listed) == made
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=archives, check=True)


def test_the_installed_command_serves_from_an_empty_folder_and_keeps_its_data_there(
    command: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    program, environment = command
    port = free_port()
    words = [program, "up", "--no-demo", "--port", str(port)]
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as up:
        try:
            assert up.stdout
            assert up.stdout.readline().startswith(f"Console  http://127.0.0.1:{port}/console/")
            key = (tmp_path / ".mqbroker/secrets/api-key").read_text().strip()
            answer = Wire(f"http://127.0.0.1:{port}", key).post("/v1/messages", {"topic": "hello", "body": "1"})
        finally:
            up.terminate()
            code = up.wait(120)

    assert (answer.status, code) == (201, 0)
    assert [file.name for file in tmp_path.iterdir()] == [".mqbroker"]


def test_the_installed_command_lists_its_commands_and_says_which_need_a_checkout(
    command: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    program, environment = command

    usage = subprocess.run([program], cwd=tmp_path, env=environment, capture_output=True, text=True)
    refused = subprocess.run([program, "bench"], cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert usage.stdout.startswith("usage: mqbroker <command>")
    assert ("  up " in usage.stdout, "  bench " in usage.stdout) == (True, False)
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (2, "mq: 'bench' needs a checkout.")
