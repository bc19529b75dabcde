"""A door is a folder that can be left out: without it everything else is imported, and Django's checks pass.

So do the comparison of models with migrations, the links of the console and the beat table.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mqbroker.environment.framework import DOORS as APPS
from tests.house import importing
from tests.house.sources import ROOT
from tools.house import budgets

CONTRIB = f"{importing.CLIENT}/contrib"
# A contribution that builds on others.
ABOVE = {
    f"{CONTRIB}/relay": (f"{CONTRIB}/celery",),
    f"{CONTRIB}/django": (f"{CONTRIB}/celery",),
    f"{CONTRIB}/sqlalchemy": (f"{CONTRIB}/celery", f"{CONTRIB}/faststream"),
    f"{CONTRIB}/testing": (f"{CONTRIB}/faststream",),
    # The format for Spark is one, and the broker's export names the client's sink.
    f"{CONTRIB}/spark.py": (),
}
OF_BROKER = ["mqbroker/rocketmq", "console/sign_on", *(name.replace(".", "/") for name in APPS)]
DOORS = [*OF_BROKER, *sorted(str(path.relative_to(ROOT)) for path in (ROOT / CONTRIB).glob("[a-z]*"))]
PRODUCT = ("mqbroker", "console", "transactions", "delivery", "scheduling", "webhooks", "access", "store", "analytics")

# What manage.py does first, as far as the words `version` need it.
BEGINS = """
import sys
from mqbroker.environment.framework import DOORS
from store.process import doors
begins = list(doors.added(doors.To.COMMAND_LINE, DOORS))
for begin in begins:
    begin(["version"])
print(len(begins), "django" in sys.modules)
"""
# A module that needs a door.
NEEDS_ONE = "from mqbroker_client.contrib import gone\n"


def copied_without(door: str, folders: Sequence[str], to: Path) -> None:
    """Makes a copy of some folders, by links, without the files of one door and of what builds on the door.

    A link is to the largest folder that has none of these. What Python has compiled is linked, too: Python uses it
    beside a source of the same time and size, never alone.
    """
    gone = {Path(name) for name in (door, *ABOVE.get(door, ()))}
    around = {folder for name in gone for folder in name.parents}

    def link(place: Path) -> None:
        if place in around:
            (to / place).mkdir(parents=True, exist_ok=True)
            for path in (ROOT / place).iterdir():
                link(path.relative_to(ROOT))
        elif place not in gone:
            (to / place).symlink_to(ROOT / place)

    to.mkdir(parents=True)
    for name in folders:
        link(Path(name))


def breaches(*copies: dict[str, Any], file: Path) -> list[str]:
    """How each copy fails, empty where all is well."""
    file.write_text(json.dumps(copies))
    environment = {
        "PATH": "/usr/bin:/bin",
        "DJANGO_SETTINGS_MODULE": "mqbroker.embedded.cli.without_database",
        "MQBROKER_SECRET_KEY": "x",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    words = [sys.executable, importing.__file__, str(file)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def test_everything_else_is_imported_without_a_door_and_a_module_that_needs_one_is_found(tmp_path: Path) -> None:
    copies = []
    for door in DOORS:
        folder = tmp_path / door.replace("/", "-")
        is_client = door.startswith("client/")
        copied_without(door, ["client"] if is_client else [*PRODUCT, "client", "manage.py"], folder)
        rooms = [importing.CLIENT] if is_client else PRODUCT
        copies.append({"folder": str(folder), "rooms": rooms, "followed": not is_client})
    faulty = tmp_path / "faulty"
    (faulty / importing.CLIENT).mkdir(parents=True)
    (faulty / importing.CLIENT / "module.py").write_text(NEEDS_ONE)

    *found, of_faulty = breaches(*copies, copies[-1] | {"folder": str(faulty)}, file=tmp_path / "copies.json")

    assert {door: breach for door, breach in zip(DOORS, found, strict=True) if breach} == {}
    assert of_faulty.splitlines()[-1] == "ModuleNotFoundError: No module named 'mqbroker_client.contrib'"


def test_a_command_gives_way_before_anything_of_django_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", BEGINS], cwd=ROOT, capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("1 False\n", "")


def test_the_budgets_name_the_doors() -> None:
    assert sorted([*budgets.DOORS, "analytics"]) == sorted(OF_BROKER)
