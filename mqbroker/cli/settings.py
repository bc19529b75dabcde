"""Prints every setting with its value, its default and its meaning, as `./mq up` would run with it."""

import argparse
import importlib
import os
import textwrap

from django.core.exceptions import ImproperlyConfigured

from mqbroker import env
from mqbroker.embedded import environment
from mqbroker.embedded.errors import CannotStart

SECRET_WORDS = ("SECRET", "PASSWORD", "KEY")


def main(words: list[str]) -> int:
    argparse.ArgumentParser("mq settings", description=__doc__).parse_args(words)
    refuse_bad_settings()
    for setting in env.declared:
        print(f"{setting.name} = {shown(setting.name, setting.value)}")
        print(f"    default: {shown(setting.name, setting.default)}")
        print(textwrap.fill(setting.meaning, 110, initial_indent="    ", subsequent_indent="    "))
    return 0


def shown(name: str, value: object) -> str:
    """Secrets stay secret, also on the owner's screen."""
    if value and any(word in name for word in SECRET_WORDS):
        return "(kept secret)"
    if isinstance(value, tuple | list):
        return " ".join(map(str, value)) or "(none)"
    return str(value) if value != "" else "(none)"


def refuse_bad_settings() -> None:
    """Reads the settings as the broker's processes will, before any of them starts.

    Raises CannotStart with the setting's own sentence.
    """
    for name in ("DATABASE_URL", "REDIS_URL"):
        if not os.environ.get(name):
            os.environ.pop(name, None)  # set to nothing means not set
    for name, value in environment.EMBEDDED_DEFAULTS.items():
        os.environ.setdefault(name, value)
    try:
        importlib.import_module("mqbroker.settings")
    except ImproperlyConfigured as problem:
        raise CannotStart(str(problem)) from problem
