"""Checks all models and their twins, and prints states and counterexamples: `python -m tests.simulated.models`."""

import time
from collections.abc import Mapping
from typing import Any

from tests.simulated.models import (
    deliveries,
    draining,
    firing,
    forwarding,
    one_decision,
    segments,
    split,
    stalled_writer,
)
from tests.simulated.models.checker import Model, check

HOLDING: Mapping[str, Model[Any]] = {
    "one decision": one_decision.MODEL,
    "split of a cell": split.MODEL,
    "split of a cell with two writers": split.TWO_WRITERS,
    "deliveries": deliveries.MODEL,
    "deliveries of an ordered group": deliveries.ORDERED,
    "segments": segments.MODEL,
    "segments with a delay level": segments.LEVELS,
    "firing of a schedule": firing.MODEL,
    "drain of an outbox": draining.MODEL,
    "ack and send": forwarding.MODEL,
    "stalled writer": stalled_writer.MODEL,
}
TWINS: Mapping[str, Model[Any]] = {
    **one_decision.TWINS,
    **split.TWINS,
    **deliveries.TWINS,
    **segments.TWINS,
    **firing.TWINS,
    **draining.TWINS,
    **forwarding.TWINS,
    **stalled_writer.TWINS,
}


def main() -> int:
    """Returns 1 where a model is refuted, or a twin holds."""
    began = time.process_time()
    wrong = 0
    for models, is_to_hold in ((HOLDING, True), (TWINS, False)):
        for name, model in models.items():
            checked = check(model)
            print(f"{name}: {checked}")
            wrong += (checked.counterexample is None) != is_to_hold
    print(f"{len(HOLDING)} models, {len(TWINS)} twins, {wrong} wrong, {time.process_time() - began:.1f} s of CPU")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
