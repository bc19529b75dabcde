"""`./mq up --cells N` makes cells of databases of the private server, and `./mq cells` shows them."""

from pathlib import Path

from embedded.folder import free_port
from tests.cli.conftest import Run
from tests.cli.test_up import KEY, Up


def cells(run_python: Run, up: Up) -> list[list[str]]:
    """The rows of `./mq cells list`: name, topics, epoch, state."""
    words = ("-m", "embedded.cli", "cells", "--data-dir", str(up.folder.path), "list")
    process = run_python(*words, DATABASE_URL="", REDIS_URL="", MQ_CALLED_FROM="/")
    listed, complaint = process.communicate()
    assert process.returncode == 0, complaint
    return [line.split(maxsplit=3) for line in listed.splitlines()[1:-1]]


def test_up_has_as_many_cells_as_were_asked_for_and_keeps_them(run_python: Run, tmp_path: Path) -> None:
    up = Up(run_python, tmp_path / "data folder")
    up.start("--cells", "3", "--api-key", KEY)
    try:
        assert up.send() == 201
        made = cells(run_python, up)
    finally:
        up.stop()
    # At another port of the server, as when a program has taken the one before.
    up.folder.choose_port("postgres")
    up.start()
    try:
        kept = cells(run_python, up)
    finally:
        up.stop()

    assert made == kept
    assert [[name, epoch, state] for name, _, epoch, state in made] == [
        ["c0", "0", "takes new topics"],
        ["c1", "0", "ready"],
        ["c2", "0", "ready"],
    ]


def test_cells_are_made_on_no_server_that_the_user_names(run_python: Run, tmp_path: Path) -> None:
    words = (
        "-m",
        "embedded.cli",
        "up",
        "--cells",
        "2",
        "--data-dir",
        str(tmp_path / "folder"),
        "--port",
        str(free_port()),
    )

    process = run_python(*words, DATABASE_URL="postgresql://127.0.0.1:1/shop", REDIS_URL="", MQ_CALLED_FROM="/")
    _, complaint = process.communicate()

    assert process.returncode == 1
    assert complaint.splitlines()[-1] == (
        "mq: --cells makes databases of the private PostgreSQL, and DATABASE_URL names another server: make databases "
        "there, and add each by `./mq cells add NAME URL`."
    )
