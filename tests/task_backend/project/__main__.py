"""A program of the project: `python -m tests.task_backend.project MODULE ARGUMENTS` calls the module's `main`."""

import sys
from importlib import import_module

import django

if __name__ == "__main__":
    django.setup()
    # Models are imported only now.
    import_module(f"tests.task_backend.project.{sys.argv[1]}").main(*sys.argv[2:])
