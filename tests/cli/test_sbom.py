"""`./mq sbom` lists what the lock holds."""

import json
import re
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from mqbroker.embedded.commands import ROOT
from tests.cli.conftest import Run
from tests.cli.test_locks import pins
from tools.components import LOCKS

PLACE = re.compile(r"https?://(?!cyclonedx\.org/|cyclonedx\.github\.io/)|/home/|/tmp/|/work/|localhost")


def test_the_document_names_every_locked_package_and_no_place(run_python: Run, tmp_path: Path) -> None:
    file = tmp_path / "sbom.json"

    process = run_python("-m", "mqbroker.embedded.cli", "sbom", str(file))
    _, said = process.communicate(timeout=120)

    assert process.returncode == 0, said
    text = file.read_text()
    found = json.loads(text)
    assert (found["bomFormat"], found["metadata"]["component"]["name"]) == ("CycloneDX", "mqbroker")
    locked = {pin for lock in LOCKS for pin in pins(lock)}
    assert {(one["name"], one["version"]) for one in found["components"]} == locked
    assert all(one["hashes"] for one in found["components"])
    hashes = {found["content"] for one in found["components"] for found in one["hashes"]}
    assert hashes == set(re.findall(r"--hash=sha256:(\w+)", "".join((ROOT / lock).read_text() for lock in LOCKS)))
    assert PLACE.search(text) is None
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
