"""Prints each setting with its meaning, its default, and the value that `./mq up` would use, in the form of an env
file.
"""

import argparse
import importlib
import os
import shlex
import textwrap

from django.core.exceptions import ImproperlyConfigured

from mqbroker.embedded import environment
from mqbroker.embedded.errors import CannotStart
from mqbroker.environment import env

SECRET_WORDS = ("SECRET", "PASSWORD", "KEY")


def main(words: list[str]) -> int:
    argparse.ArgumentParser("mq settings", description=__doc__).parse_args(words)
    refuse_bad_settings()
    for setting in env.declared:
        print(shown(setting))
    return 0


def shown(setting: env.Setting) -> str:
    """A setting as lines that a shell or an env file accepts."""
    about = [*textwrap.wrap(setting.meaning, 110), f"Default: {shlex.quote(setting.default)}"]
    assignment = f"{setting.name}={shlex.quote(setting.value)}"
    # Neither a secret nor a placeholder is printed, because an env file would set the placeholder.
    if setting.value and any(word in setting.name for word in SECRET_WORDS):
        assignment = f"# {setting.name} is set, and its value is kept secret."
    return "\n".join([*(f"# {line}" for line in about), assignment, ""])


def refuse_bad_settings() -> None:
    """Reads the settings as the broker's processes do, before any of them starts.

    Raises CannotStart with the setting's own sentence.
    """
    for name in ("DATABASE_URL", "REDIS_URL"):
        if not os.environ.get(name):
            os.environ.pop(name, None)  # a variable that is set to nothing counts as not set
    for name, value in environment.EMBEDDED_DEFAULTS.items():
        os.environ.setdefault(name, value)
    try:
        importlib.import_module("mqbroker.settings")
    except ImproperlyConfigured as problem:
        raise CannotStart(str(problem)) from problem
