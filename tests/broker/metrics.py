"""What a scrape of /metrics answers."""

from collections.abc import Mapping
from urllib.request import Request, urlopen

from prometheus_client.parser import text_string_to_metric_families

from tests.broker.running import API_KEY

Series = Mapping[tuple[str, ...], float]


def read(url: str) -> Series:
    """The series by name and the values of their labels, with the cells' added up: of most only one has it."""
    request = Request(f"{url}/metrics", headers={"Authorization": f"Bearer {API_KEY}"})
    with urlopen(request, timeout=120) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        found: dict[tuple[str, ...], float] = {}
        for sample in (sample for family in families for sample in family.samples):
            named = sample.name, *(value for label, value in sample.labels.items() if label != "cell")
            found[named] = found.get(named, 0) + sample.value
    return found
