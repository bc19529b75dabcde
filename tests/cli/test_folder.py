"""One ./mq at a time holds a data folder, and the next one ends the processes of a killed one, and no others."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from mqbroker.embedded.errors import FolderInUse, FolderUnusable
from mqbroker.embedded.folder import DataFolder
from mqbroker.embedded.processes import identity, leftovers
from mqbroker.embedded.processes.child import Child
from tests.cli.conftest import Run

HOLD = (
    "import sys, pathlib; from mqbroker.embedded.folder import DataFolder; "
    "claim = DataFolder(pathlib.Path(sys.argv[1])).claimed(); claim.__enter__(); print('held', flush=True); input()"
)


def sleeper(folder: DataFolder) -> Child:
    child = Child("sleeper", ["sleep", "1000"], os.environ, folder.log("sleeper"), folder.path)
    child.start()
    return child


def test_a_folder_in_use_is_refused_with_its_owner(folder: DataFolder, run_python: Run) -> None:
    holder = run_python("-c", HOLD, str(folder.path))
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"

    assert folder.is_claimed()
    with pytest.raises(FolderInUse) as refusal, folder.claimed():
        pass

    assert str(refusal.value) == (
        f"The data folder {folder.path} is in use by process {holder.pid}: "
        "stop that one first, or give another --data-dir."
    )


def test_kill_9_of_its_owner_frees_a_folder(folder: DataFolder, run_python: Run) -> None:
    holder = run_python("-c", HOLD, str(folder.path))
    assert holder.stdout
    holder.stdout.readline()
    holder.kill()
    holder.wait()

    with folder.claimed():
        assert not folder.path.joinpath("ports", "web").exists()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    folder = DataFolder(tmp_path / "file" / "data")

    with pytest.raises(FolderUnusable) as refusal, folder.claimed():
        pass

    assert str(refusal.value) == (
        f"The data folder {folder.path} cannot be used (Not a directory): give another --data-dir."
    )


def test_secrets_are_kept_and_only_their_owner_reads_them(folder: DataFolder) -> None:
    made = folder.secret("django")

    assert DataFolder(folder.path).secret("django") == made
    assert len(made) >= 40
    assert (folder.path / "secrets" / "django").stat().st_mode & 0o777 == 0o600


def test_a_claim_ends_what_a_killed_run_left(folder: DataFolder) -> None:
    left = sleeper(folder)
    leftovers.record(folder.processes, [left])

    with folder.claimed():
        assert not left.is_running()
        assert not folder.processes.exists()


def test_a_claim_spares_another_process_that_has_a_recorded_id(folder: DataFolder) -> None:
    stranger = sleeper(folder)
    leftovers.record(folder.processes, [stranger])
    entries = json.loads(folder.processes.read_text())
    entries[0]["identity"] = "another boot 42"
    folder.processes.write_text(json.dumps(entries))

    with folder.claimed():
        assert stranger.is_running()
    stranger.kill()


def test_a_claim_ends_descendants_whose_leader_was_killed_alone(folder: DataFolder) -> None:
    command = ["sh", "-c", "sleep 1000 & sleep 1001 & wait"]
    leader = subprocess.Popen(command, start_new_session=True, env=os.environ | {"MQBROKER_DATA_DIR": str(folder.path)})
    while len(members := [pid for pid in identity.session_members(leader.pid) if pid != leader.pid]) < 2:
        pass
    entry = {"name": "web", "pid": leader.pid, "identity": identity.of(leader.pid), "stop_signal": signal.SIGTERM}
    folder.processes.write_text(json.dumps([entry]))
    leader.kill()
    leader.wait()

    with folder.claimed():
        assert [pid for pid in members if identity.of(pid)] == []
