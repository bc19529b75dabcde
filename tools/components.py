"""The components of the broker as a CycloneDX document, by its lock."""

import re
import tomllib
import uuid
from collections.abc import Iterator

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from mqbroker.embedded.commands import ROOT

# A locked package: its name and version, a marker where it is for some systems only, and its hashes.
PACKAGE = re.compile(
    r"^([A-Za-z0-9._-]+)(?:\[[^]]+\])?==([^\s;\\]+)[^\n]*\n((?:\s+--hash=sha256:\w+[^\n]*\n?)+)", re.MULTILINE
)
HASH = re.compile(r"--hash=sha256:(\w+)")


def document(lock: str) -> str:
    """The document of a lock. Two documents of one lock differ only in their time; they name no machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    broker = Component(name=name, version=version, type=ComponentType.APPLICATION, bom_ref=f"{name}@{version}")
    bom = Bom(components=components(lock), serial_number=uuid.uuid5(uuid.NAMESPACE_OID, lock))
    bom.metadata.component = broker
    bom.register_dependency(broker, bom.components)
    return JsonV1Dot6(bom).output_as_string(indent=1)


def components(lock: str) -> Iterator[Component]:
    """Each package of the lock, once, with the hashes of all its files; a package can have a file for each system."""
    for name, version, hashes in dict.fromkeys(PACKAGE.findall(lock)):
        yield Component(
            name=name,
            version=version,
            type=ComponentType.LIBRARY,
            bom_ref=f"{name}@{version}",
            purl=PackageURL("pypi", name=name, version=version),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=found) for found in HASH.findall(hashes)],
        )
