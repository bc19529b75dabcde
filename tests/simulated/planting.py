"""Plants a fault in the code of this process: in the text of a statement, or in the functions of a module."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from mqbroker.embedded.commands import ROOT
from store.db.statements import PARAMETER, Statement

# What is changed of the statements of a page, which its readers ask for.
_OF_PAGES: list[tuple[str, str]] = []


@contextmanager
def planted(file: str, old: str, new: str) -> Iterator[None]:
    """Within the block a file of the product is as if this text of it were another one."""
    text = (ROOT / file).read_text()
    assert text.count(old) == 1, f"{file} has {old!r} {text.count(old)} times: the fault is out of date"
    suffix = Path(file).suffix
    if suffix == ".md":
        change = _in_page(old, new)
    else:
        change = _in_statement(file, old, new) if suffix == ".sql" else _in_module(file, text.replace(old, new))
    with change:
        yield


def of_page(text: str) -> str:
    """The statements of a page, with the fault that is planted in it."""
    for old, new in _OF_PAGES:
        text = text.replace(old, new)
    return text


@contextmanager
def _in_page(old: str, new: str) -> Iterator[None]:
    _OF_PAGES.append((old, new))
    try:
        yield
    finally:
        _OF_PAGES.pop()


@contextmanager
def _in_statement(file: str, old: str, new: str) -> Iterator[None]:
    path = Path(file)
    handle = f"{path.parent.parent.name}.{path.stem}".encode()
    found = {id(one): one for one in _named() if isinstance(one, Statement) and one.handle == handle}.values()
    assert found, f"nothing that is imported uses {file}"
    before = [(one, one.text, one.numbered) for one in found]
    for statement, text, _ in before:
        assert text.count(old) == 1
        statement.text = text.replace(old, new)
        statement.numbered = _numbered(statement)
    try:
        yield
    finally:
        for statement, text, numbered_before in before:
            statement.text, statement.numbered = text, numbered_before


def _numbered(statement: Statement[Any]) -> bytes:
    def number(found: re.Match[str]) -> str:
        return f"${statement.parameters.index(found[1]) + 1}"

    return PARAMETER.sub(number, statement.text).replace("%%", "%").encode()


@contextmanager
def _in_module(file: str, text: str) -> Iterator[None]:
    """Each function whose code the fault changes gets the changed code; what runs at import stays."""
    path = str(ROOT / file)
    codes = {code.co_qualname: code for code in _codes(compile(text, path, "exec"))}
    changed = 0
    with ExitStack() as stack:
        for function in {id(one): one for one in _functions()}.values():
            before = function.__code__
            code = codes.get(before.co_qualname) if before.co_filename == path else None
            if code is not None and not _is_same(code, before):
                function.__code__ = code
                stack.callback(setattr, function, "__code__", before)
                changed += 1
        assert changed, f"no function of {file} that is imported has the fault"
        yield


def _named() -> Iterator[object]:
    """What the modules of this process have by name. The garbage collector does not know all of it: a fork froze it."""
    for module in list(sys.modules.values()):
        yield from list(vars(module).values())


def _functions() -> Iterator[FunctionType]:
    """The functions of modules, and those of their classes."""
    for one in _named():
        members = list(vars(one).values()) if isinstance(one, type) else [one]
        for member in members:
            # Of others not even an attribute is asked for: a lazy module would be imported by that.
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if isinstance(function, FunctionType):
                yield function
                if isinstance(wrapped := getattr(function, "__wrapped__", None), FunctionType):
                    yield wrapped


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _is_same(one: CodeType, other: CodeType) -> bool:
    return (one.co_code, one.co_names, one.co_consts) == (other.co_code, other.co_names, other.co_consts)


class Planting:
    """A plugin of pytest: plants one fault once the tests, and so the product, are imported."""

    def __init__(self, file: str, old: str, new: str) -> None:
        self._fault = planted(file, old, new)

    def pytest_collection_finish(self) -> None:
        self._fault.__enter__()


def main(words: list[str]) -> int:
    """Runs a test with a fault in place: FILE OLD NEW TEST; gives pytest's exit code."""
    file, old, new, test = words
    # PYTEST_PLUGINS of a run in several processes would give this one a part of it.
    os.environ.pop("PYTEST_PLUGINS", None)
    return int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", test], plugins=[Planting(file, old, new)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
