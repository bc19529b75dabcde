"""Replaces text of modules and statements as they are read: the flaw of a mutant.

MUTANT has pieces of JSON: a module, or a file `….sql`; the old text; the new one.
"""

import importlib.abc
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

CHANGES: list[tuple[str, str, str]] = [tuple(change) for change in json.loads(os.environ.get("MUTANT", "[]"))]


def changed(name: str, text: str) -> str:
    """The text of a module or statement with its changes."""
    for changes, old, new in CHANGES:
        if changes == name:
            assert old in text, f"{name} does not hold {old!r}: the mutant is out of date"
            text = text.replace(old, new)
    return text


class Mutated(SourceFileLoader):
    """Loads a module from its changed source; never from a compiled file."""

    def get_code(self, fullname: str) -> CodeType:
        return compile(changed(fullname, self.get_data(self.path).decode()), self.path, "exec")


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are to be changed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not any(module == fullname for module, _, _ in CHANGES):
            return None
        found = PathFinder.find_spec(fullname, path)
        assert found is not None
        assert found.origin is not None
        return importlib.util.spec_from_file_location(fullname, found.origin, loader=Mutated(fullname, found.origin))


read_text = Path.read_text


def read_changed(self: Path, encoding: str | None = None, errors: str | None = None) -> str:
    """As Path.read_text, by which statements are read."""
    return changed(self.name, read_text(self, encoding, errors))


sys.meta_path.insert(0, Finder())
Path.read_text = read_changed  # type: ignore[method-assign]  # the flaw is made on purpose
