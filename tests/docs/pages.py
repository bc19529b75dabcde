"""The project's pages as their reader uses them: blocks to run, links to follow, names to look up."""

import re
from dataclasses import dataclass
from pathlib import Path

from mqbroker.embedded.commands import ROOT

FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, and its text."""

    language: str
    text: str


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    path: Path
    text: str

    @property
    def blocks(self) -> list[Block]:
        return [Block(found["language"], found["text"]) for found in FENCE.finditer(self.text)]

    def blocks_of(self, language: str) -> list[str]:
        """The texts of the blocks in one language."""
        return [block.text for block in self.blocks if block.language == language]

    @property
    def prose(self) -> str:
        """The page without its blocks."""
        return FENCE.sub("", self.text)

    @property
    def links(self) -> list[str]:
        """Where the page's links and pictures lead."""
        return [found["target"] for found in LINK.finditer(self.prose)]

    @property
    def names(self) -> list[str]:
        """What the prose sets in `code`."""
        return CODE.findall(self.prose)

    @property
    def anchors(self) -> set[str]:
        """What a link to the page can have after #, as GitHub makes it of the headings."""
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(self.prose)}

    def section(self, title: str) -> "Page":
        """The page's part under one heading of the second level."""
        parts = re.split(r"^## ", self.text, flags=re.MULTILINE)
        return Page(self.path, next(part for part in parts if part.startswith(f"{title}\n")))

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))


def page(path: str) -> Page:
    """A page by its path from the root."""
    return Page(ROOT / path, (ROOT / path).read_text(encoding="utf-8"))


def all_pages() -> list[Page]:
    """Every page of the project."""
    folders = (".", "client", "examples/shop", "docs", "docs/decisions", "tools/bench")
    return [page(str(path.relative_to(ROOT))) for folder in folders for path in sorted((ROOT / folder).glob("*.md"))]
