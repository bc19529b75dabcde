"""Remarks and reasons that users write: texts that are safe to show on a page and in a terminal."""

import re

# Control characters except tab and line feed, which belong to texts. PostgreSQL does not accept NUL.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def legible(text: str) -> str:
    """The text with control characters replaced, because a terminal would execute an escape sequence."""
    return CONTROL.sub(REPLACEMENT, text.replace("\r\n", "\n"))


def counted(number: int, noun: str) -> str:
    """A number with its noun in the singular or the plural: `1 check`, `1,000 checks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def is_blank(text: str) -> bool:
    """Whether a text has only blanks and control characters."""
    return not CONTROL.sub("", text).strip()
