"""Generates the client's synchronous modules from the modules in aio/: the same code without `async` and `await`.

Run it after a change of a module in aio/ that MODULES names. With --check it writes nothing, and fails if a module of
MODULES is out of date. Code that differs by more than words is in modules with the same name in both places, such as
`threads` and `aio.tasks`, which are not in MODULES.
"""

import argparse
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent / "mqbroker_client"
ROOT = PACKAGE.parents[1]
# The packages of the synchronous modules that are not in core/.
PLACED = {"transactional": "barrier"}
MODULES = ("administration", "checking", "consumers", "producers", "receipts", "transactional")

# Words that are removed from the code, each with the space after it.
DROPPED = {"async", "await"}
# Names in asynchronous modules, and the names that replace them in synchronous modules. The prefix `Async` is always
# removed.
NAMES = {
    "aclosing": "closing",
    "anext": "next",
    "asyncio": "threading",
    "outcome_awaited": "outcome_of",
}
# Words of comments and docstrings, and the words that replace them in the synchronous modules.
WORDS = {"task": "thread", "tasks": "threads"}
# Module names that are replaced in the whole text, because each is several tokens.
PLACES = {"mqbroker_client.aio.tasks": "mqbroker_client.core.threads", "mqbroker_client.aio": "mqbroker_client.core"}

PREFIX = re.compile(r"\bAsync(?=[A-Z])")
WORD = re.compile(r"\w+")
FORMATTED = re.compile(r"(?i)(f|rf|fr)['\"]")
HEAD = "# Generated from {origin} by client/synchronous.py: change that file, then run the script.\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a module is out of step")
    is_check = parser.parse_args().check
    differing = [module for module in MODULES if is_out_of_step(module)]
    for module in differing:
        if not is_check:
            path_of(module).write_text(synchronous(module), encoding="utf-8")
            print(f"{shown(path_of(module))} is written")
        else:
            print(f"{shown(path_of(module))} is not what {shown(origin_of(module))} gives.")
    if differing and is_check:
        print(f"Change the module in aio/, not the generated one, and run: {shown(Path(sys.executable))} {sys.argv[0]}")
    return 1 if differing and is_check else 0


def origin_of(module: str) -> Path:
    return PACKAGE / "aio" / f"{module}.py"


def path_of(module: str) -> Path:
    return PACKAGE / PLACED.get(module, "core") / f"{module}.py"


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def is_out_of_step(module: str) -> bool:
    path = path_of(module)
    return not path.exists() or path.read_text(encoding="utf-8") != synchronous(module)


def synchronous(module: str) -> str:
    """The text of the generated module, formatted."""
    origin = origin_of(module)
    text = HEAD.format(origin=origin.relative_to(PACKAGE)) + without_async(origin.read_text(encoding="utf-8"))
    name = str(path_of(module))
    # Names of other lengths need other line breaks, and imports another order.
    text = ruff(text, "check", "--select", "I,RUF022", "--fix-only", "--quiet", "--stdin-filename", name, "-")
    return ruff(text, "format", "--stdin-filename", name, "-")


def without_async(text: str) -> str:
    """The code of an asynchronous module, token by token, with synchronous words in place of the asynchronous words."""
    for asynchronous, plain in PLACES.items():
        text = text.replace(asynchronous, plain)
    lines = text.splitlines(keepends=True)
    # Tokens are changed from the last to the first, so that earlier positions stay valid.
    for token, end, new in reversed(list(replacements(text))):
        (row, start), (last_row, _) = token.start, token.end
        before, after = lines[row - 1][:start], lines[last_row - 1][end:]
        lines[row - 1 : last_row] = [before + new + after]
    return "".join(lines)


def replacements(text: str) -> Iterator[tuple[tokenize.TokenInfo, int, str]]:
    """The tokens to change. For each: the column at which the replaced part ends, and the text that replaces it."""
    is_formatted = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        end = token.end[1]
        kind = tokenize.tok_name[token.type]
        is_formatted += {"FSTRING_START": 1, "FSTRING_END": -1}.get(kind, 0)
        if is_formatted or FORMATTED.match(token.string):
            # Python 3.12 and later split an f-string into several tokens, earlier versions do not: its text is not
            # changed.
            continue
        if kind == "NAME" and token.string in DROPPED:
            yield token, end + len(token.line[end:]) - len(token.line[end:].lstrip()), ""
        elif kind == "NAME":
            yield token, end, NAMES.get(token.string, PREFIX.sub("", token.string))
        elif kind in ("STRING", "COMMENT"):
            words = WORD.sub(lambda found: WORDS.get(found[0], found[0]), token.string)
            yield token, end, PREFIX.sub("", words)


def ruff(text: str, *words: str) -> str:
    command = [sys.executable, "-m", "ruff", *words]
    return subprocess.run(command, input=text, capture_output=True, check=True, text=True, cwd=ROOT).stdout


if __name__ == "__main__":
    sys.exit(main())
