"""Prints random docstrings, comments, sentences of pages and refusals, so that readers can rate the prose."""

import argparse
import ast
import io
import itertools
import random
import re
import tokenize
from collections.abc import Iterable, Iterator

from mqbroker.embedded.commands import ROOT
from tools.house.figures import GENERATED, PRODUCT

COUNTS = {"docstrings and comments": 60, "sentences of pages": 30, "refusals": 20}
PAGES = ("README.md", "CONTRIBUTING.md", "client/README.md", "docs/**/*.md")
COMMENT_OF_SQL = re.compile(r"(?:^ *--.*\n?)+", re.MULTILINE)
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
# A sentence ends at a full stop, a table cell's border, an empty line, or before a heading, list item or quotation.
END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[])|\s*\|\s*|\n\s*\n|\n(?= *(?:[-*#>]|\d+\.) )")
# A text with fewer words is a name, a heading or a lint marker.
FEWEST_WORDS = 4

# Yields the line where a text begins, and the text. A Passage also has the path of the file.
Found = Iterator[tuple[int, str]]
Passage = tuple[str, int, str]


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.house.sample_prose", description=__doc__)
    parser.add_argument("--seed", type=int, required=True, help="the same seed prints the same sample of a checkout")
    for kind, sampled in sample(parser.parse_args(words).seed).items():
        print(f"# {len(sampled)} {kind}")
        for path, line, text in sampled:
            print(f"{path}:{line}: {text}")


def sample(seed: int) -> dict[str, list[Passage]]:
    """Random passages of each kind, as many as COUNTS says, sorted by file and line."""
    chance = random.Random(seed)
    return {kind: sorted(chance.sample(found, COUNTS[kind])) for kind, found in passages().items()}


def passages() -> dict[str, list[Passage]]:
    """All passages of the product and its pages by kind, without generated files."""
    code = {path: text for path, text in texts("**/*.py", *PRODUCT).items() if not text.startswith(GENERATED)}
    trees = {path: ast.parse(text) for path, text in code.items()}
    classes = refusal_classes(trees.values())
    explained = [(path, docstrings(tree)) for path, tree in trees.items()]
    explained += [(path, comments(text)) for path, text in code.items()]
    explained += [(path, comments_of_sql(text)) for path, text in texts("**/*.sql", *PRODUCT).items()]
    paged = [(path, sentences(text)) for pattern in PAGES for path, text in texts(pattern, ".").items()]
    refused = [(path, refusals(tree, classes)) for path, tree in trees.items()]
    return {
        kind: [(path, *found) for path, each in files for found in each if len(found[1].split()) >= FEWEST_WORDS]
        for kind, files in zip(COUNTS, (explained, paged, refused), strict=True)
    }


def texts(pattern: str, *folders: str) -> dict[str, str]:
    """The texts of the matching files, by path from the root, without Django's migrations."""
    paths = (path for folder in folders for path in (ROOT / folder).glob(pattern) if "migrations" not in path.parts)
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(paths)}


def docstrings(tree: ast.Module) -> Found:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.body[0].lineno if node.body else 1, ast.get_docstring(node) or ""


def comments(text: str) -> Found:
    """The comments of a module. Neighbouring lines that contain only a comment are one comment."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = [token for token in tokens if token.type == tokenize.COMMENT]
    # Line minus index is the same for all lines of a block; a comment after code is always a separate block.
    numbers = [token.start[0] - n if token.line.lstrip()[0] == "#" else -n for n, token in enumerate(found)]
    for _, pairs in itertools.groupby(zip(numbers, found, strict=True), key=lambda pair: pair[0]):
        block = [token for _, token in pairs]
        yield block[0].start[0], " ".join(token.string.lstrip("#: ") for token in block)


def comments_of_sql(text: str) -> Found:
    for block in COMMENT_OF_SQL.finditer(text):
        yield text.count("\n", 0, block.start()) + 1, " ".join(line.strip(" -") for line in block[0].splitlines())


def sentences(page: str) -> Found:
    """The sentences of a page's paragraphs, list items and table cells, without headings and code."""
    page = FENCED.sub(lambda fenced: "\n" * fenced[0].count("\n"), page)
    ends = [*END_OF_SENTENCE.finditer(page)]
    starts, stops = [0, *(end.end() for end in ends)], [*(end.start() for end in ends), len(page)]
    for start, stop in zip(starts, stops, strict=True):
        if not page[start:stop].startswith("#"):
            yield page.count("\n", 0, start) + 1, " ".join(page[start:stop].split())


def refusal_classes(trees: Iterable[ast.Module]) -> set[str]:
    """The names of Refusal and all its subclasses."""
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    bases = {node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases} for node in classes}
    names = {"Refusal"}
    while below := {name for name in bases if bases[name] & names} - names:
        names |= below
    return names


def refusals(tree: ast.Module, classes: set[str]) -> Found:
    """The sentences with which a module makes refusals. The expression of a value is in braces."""
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    constants = {ast.unparse(node.targets[0]): node.value for node in assigned}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).rpartition(".")[2] in classes:
            text = constants.get(ast.unparse(node.args[0]), node.args[0])
            if isinstance(text, ast.JoinedStr | ast.Constant):
                yield node.lineno, ast.unparse(text).lstrip("f").strip("'\"")


if __name__ == "__main__":
    main()
