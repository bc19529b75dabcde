"""The components of the broker as a CycloneDX document, by its lock.

The document is written here, not by a library: `./mq build` installs the builder of wheels alone.
"""

import json
import re
import tomllib
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from mqbroker.embedded.commands import ROOT

# A locked package: its name and version, a marker where it is for some systems only, and its hashes.
PACKAGE = re.compile(
    r"^([A-Za-z0-9._-]+)(?:\[[^]]+\])?==([^\s;\\]+)[^\n]*\n((?:\s+--hash=sha256:\w+[^\n]*\n?)+)", re.MULTILINE
)
HASH = re.compile(r"--hash=sha256:(\w+)")
# The locks of a running broker: the runtime with private servers, and with the protocol of RocketMQ.
LOCKS = ("requirements-local.lock", "requirements-rocketmq.lock")
SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"


def of_checkout(made_at: int | None) -> str:
    """The document of this checkout; `made_at` is its time in seconds since 1970, None leaves the time out."""
    return document("".join((ROOT / lock).read_text() for lock in LOCKS), made_at)


def document(lock: str, made_at: int | None) -> str:
    """The document of a lock. It names no machine: the same lock and time give the same bytes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    broker = f"{project['name']}@{project['version']}"
    found = list(components(lock))
    time = {} if made_at is None else {"timestamp": datetime.fromtimestamp(made_at, UTC).isoformat()}
    product = {"type": "application", "bom-ref": broker, "name": project["name"], "version": project["version"]}
    bom = {
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_OID, lock).urn,
        "version": 1,
        "metadata": {**time, "component": product},
        "components": found,
        "dependencies": [{"ref": broker, "dependsOn": [one["bom-ref"] for one in found]}],
    }
    return json.dumps(bom, indent=1) + "\n"


def components(lock: str) -> Iterator[dict[str, Any]]:
    """Each package of the lock, once, with the hashes of all its files; a package can have a file for each system."""
    for name, version, hashes in dict.fromkeys(PACKAGE.findall(lock)):
        yield {
            "type": "library",
            "bom-ref": f"{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{quote(name.lower())}@{quote(version)}",
            "hashes": [{"alg": "SHA-256", "content": found} for found in HASH.findall(hashes)],
        }
