"""Texts that people write for people: remarks and reasons, kept as they can be shown on a page and in a terminal."""

import re

# Without tab and line feed, which belong to a text. PostgreSQL takes no NUL.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def legible(text: str) -> str:
    """The text with each control character replaced: an escape sequence would act on the terminal that shows it."""
    return CONTROL.sub(REPLACEMENT, text.replace("\r\n", "\n"))


def is_blank(text: str) -> bool:
    """Whether there is nothing to read in a text: blanks and control characters only."""
    return not CONTROL.sub("", text).strip()
