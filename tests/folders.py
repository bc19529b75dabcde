"""Folders of tests whose fixtures end with them, for pytest knows no fixture that lasts as long as a plain folder."""

from pathlib import Path

import pytest


class Folder(pytest.Package):
    """A folder that is a package to pytest without an `__init__.py`.

    In a plain folder pytest keeps a fixture of `scope="package"` until its process ends: a broker that idles takes 4 %
    of a core, and 30 sessions of PostgreSQL.
    """

    def setup(self) -> None:
        """There is no module to set up."""


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> Folder:
    """Takes each folder for such a package."""
    made: Folder = Folder.from_parent(parent, path=path)
    return made
