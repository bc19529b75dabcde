"""The page on a PostgreSQL of one's own names each setting that the private server, Compose or a session changes."""

import re

import yaml

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.servers import postgres
from store.db import conninfo, guards, server_settings, server_url
from transactions.outboxes import source

PAGE = ROOT / "docs" / "deployment.md"


def rows() -> list[list[str]]:
    """The cells of the section's tables."""
    _, _, behind = PAGE.read_text().partition("## A PostgreSQL of your own\n")
    section = behind.partition("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:3] == "| `"]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


SERVER = {name: row for row in rows() if len(row) == 4 for name in named(row[0])}
SESSION = {name: row for row in rows() if len(row) == 3 for name in named(row[0])}


def compose() -> dict[str, str]:
    """What Compose sets, of the server and of its cluster."""
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["postgres"]
    of_server = dict(word.split("=") for word in service["command"] if "=" in word)
    return of_server | dict(word.split("=") for word in service["environment"]["POSTGRES_INITDB_ARGS"].split())


def test_each_setting_of_the_private_server_and_of_compose_is_on_the_page_with_its_value() -> None:
    for name, value in {**postgres.SETTINGS, **compose()}.items():
        row = SERVER.get(name) or SESSION[name]
        assert value in row[-2] or not value, name


def test_each_setting_of_a_session_is_on_the_page() -> None:
    of_outbox = re.findall(r"\('(\w+)', '", source.ENTER_SOURCE.text)

    assert {*conninfo.SESSION, *server_url.SESSION, *of_outbox} - SESSION.keys() == set()


def test_each_setting_that_the_doctor_looks_at_is_marked_on_the_page() -> None:
    marked = {name for name, row in SERVER.items() if row[0].endswith("marked")}

    assert marked == {*server_settings.NEEDED, *server_settings.LEAST, server_settings.CONNECTIONS, *guards.DURABLE}
