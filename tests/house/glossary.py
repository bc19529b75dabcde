"""The words that docs/glossary.md refuses."""

import re
from collections.abc import Iterator
from functools import cache

from tests.house.sources import APPS, ROOT, Source, modules, sources

GLOSSARY = ROOT / "docs" / "glossary.md"
ROW = re.compile(r"^\| (?P<word>[a-z ]+?) \| (?P<instead>[^|]+?) \|$", re.MULTILINE)
# Names that SQLite and mozilla-django-oidc have for their own things.
FOREIGN = re.compile(r"PRAGMA \w+|OIDC\w+")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@cache
def unused() -> dict[str, str]:
    """The words of the last table, each with what is written instead."""
    _, _, table = GLOSSARY.read_text(encoding="utf-8").partition("\n## Words that are not used\n")
    rows = {row["word"]: row["instead"] for row in ROW.finditer(table)}
    return {word: instead for word, instead in rows.items() if word != "not used"}


@cache
def pattern() -> re.Pattern[str]:
    """Any of the words, also as part of a name: between letters stand blanks or underscores."""
    words = "|".join(re.escape(word).replace(r"\ ", "[ _]") for word in unused())
    return re.compile(rf"(?<![a-z])({words})(?![a-z])", re.IGNORECASE)


def breaches(source: Source) -> list[str]:
    """The refused words of a text, each with its line and what to write."""
    return [
        f"{number}: {word[0]}: write {unused()[word[0].lower().replace('_', ' ')]}"
        for number, line in enumerate(CAMEL.sub("_", FOREIGN.sub("", source.text)).splitlines(), 1)
        for word in pattern().finditer(line)
    ]


def texts() -> Iterator[Source]:
    """Code, statements and pages; not the glossary, which has the words, nor the changelog."""
    yield from modules(*APPS, "client", "examples")
    yield from sources("*.sql", *APPS)
    yield from (page for page in sources("*.md", "docs", "client") if page.path.name != GLOSSARY.name)
    for name in ("README.md", "CONTRIBUTING.md"):
        yield Source((ROOT / name).relative_to(ROOT), (ROOT / name).read_text(encoding="utf-8"))
