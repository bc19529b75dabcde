"""What the client offers is explained where an editor shows it."""

import importlib
import inspect
from collections.abc import Iterator
from typing import Any, cast

import pytest

MODULES = (
    "",
    ".aio",
    ".barrier",
    ".barrier.inbox",
    ".core.administration",
    ".core.errors",
    ".core.hooks",
    ".contrib.celery",
    ".contrib.fastapi",
    ".contrib.faststream",
    ".contrib.relay",
    ".contrib.sqlalchemy",
    ".contrib.testing",
)


def offered(module_name: str) -> Iterator[tuple[str, object]]:
    """The public classes and functions of a module, and the methods of these classes, each by its name."""
    module = importlib.import_module(module_name)
    own = [name for name, found in vars(module).items() if getattr(found, "__module__", "") == module_name]
    for name in getattr(module, "__all__", [name for name in own if not name.startswith("_")]):
        found = getattr(module, name)
        if not (inspect.isclass(found) or inspect.isfunction(found)):
            continue
        yield name, found
        for method in methods_of(found) if inspect.isclass(found) else ():
            if not method.startswith("_") and inspect.isroutine(getattr(found, method)):
                yield f"{name}.{method}", getattr(found, method)


def methods_of(found: type) -> list[str]:
    """What a class and the classes of the client below it have."""
    return [name for each in found.__mro__ if each.__module__.startswith("mqbroker_client") for name in vars(each)]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_class_function_and_method_says_what_it_does(module: str) -> None:
    silent = [name for name, found in offered(f"mqbroker_client{module}") if not has_text(found)]

    assert silent == []


def test_methods_for_tasks_take_what_those_for_threads_take() -> None:
    for_threads = dict(offered("mqbroker_client"))
    differing = [
        name
        for name, method in offered("mqbroker_client.aio")
        if (other := for_threads.get(name.removeprefix("Async"))) is not None
        # A coroutine is what a task leaves for later, and a call what a thread does.
        and inspect.isfunction(method)
        and name != "AsyncBroker.do_later"
        and list(inspect.signature(method).parameters) != list(inspect.signature(cast(Any, other)).parameters)
    ]

    assert differing == []


def has_text(found: object) -> bool:
    """Whether its source explains it; an error class may be explained by its family."""
    text = found.__doc__ or ""
    if inspect.isclass(found):
        own = inspect.getdoc(found) or ""
        # What dataclass writes in place of a docstring.
        return bool(own) and not own.startswith(f"{found.__name__}(")
    return bool(text)
