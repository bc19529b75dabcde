"""Digests of the code that models stand for: `python -m tests.simulated.models.digests --write` accepts what it is now.

A model names its code in its docstring, in backticks: a function by its module and its name, a statement or a page by
its path. The digest of a function comes from its syntax without docstrings and comments. The digest of a statement
comes from its words without comments, and the digest of a page from its SQL.
"""

import ast
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDER = Path(__file__).parent
STORED = FOLDER / "digests.json"
MODELS = (
    *("one_decision", "split", "deliveries", "segments"),
    *("firing", "draining", "forwarding", "stalled_writer"),
)
REFERENCE = re.compile(r"`([\w./-]+)`")
COMMENT = re.compile(r"--.*")
SQL_OF_PAGE = re.compile(r"^```sql\n(.*?)^```", re.DOTALL | re.MULTILINE)


class UnknownReference(LookupError):
    """A model names code that is not there."""


def references(model: str) -> list[str]:
    """The code that the docstring of a model names."""
    tree = ast.parse((FOLDER / f"{model}.py").read_text(encoding="utf-8"))
    return sorted({*REFERENCE.findall(ast.get_docstring(tree) or "")} - {"ctid"})


def digests() -> dict[str, dict[str, str]]:
    """Of each model: its references with their digests as the code is now. Raises UnknownReference."""
    return {model: {one: digest(one) for one in references(model)} for model in MODELS}


def stored() -> dict[str, dict[str, str]]:
    """Of each model: the digests of the code that it was written for."""
    found: dict[str, dict[str, str]] = json.loads(STORED.read_text(encoding="utf-8"))
    return found


def changes(before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """What has changed without its model, as sentences."""
    for model in sorted({*before, *now}):
        was, is_now = before.get(model, {}), now.get(model, {})
        for one in sorted({*was, *is_now}):
            if was.get(one) != is_now.get(one):
                yield f"{one} is not what the model {model} was written for"


def digest(reference: str) -> str:
    """The digest of a function, a class, a statement or a page. Raises UnknownReference."""
    return hashlib.sha256(_content(reference).encode()).hexdigest()[:16]


def _content(reference: str) -> str:
    if "/" not in reference:
        return shape(_definition(reference))
    path = ROOT / reference
    if not path.is_file():
        raise UnknownReference(reference)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = "\n".join(SQL_OF_PAGE.findall(text))
    return words(text)


def words(statement: str) -> str:
    """A statement without its comments, on one line."""
    return " ".join(COMMENT.sub("", statement).split())


def _definition(reference: str) -> ast.AST:
    parts = reference.split(".")
    for length in range(len(parts) - 1, 0, -1):
        path = ROOT.joinpath(*parts[:length]).with_suffix(".py")
        if path.is_file():
            node: ast.AST = ast.parse(path.read_text(encoding="utf-8"))
            for name in parts[length:]:
                node = _named(node, name, reference)
            return node
    raise UnknownReference(reference)


def _named(node: ast.AST, name: str, reference: str) -> ast.AST:
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and one.name == name:
            return one
    raise UnknownReference(reference)


def shape(node: object) -> str:
    """A syntax tree as text, alike in each version of Python: what is empty is left out, and so are docstrings."""
    if isinstance(node, list):
        return f"[{' '.join(map(shape, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: value for name, value in ast.iter_fields(node) if value not in (None, [])}
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
        fields["body"] = node.body[1:]
    return f"{type(node).__name__}({' '.join(f'{name}={shape(value)}' for name, value in fields.items())})"


def main(arguments: list[str]) -> int:
    """Prints what has changed; with --write it accepts the code as it is."""
    now = digests()
    found = list(changes(stored() if STORED.exists() else {}, now))
    print("\n".join(found) or "All models stand for the code as it is.")
    if arguments == ["--write"]:
        STORED.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
        return 0
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
