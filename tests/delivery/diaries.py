"""What the consumers of a group lived through, and whether every message was done, once and in time."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# A message whose invisible time is over is offered again, or given up, within this.
LATE_SECONDS = 5.0


@dataclass(frozen=True)
class Step:
    """A step that a consumer wrote down: before a request `acking`, `nacking`; after it `took`, `acked`, `nacked`."""

    at: float
    verb: str
    message: str
    attempt: int

    @classmethod
    def read(cls, line: str) -> "Step":
        at, verb, message, attempt = line.split()
        return cls(float(at), verb, message, int(attempt))

    def __str__(self) -> str:
        return f"{self.at:.6f} {self.verb} {self.message} {self.attempt}\n"


@dataclass(frozen=True)
class Diaries:
    """All that was written down, in order of time; with `dead`, when each dead letter of the group came to be."""

    steps: list[Step]
    dead: Mapping[str, list[float]]

    @property
    def seen(self) -> dict[str, list[Step]]:
        """The steps of each message."""
        found: dict[str, list[Step]] = defaultdict(list)
        for step in sorted(self.steps, key=lambda step: step.at):
            found[step.message].append(step)
        return found

    def done(self) -> set[str]:
        """Messages that are acked for certain, or dead letters."""
        return {step.message for step in self.steps if step.verb == "acked"} | self.dead.keys()

    def perhaps_done(self) -> set[str]:
        """Messages whose last step is an ack without an answer: its consumer was killed before the answer came."""
        return {message for message, steps in self.seen.items() if steps[-1].verb == "acking"} - self.done()

    def flaws(self, sent: Iterable[str], invisible_seconds: float) -> list[str]:
        """What breaks the promise. A consumer that died before its answer came is believed to have been heard."""
        seen, done, perhaps = self.seen, self.done(), self.perhaps_done()
        told = [f"{message} was skipped" for message in sent if message not in seen and message not in done]
        told += [f"{message} was never sent" for message in seen.keys() - set(sent)]
        told += [f"{message} was left undone" for message in seen if message not in done | perhaps]
        for message, steps in seen.items():
            told += [f"{message} {flaw}" for flaw in self._flaws_of(message, steps, invisible_seconds)]
        return told

    def _flaws_of(self, message: str, steps: list[Step], invisible_seconds: float) -> Iterable[str]:
        acked = [step.at for step in steps if step.verb == "acked"]
        ends = len(acked) + len(self.dead.get(message, ()))
        if ends > 1:
            yield f"ended {ends} times"
        taken = [step for step in steps if step.verb == "took"]
        if acked and taken[-1].at > acked[0]:
            yield "came again after its ack"
        attempts = [step.attempt for step in taken]
        if attempts != sorted(set(attempts)):
            yield f"was delivered as attempts {attempts}"
        yield from self._held(message, taken, invisible_seconds + LATE_SECONDS)

    def _held(self, message: str, taken: list[Step], most_seconds: float) -> Iterable[str]:
        """Deliveries after which a message was away for too long. An attempt that no diary has took its time, too."""
        following = [(step.at, step.attempt) for step in taken[1:]]
        following += [(at, taken[-1].attempt + 1) for at in self.dead.get(message, ())]
        for step, (at, attempt) in zip(taken, following, strict=False):
            if at - step.at > most_seconds * max(attempt - step.attempt, 1):
                yield f"was held for {at - step.at:.1f} s by attempt {step.attempt}"
