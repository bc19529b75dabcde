"""The Dockerfile as its builder reads it, and the folder that it makes of the checkout."""

import json
import re
import shutil
from pathlib import Path

from mqbroker.embedded.commands import ROOT


def instructions() -> list[tuple[str, str]]:
    """Each instruction with what follows it, continued lines joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(words[0], words[1]) for line in lines if (words := line.split(" ", 1)) and len(words) == 2]


def said(name: str) -> list[str]:
    """What follows each instruction of one name."""
    return [rest for instruction, rest in instructions() if instruction == name]


def copied() -> list[str]:
    """The paths of the checkout that come into the image's /app."""
    return [source for source, _ in (rest.split() for rest in said("COPY")) if not source.endswith(".lock")]


def command() -> list[str]:
    """What a container runs without a command of its own."""
    words: list[str] = json.loads(said("CMD")[0])
    return words


def variables() -> dict[str, str]:
    """The environment that every process of the image finds."""
    return dict(word.split("=", 1) for rest in said("ENV") for word in rest.split())


def unpack(folder: Path) -> None:
    """Makes the image's /app: what is copied, as it is in the checkout, and nothing else."""
    for source in copied():
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, folder / source, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, folder / source)
