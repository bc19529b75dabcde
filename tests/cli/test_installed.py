"""What `./mq build` makes: a wheel that is installed anywhere starts the broker in an empty folder."""

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.folder import DataFolder
from tests.broker.characters import name
from tests.broker.ports import free_port
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire
from tests.docs import image, stories
from tools.lock import find_uv


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what `./mq build` makes."""
    return built(ROOT, tmp_path_factory.mktemp("archives"))


def built(checkout: Path, folder: Path) -> Path:
    """The folder, with what `./mq build` makes in a checkout as if its commit were of this second."""
    command = [sys.executable, "-m", "mqbroker.embedded.cli", "build", "--to", str(folder)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1800000000"}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def command(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """The program `mqbroker` of the installed wheel, and an environment with no path to the checkout."""
    place = tmp_path_factory.mktemp("installed")
    [wheel] = archives.glob("mqbroker-*.whl")
    install = [find_uv(), "pip", "install", "--quiet", "--offline", "--no-deps", "--python", sys.executable]
    subprocess.run([*install, "--target", str(place), str(wheel)], check=True)
    return str(place / "bin" / "mqbroker"), stories.BARE | {"PYTHONPATH": str(place)}


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


def test_each_file_of_the_release_has_the_version_of_the_project_and_a_digest(archives: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    made = {
        f"{name}-{version}{kind}"
        for name in ("mqbroker", "mqbroker_client")
        for kind in ("-py3-none-any.whl", ".tar.gz")
    } | {f"mqbroker-{version}.cdx.json", "RELEASE_NOTES.md"}

    listed = [line.split("  ")[1] for line in (archives / "SHA256SUMS").read_text().splitlines()]

    assert set(listed) == made
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=archives, check=True)


def test_the_same_checkout_at_another_place_gives_the_same_bytes(archives: Path, tmp_path: Path) -> None:
    again = built(stories.checkout(tmp_path), tmp_path)

    assert (again / "SHA256SUMS").read_text() == (archives / "SHA256SUMS").read_text()


def test_the_notes_of_the_release_are_the_changes_without_links_into_the_checkout(archives: Path) -> None:
    title, *notes = (archives / "RELEASE_NOTES.md").read_text().splitlines()
    changes = (ROOT / "CHANGELOG.md").read_text().partition("\n## ")[2].partition("\n## ")[0].splitlines()

    assert title.startswith("# mqbroker ")
    assert [line for line in notes if "](docs/" in line] == []
    of_log, of_notes = ([line for line in lines if line.startswith("- ")] for lines in (changes, notes))
    assert [
        note for change, note in zip(of_log, of_notes, strict=True) if not note.startswith(change.partition("[")[0])
    ] == []


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


def test_the_installed_mqb_is_the_clients_command_line_and_reads_files_of_the_callers_folder(
    command: tuple[str, dict[str, str]], broker: RunningBroker, tmp_path: Path
) -> None:
    program, environment = command
    stories.keep_key(tmp_path)
    (tmp_path / "order").write_text("order 1")
    folder = DataFolder(tmp_path / ".mqbroker")
    with folder.claimed():
        folder.keep_port("web", urlsplit(broker.url).port or 0)
        words = [str(Path(program).with_name("mqb")), "send", name("orders"), "--file", "order"]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert UUID(done.stdout.strip())


def test_doctor_says_that_no_broker_has_run_in_the_folder_and_makes_none(
    command: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    program, environment = command

    done = subprocess.run([program, "doctor"], cwd=tmp_path, env=environment, capture_output=True, text=True)

    place = tmp_path / ".mqbroker"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"mq: No broker has run on {place}: `mqbroker up` starts one, --data-dir names another folder.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_installed_command_lists_its_commands_and_says_which_need_a_checkout(
    command: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    program, environment = command

    usage = subprocess.run([program], cwd=tmp_path, env=environment, capture_output=True, text=True)
    refused = subprocess.run([program, "bench"], cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert usage.stdout.startswith("usage: mqbroker <command>")
    assert ("  up " in usage.stdout, "  bench " in usage.stdout) == (True, False)
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (2, "mq: 'bench' needs a checkout.")
