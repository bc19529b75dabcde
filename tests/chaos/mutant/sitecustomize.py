"""Replaces text of modules as they are imported: the flaw of a mutant. MUTANT has pieces of JSON: module, old, new."""

import importlib.abc
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

CHANGES: list[tuple[str, str, str]] = [tuple(change) for change in json.loads(os.environ.get("MUTANT", "[]"))]


class Mutated(SourceFileLoader):
    """Loads a module from its changed source; never from a compiled file."""

    def get_code(self, fullname: str) -> CodeType:
        text = self.get_data(self.path).decode()
        for module, old, new in CHANGES:
            if module == fullname:
                assert old in text, f"{module} does not hold {old!r}: the mutant is out of date"
                text = text.replace(old, new)
        return compile(text, self.path, "exec")


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


sys.meta_path.insert(0, Finder())
