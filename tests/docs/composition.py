"""docker-compose.yml as Compose reads it: a service's settings with the variables of a .env filled in."""

import re
from typing import Any

import yaml

from mqbroker.embedded.commands import ROOT

# What stands in YAML: mappings, lists and scalars.
Node = Any

VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<text>[^}]*))?\})")


class VariableMissing(LookupError):
    """Compose refuses to start without a variable that is written `${NAME:?reason}`."""


def read() -> dict[str, Node]:
    """The whole file, nothing filled in."""
    document: dict[str, Node] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return document


def services() -> dict[str, Node]:
    """The services by name, nothing filled in."""
    found: dict[str, Node] = read()["services"]
    return found


def filled(node: Node, variables: dict[str, str]) -> Node:
    """A part of the file with its variables filled in.

    Raises VariableMissing for one that must be there and is not.
    """
    if isinstance(node, dict):
        return {key: filled(value, variables) for key, value in node.items()}
    if isinstance(node, list):
        return [filled(value, variables) for value in node]
    return VARIABLE.sub(lambda found: _value(found, variables), node) if isinstance(node, str) else node


def _value(found: re.Match[str], variables: dict[str, str]) -> str:
    if found["escaped"]:
        return "$"
    value = variables.get(found["name"], "")
    if not value and found["kind"] == "?":
        raise VariableMissing(f"{found['name']} {found['text']}")
    return value or (found["text"] if found["kind"] == "-" else "") or ""


def needed() -> set[str]:
    """The variables without which Compose does not start."""
    return {found["name"] for found in VARIABLE.finditer(str(read())) if found["kind"] == "?"}


def settings_of(file: str) -> dict[str, str]:
    """The variables of a .env file's text."""
    lines = [line for line in file.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)
