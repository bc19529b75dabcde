"""`manage.py export` on a machine without a JDBC driver and without a Java of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from analytics.files import manifest
from tests.analytics.conftest import ROOT, Exported
from tests.analytics.parquet import ordered, rows, types
from tests.analytics.past import Past


@pytest.mark.long
def test_without_a_driver_and_a_java_the_export_is_the_same(
    reader: str, past: Past, exported: Exported, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    target = tmp_path / "export"
    # Nothing of Maven's or Ivy's, no Java on the PATH, no jar: what a machine has that reaches PyPI only.
    environ = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "MQBROKER_JDBC_JAR")}
    environ |= {"DATABASE_URL": reader, "HOME": str(tmp_path / "home"), "PATH": without_java(tmp_path)}

    done = subprocess.run(
        [sys.executable, "manage.py", "export", "--to", str(target)],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")
    for table in manifest.TABLES:
        found, by_jdbc = rows(target / table), rows(exported.folder / table)
        columns = sorted(found[0])
        assert ordered(found, *columns) == ordered(by_jdbc, *columns)
        assert types(target / table) == types(exported.folder / table)


def without_java(folder: Path) -> str:
    """A PATH with the programs of this one, but no Java."""
    programs = folder / "bin"
    programs.mkdir()
    for program in (program for place in os.get_exec_path() for program in Path(place).glob("*")):
        if program.name != "java" and not (programs / program.name).is_symlink():
            (programs / program.name).symlink_to(program)
    return str(programs)
