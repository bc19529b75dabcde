"""The project's tasks."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from mqbroker_client.contrib.django.tasks.framework import TaskContext, task

from tests.task_backend.project.models import Run

FOLDER = Path(os.environ["PROJECT_FOLDER"])


@task
def note(about: Any) -> str:
    Run(about=str(about)).save()
    return f"noted {about}"


@task(backend="other")
def note_elsewhere(about: Any) -> None:
    Run(about=str(about)).save(using="other")


@task
async def note_asynchronously(about: Any) -> str:
    await asyncio.sleep(0)
    await Run._default_manager.acreate(about=str(about))
    return "awaited"


@task(takes_context=True)
def fail_at_first(context: TaskContext, times: int) -> int:
    """Fails so many times, each time after a write."""
    Run(about=f"attempt {context.attempt}").save()
    if context.attempt <= times:
        raise RuntimeError(f"attempt {context.attempt} fails")
    return int(context.attempt)


@task(takes_context=True)
def wait_at_first(context: TaskContext, about: str) -> None:
    """The first attempt writes, makes the file `began` and waits for the file `may end`."""
    Run(about=about).save()
    if context.attempt == 1:
        (FOLDER / "began").touch()
        while not (FOLDER / "may end").exists():
            time.sleep(0.02)  # another process makes the file


@task
def place(about: str, declined: bool) -> None:
    """Enqueues a task; if the order is declined, this task fails afterwards."""
    note.enqueue(about)
    if declined:
        raise ValueError("declined")
