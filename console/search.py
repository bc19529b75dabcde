"""The texts that the search box understands: an id, a key, or words such as `topic:orders state:pending older:10m`."""

import re
from dataclasses import dataclass, field
from uuid import UUID

from store.naming import namespaces

STATES = {
    "pending": "pending",
    "prepared": "pending",
    "discarded": "discarded",
    "committed": "committed",
    "rolled_back": "rolled_back",
}
SHOWN_STATES = tuple(dict.fromkeys(STATES.values()))
AGES = ("1m", "10m", "1h", "6h", "1d")
WORDS = {
    "key": "messages with this key",
    "topic": "a topic, or only what lies in it",
    "group": "a producer group, a consumer group, or only its transactions",
    "namespace": "what of all this lies in a namespace; topics and groups have their names in it then",
    "state": "transactions that are pending, discarded, committed or rolled_back",
    "older": "transactions older than 30s, 10m, 2h or 1d",
}
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
AGE = re.compile(r"(\d{1,9})([smhd])")


@dataclass
class Typed:
    """The typed words; `problems` has a sentence about each word that was not understood."""

    text: str
    id: UUID | None = None
    bare: str = ""
    key: str = ""
    topic: str = ""
    group: str = ""
    namespace: str = ""
    state: str = ""
    older_than_seconds: int = 0
    problems: list[str] = field(default_factory=list)

    def whole(self, name: str) -> str:
        """The whole name of a typed topic or group."""
        return namespaces.wrapped(self.namespace, name) if self.namespace else name

    @property
    def lists(self) -> bool:
        """Whether the text asks for a list of transactions."""
        return bool(self.state or self.older_than_seconds or (self.topic and self.group))


def parse(text: str) -> Typed:
    """Parses a text. When a word is given twice, the later value counts."""
    typed = Typed(text=" ".join(text.split()))
    for word in typed.text.split():
        name, colon, value = word.partition(":")
        if not colon:
            _take_bare(typed, word)
        elif name.lower() not in WORDS:
            typed.problems.append(f"“{name}:” is no word of the search.")
        elif not value:
            typed.problems.append(f"“{name}:” needs a value right behind the colon.")
        else:
            _take_word(typed, name.lower(), value)
    return typed


def _take_bare(typed: Typed, word: str) -> None:
    try:
        typed.id = UUID(word)
    except ValueError:
        if typed.bare:
            typed.problems.append(f"“{typed.bare}” and “{word}”: give one id or one key, the rest as words.")
        typed.bare = word


def _take_word(typed: Typed, name: str, value: str) -> None:
    if name == "state":
        typed.state = STATES.get(value.lower(), "")
        if not typed.state:
            typed.problems.append(f"state “{value}” is none: write pending, discarded, committed or rolled_back.")
    elif name == "older":
        found = AGE.fullmatch(value.lower())
        if found is None:
            typed.problems.append(f"older “{value}” is no age: write 30s, 10m, 2h or 1d.")
        else:
            typed.older_than_seconds = int(found[1]) * SECONDS[found[2]]
    else:
        setattr(typed, name, value)
