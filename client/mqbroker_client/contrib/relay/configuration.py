"""A relay's configuration file, in TOML."""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from mqbroker_client.contrib.relay.headers import CloudEvents
from mqbroker_client.contrib.relay.relays import CONCURRENCY
from mqbroker_client.contrib.relay.targets import Target

#: The kinds of targets by name: module, class, required fields, and optional fields.
KINDS: Mapping[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "amqp": ("amqp", "Amqp", ("url", "routing_key"), ("exchange",)),
    "kafka": ("kafka", "Kafka", ("servers", "topic"), ("options",)),
    "nats": ("nats", "Nats", ("url", "subject"), ()),
}
NEEDED = ("topic", "group", "target")
FIELDS = (*NEEDED, "filter", "ordered", "concurrency", "cloudevents")
#: `$NAME` or `${NAME}` stands for an environment variable, `$$` for a dollar sign.
VARIABLE = re.compile(r"\$(?:(\$)|(\w+)|\{(\w+)\})")


@dataclass(frozen=True)
class Configuration:
    """The configuration of a relay."""

    topic: str
    group: str
    make_target: Callable[[], Target]
    filter: str | None = None
    ordered: bool = False
    concurrency: int = CONCURRENCY


def read(path: Path) -> Configuration:
    """Reads the file without starting anything. Raises ValueError with the fault, or OSError."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise ValueError(f"{path} is no TOML: {problem}") from problem
    _require("the file", given, NEEDED, FIELDS)
    target = _table("target", given.pop("target"))
    if target.get("kind") not in tuple(KINDS):
        raise ValueError(f"target has no kind that there is: give one of {', '.join(KINDS)}")
    event = _event(given.pop("cloudevents", None))
    _require_types(given)
    return Configuration(make_target=_maker(dict(target), event), **given)


def _require(what: str, given: Mapping[str, Any], needed: tuple[str, ...], known: tuple[str, ...]) -> None:
    if missing := [name for name in needed if name not in given]:
        raise ValueError(f"{what} lacks {missing[0]}")
    if unknown := sorted(given.keys() - set(known)):
        raise ValueError(f"{what} has {unknown[0]}, which is unknown: it may have {', '.join(known)}")


def _require_types(given: Mapping[str, Any]) -> None:
    for name, kind in {"topic": str, "group": str, "filter": str, "ordered": bool, "concurrency": int}.items():
        if name in given and type(given[name]) is not kind:
            raise ValueError(f"{name} is no {kind.__name__}: {given[name]!r}")
        if given.get(name) == "":
            raise ValueError(f"{name} is empty: give a text")
    if not 1 <= given.get("concurrency", 1) <= 1_000:
        raise ValueError(f"concurrency is {given['concurrency']}: give 1 to 1,000 threads")


def _event(given: Any) -> CloudEvents | None:
    if given is None:
        return None
    fields = _table("cloudevents", given)
    _require("cloudevents", fields, ("source", "type"), ("source", "type"))
    return CloudEvents(**{name: _text(f"cloudevents.{name}", value) for name, value in fields.items()})


def _maker(given: dict[str, Any], event: CloudEvents | None) -> Callable[[], Target]:
    kind = given.pop("kind")
    module, name, needed, more = KINDS[kind]
    _require("target", given, needed, (*needed, *more))
    fields = {key: _field(f"target.{key}", value) for key, value in given.items()}
    if empty := [key for key in needed if not fields[key]]:
        raise ValueError(f"target.{empty[0]} is empty: give a text")

    def make() -> Target:
        try:
            found = getattr(import_module(f"mqbroker_client.contrib.relay.{module}"), name)
        except ImportError as problem:
            raise ValueError(f"{problem}: pip install 'mqbroker-client[relay-{kind}]'") from problem
        try:
            made: Target = found(**fields, cloudevents=event)
        except KeyError as problem:  # kombu raises KeyError for an unknown transport
            raise ValueError(f"target cannot be made: {problem.args[0]}") from problem
        return made

    return make


def _field(where: str, given: Any) -> Any:
    """A field of the target: a text, or the table of options, whose values may also be numbers or booleans."""
    if where != "target.options":
        return _expanded(where, _text(where, given))
    return {
        name: _expanded(f"{where}.{name}", value) if isinstance(value, str) else _scalar(f"{where}.{name}", value)
        for name, value in _table(where, given).items()
    }


def _expanded(where: str, text: str) -> str:
    """The text with environment variables replaced, so that the file need not contain secrets: url = "$RABBIT_URL"."""

    def value(found: re.Match[str]) -> str:
        dollar, *names = found.groups()
        if dollar:
            return "$"
        [name] = filter(None, names)
        if name not in os.environ:
            raise ValueError(
                f"{where} names ${name}, which is not set: set the variable, or write $$ for a dollar sign"
            )
        return os.environ[name]

    return VARIABLE.sub(value, text)


def _text(where: str, given: Any) -> str:
    if not isinstance(given, str):
        raise ValueError(f"{where} is no text: {given!r}")
    return given


def _scalar(where: str, given: Any) -> Any:
    if not isinstance(given, int | float | bool):
        raise ValueError(f"{where} is no text, number or boolean: {given!r}")
    return given


def _table(where: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError(f"{where} is no table: {given!r}")
    return given
