"""A Django project whose transactions enqueue tasks."""

import os
from pathlib import Path
from typing import Any

from django.utils.autoreload import autoreload_started


def _watch(sender: Any, **_: object) -> None:
    sender.extra_files.add(Path(os.environ["PROJECT_FOLDER"], "watched.py"))


autoreload_started.connect(_watch)
