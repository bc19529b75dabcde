"""A door is a folder that can be left out: without it everything else is imported, and Django's checks pass.

So do the comparison of models with migrations, the links of the console and the beat table.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from mqbroker.environment.framework import DOORS as APPS
from tests.house.sources import ROOT
from tools.house import budgets

CONTRIB = "client/mqbroker_client/contrib"
# A contribution that builds on others.
ABOVE = {
    f"{CONTRIB}/relay": (f"{CONTRIB}/celery",),
    f"{CONTRIB}/django": (f"{CONTRIB}/celery",),
    f"{CONTRIB}/sqlalchemy": (f"{CONTRIB}/celery", f"{CONTRIB}/faststream"),
    f"{CONTRIB}/testing": (f"{CONTRIB}/faststream",),
    # The format for Spark is one, and the broker's export names the client's sink.
    f"{CONTRIB}/spark.py": (),
}
OF_BROKER = ["mqbroker/rocketmq", *(name.replace(".", "/") for name in APPS)]
DOORS = [*OF_BROKER, *sorted(str(path.relative_to(ROOT)) for path in (ROOT / CONTRIB).glob("[a-z]*"))]

LEFT_OUT = {"migrations", "protocol", "programs", "__main__", "management"}
# Imports each module of some folders by its name, where the folder of the door is gone.
IMPORTS = """
import importlib, pathlib, sys
import django
from django.conf import settings
sys.path.insert(0, "client")
folders, left_out = sys.argv[1].split(), set(sys.argv[2].split())
if "client/mqbroker_client" in folders:
    app = "mqbroker_client.contrib.django"
    is_there = pathlib.Path("client", *app.split("."), "apps.py").exists()
    options = {"URL": "http://127.0.0.1:1", "API_KEY": "x", "PRODUCER_GROUP": "x"}
    settings.configure(INSTALLED_APPS=[app] if is_there else [], MQBROKER=options)
django.setup()
for path in (path for folder in folders for path in sorted(pathlib.Path(folder).rglob("*.py"))):
    parts = path.with_suffix("").parts[1 if path.parts[0] == "client" else 0 :]
    if not left_out.intersection(parts):
        importlib.import_module(".".join(part for part in parts if part != "__init__"))
"""
# Follows what leads from one part of the broker to another, whose door may be gone. The command makes all checks first.
FOLLOWS = """
import runpy
from console import theme
from mqbroker import urls
from mqbroker.celery.app import EVERY_SECONDS, app
assert all(str(line["link"]) for section in theme.navigation(None) for line in section["items"])
assert "v1/topics" in urls.SERVED
app.loader.import_default_modules()
assert EVERY_SECONDS.keys() <= app.tasks.keys(), EVERY_SECONDS.keys() - app.tasks.keys()
sys.argv = ["manage.py", "makemigrations", "--check", "--dry-run"]
runpy.run_path("manage.py", run_name="__main__")
"""
PRODUCT = ("mqbroker", "console", "transactions", "delivery", "scheduling", "webhooks", "access", "store", "analytics")


def copied_without(door: str, to: Path) -> None:
    """Makes a copy of the product, by links, without the files of one door and of what builds on the door."""
    gone = (door, *ABOVE.get(door, ()))
    for name in (*PRODUCT, "client", "manage.py"):
        for path in (ROOT / name).rglob("*") if (ROOT / name).is_dir() else [ROOT / name]:
            place = path.relative_to(ROOT)
            if path.is_file() and "__pycache__" not in place.parts and not str(place).startswith(gone):
                (to / place).parent.mkdir(parents=True, exist_ok=True)
                (to / place).symlink_to(path)


def run(folder: Path, *words: str) -> str:
    """What a program said, empty where all is well."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "DJANGO_SETTINGS_MODULE": "mqbroker.embedded.cli.without_database",
        "MQBROKER_SECRET_KEY": "x",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)
    return f"{done.stdout}{done.stderr}" if done.returncode else ""


@pytest.mark.parametrize("door", DOORS)
def test_everything_else_is_imported_and_agrees_without_a_door(door: str, tmp_path: Path) -> None:
    of_client = door.startswith("client/")
    folders = "client/mqbroker_client" if of_client else " ".join(PRODUCT)

    copied_without(door, tmp_path)

    assert run(tmp_path, "-c", IMPORTS if of_client else IMPORTS + FOLLOWS, folders, " ".join(LEFT_OUT)) == ""


def test_the_budgets_name_the_doors() -> None:
    assert sorted([*budgets.DOORS, "analytics"]) == sorted(OF_BROKER)
