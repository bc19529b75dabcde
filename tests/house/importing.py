"""Imports all modules of copies of the product: `python importing.py FILE`; each copy in a fork.

The file is a list in JSON: `{"folder": copy, "rooms": […], "followed": true}` names what is imported, and whether
`follow` runs, too. The failures are printed as a list of texts in the same order; an empty text: the copy works.
Copies of the same folders follow each other: installed packages that the first one needs are imported once for all.
"""

import contextlib
import glob
import importlib
import json
import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

LEFT_OUT = {"migrations", "protocol", "programs", "__main__", "management"}
CLIENT = "client/mqbroker_client"
APP = "mqbroker_client.contrib.django"


def import_rooms(folder: Path, rooms: list[str]) -> None:
    """Imports each module of some folders by its name."""
    import django
    from django.conf import settings

    os.chdir(folder)
    sys.path[:0] = [str(folder), str(folder / "client")]
    if CLIENT in rooms:
        is_there = Path("client", *APP.split("."), "apps.py").exists()
        options = {"URL": "http://127.0.0.1:1", "API_KEY": "x", "PRODUCER_GROUP": "x"}
        settings.configure(INSTALLED_APPS=[APP] if is_there else [], MQBROKER=options)
    django.setup()
    # It follows the links of a copy, as `rglob` does not.
    paths = (Path(path) for room in rooms for path in sorted(glob.glob(f"{room}/**/*.py", recursive=True)))
    for path in paths:
        parts = path.with_suffix("").parts[1 if path.parts[0] == "client" else 0 :]
        if not LEFT_OUT.intersection(parts):
            importlib.import_module(".".join(part for part in parts if part != "__init__"))


def follow() -> None:
    """Follows the links from one part of the broker to another, whose door may be gone, and makes Django's checks.

    The command compares models with migrations; Django makes all checks before any command.
    """
    from console import theme
    from mqbroker import urls
    from mqbroker.celery.app import EVERY_SECONDS, app

    # Without a request: which user asks does not matter for the links.
    navigation: Any = theme.navigation
    assert all(str(line["link"]) for section in navigation(None) for line in section["items"])
    assert "v1/topics" in urls.SERVED
    app.loader.import_default_modules()
    assert EVERY_SECONDS.keys() <= app.tasks.keys(), EVERY_SECONDS.keys() - app.tasks.keys()
    sys.argv = ["manage.py", "makemigrations", "--check", "--dry-run"]
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        runpy.run_path("manage.py", run_name="__main__")


def breach(folder: str, rooms: list[str], followed: bool) -> str:
    """How a copy fails; empty where it works."""
    try:
        import_rooms(Path(folder), rooms)
        if followed:
            follow()
    except SystemExit as end:
        return f"the command ended with {end.code}" if end.code else ""
    except BaseException:  # noqa: BLE001  # whatever it is: the copy does not work
        return traceback.format_exc()
    return ""


def in_fork(copy: dict[str, Any]) -> tuple[str, list[str]]:
    """How a copy fails, found in a fork of this process, and the names of all modules that the fork has imported."""
    reader, writer = os.pipe()
    if not (pid := os.fork()):
        os.close(reader)
        with os.fdopen(writer, "w") as opened:
            json.dump([breach(**copy), list(sys.modules)], opened)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as opened:
        found, names = json.load(opened)
    os.waitpid(pid, 0)
    return found, names


def import_packages(names: list[str], rooms: list[str]) -> None:
    """Imports the installed modules among these, for the forks of the copies to come."""
    ours = {Path(room).name for room in rooms}
    for name in names:
        if name.partition(".")[0] not in ours:
            # What needs settings is imported by the forks.
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def main(file: str) -> None:
    # This file's folder.
    del sys.path[0]
    copies = json.loads(Path(file).read_text())
    breaches = []
    for copy, following in zip(copies, [*copies[1:], None], strict=True):
        found, names = in_fork(copy)
        breaches.append(found)
        if following and following["rooms"] == copy["rooms"]:
            import_packages(names, copy["rooms"])
    print(json.dumps(breaches))


if __name__ == "__main__":
    main(*sys.argv[1:])
