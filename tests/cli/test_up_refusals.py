"""`./mq up` refuses what it cannot start with, each in one sentence."""

import os
import socket
from pathlib import Path

import pytest

from mqbroker.embedded.folder import DataFolder
from tests.cli.conftest import Run


def refusal(run_python: Run, *options: str, **variables: str) -> tuple[int, str, str]:
    process = run_python(
        "-m", "mqbroker.embedded.cli", "up", *options, **{"DATABASE_URL": "", "REDIS_URL": "", **variables}
    )
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def test_a_port_in_use_is_refused_in_one_sentence(run_python: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        code, out, err = refusal(run_python, "--port", str(port), "--data-dir", str(tmp_path / "data"))

    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == (
        f"mq: Port {port} of 127.0.0.1 cannot be used (Address already in use): "
        "stop what uses it, or give another --port."
    )


def test_a_data_folder_in_use_is_refused_in_one_sentence(run_python: Run, folder: DataFolder) -> None:
    with folder.claimed():
        code, out, err = refusal(run_python, "--data-dir", str(folder.path))

    assert (code, out) == (1, "")
    assert err == (
        f"mq: The data folder {folder.path} is in use by process {os.getpid()}: "
        "stop that one first, or give another --data-dir.\n"
    )


def test_a_broken_setting_is_refused_in_one_sentence(run_python: Run, tmp_path: Path) -> None:
    code, out, err = refusal(run_python, "--data-dir", str(tmp_path / "data"), MQBROKER_TRANSACTION_CHECK_MAX="often")

    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("mq: MQBROKER_TRANSACTION_CHECK_MAX='often' cannot be used")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (
            {"DATABASE_URL": "mysql://127.0.0.1/shop"},
            "DATABASE_URL does not name a PostgreSQL database: give postgresql://user:password@host:port/database.",
        ),
        (
            {"REDIS_URL": "127.0.0.1:6379"},
            "REDIS_URL does not name a Redis: give redis://:password@host:port/number.",
        ),
    ],
)
def test_a_url_that_names_no_server_is_refused_in_one_sentence(
    run_python: Run, tmp_path: Path, url: dict[str, str], sentence: str
) -> None:
    assert refusal(run_python, "--data-dir", str(tmp_path / "data"), **url) == (1, "", f"mq: {sentence}\n")


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--port=70000", "70000 is no port: give a number from 1 to 65535."),
        ("--processes=0", "0 is too few: give a whole number from 1 on."),
    ],
)
def test_an_option_out_of_range_is_refused(run_python: Run, option: str, sentence: str) -> None:
    code, out, err = refusal(run_python, option)

    assert (code, out) == (2, "")
    assert sentence in err
