"""The programs of docs/sql.md send by one statement of their transaction: in Java, in Node and in Django."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import packages
from tests.docs.stories import BARE, BRIEF_JAVA
from tests.outboxes.conftest import Shop
from tests.outboxes.roles import PAGE, Roles

JDBC = Path("/usr/share/java/postgresql.jar")
# Runs the function of the page as a request would.
DJANGO = """
import sys
from urllib.parse import urlsplit

import django
from django.conf import settings

url = urlsplit(sys.argv[1])
place = {"HOST": url.hostname, "PORT": url.port, "USER": url.username, "PASSWORD": url.password, "NAME": url.path[1:]}
settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **place}})
django.setup()

from shop import order

order(7)
"""


def program(language: str, shop: Shop) -> str:
    """The program of the page, for the shop's own topic."""
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert '"orders"' in found
    return str(found.replace('"orders"', f'"{shop.topic}"'))


def commands(start: str) -> list[str]:
    """The words of a command of the page, without the URL at its end."""
    [found] = re.findall(rf"`({start} [^`']+)", PAGE.read_text())
    return str(found).split()


def run(words: list[str], folder: Path) -> None:
    """Runs a program with PATH and HOME alone."""
    done = subprocess.run(words, cwd=folder, env=BARE | BRIEF_JAVA, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_java_sends_by_jdbc(shop: Shop, roles: Roles, tmp_path: Path) -> None:
    if not JDBC.exists() or shutil.which("java") is None:
        packages.skip_for_want_of("libpostgresql-jdbc-java", "PostgreSQL's JDBC driver")
    parts = urlsplit(shop.url)
    url = f"jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}?user={roles.writer}&password={roles.password}"
    (tmp_path / "Shop.java").write_text(program("java", shop))

    (tmp_path / "postgresql.jar").symlink_to(JDBC)

    run([*commands("java"), url], tmp_path)

    assert [message["body"] for message in shop.receives_all(1)] == ['{"article": 7}']


def test_node_sends_by_pg(shop: Shop, roles: Roles, tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("Node is not installed")
    (tmp_path / "shop.mjs").write_text(program("js", shop))
    install = commands("npm install")
    if subprocess.run(install, cwd=tmp_path, env=BARE, capture_output=True, timeout=300).returncode != 0:
        pytest.skip("npm finds no package pg from here")

    run([*commands("node"), roles.url(roles.writer)], tmp_path)

    assert [message["body"] for message in shop.receives_all(1)] == ['{"article": 7}']


def test_django_sends_within_its_transaction(shop: Shop, roles: Roles, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(program("python", shop))
    (tmp_path / "run.py").write_text(DJANGO)

    run([sys.executable, "run.py", roles.url(roles.writer)], tmp_path)

    assert [message["body"] for message in shop.receives_all(1)] == ["article 7"]
