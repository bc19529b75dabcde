"""Names at a target that contain fields of a message: `orders.{tags}`."""

from string import Formatter

from mqbroker_client.contrib.relay.targets import TargetRefused
from mqbroker_client.core.messages import StoredMessage

FIELDS = ("topic", "tags", "sharding_key", "message_id")


class Pattern:
    """A text in which `{topic}`, `{tags}`, `{sharding_key}` and `{message_id}` stand for fields of a message.

    `kept`: prefixes that are reserved at the target. A name may begin with a reserved prefix only if the pattern itself
    begins with this prefix.
    """

    def __init__(self, text: str, *, kept: tuple[str, ...] = ()) -> None:
        try:
            named = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
        except ValueError as problem:
            raise ValueError(f"{text!r} is no pattern ({problem}): double a brace that stands for itself") from problem
        if wrong := [name for name in named if name not in FIELDS]:
            raise ValueError(f"{text!r} names {{{wrong[0]}}}: a pattern may name {', '.join(FIELDS)}")
        self._text = text
        self._kept = tuple(start for start in kept if not text.startswith(start))

    def of(self, message: StoredMessage) -> str:
        """The name for a message; a missing field is empty. Raises TargetRefused for a reserved name."""
        name = self._text.format_map({name: getattr(message, name) or "" for name in FIELDS})
        if name.startswith(self._kept):
            raise TargetRefused(f"{name[:80]!r} is a name that the target keeps for itself: no message may choose it")
        return name
