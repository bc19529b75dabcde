"""The files in deploy/ that start the processes, held to the project: units of systemd, manifests, proxies."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from django.conf import settings
from mqbroker_client import Broker, Consumer, Delivery, Producer

from mqbroker.embedded import commands
from mqbroker.embedded.commands import ROOT
from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Wire
from tests.docs.proxies import Proxy, caddy, nginx
from tests.packages import skip_for_want_of

UNITS = {
    "prepare": commands.manage("prepare"),
    "web": commands.web(8000, "auto", reload=False),
    "worker": commands.worker(),
    "beat": commands.beat(Path("/tmp/beat-schedule")),
}
MANIFESTS = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))


def unit(name: str) -> Path:
    return ROOT / "deploy" / "systemd" / f"mqbroker-{name}.service"


def documents() -> list[dict[str, Any]]:
    """Every manifest."""
    return [one for path in MANIFESTS for one in yaml.safe_load_all(path.read_text())]


def containers() -> dict[str, dict[str, Any]]:
    """The containers of the manifests by their names."""
    pods = [one["spec"]["template"]["spec"] for one in documents() if "template" in one["spec"]]
    return {container["name"]: container for pod in pods for container in pod["containers"]}


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_starts_a_process_as_mq_up_does(name: str) -> None:
    [line] = [line for line in unit(name).read_text().splitlines() if line.startswith("ExecStart=")]

    assert shlex.split(line.removeprefix("ExecStart="))[1:] == UNITS[name][1:]


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze") or skip_for_want_of("systemd", "systemd-analyze")
    copies = []
    for name in UNITS:
        copies.append(tmp_path / unit(name).name)
        copies[-1].write_text(unit(name).read_text().replace("/srv/mqbroker/", f"{ROOT}/"))

    found = subprocess.run([analyze, "verify", *copies], capture_output=True, text=True, check=False)

    # Of the units alone: what else the machine has is not ours.
    assert [line for line in (found.stdout + found.stderr).splitlines() if "mqbroker" in line] == []


def test_kubernetes_takes_the_manifests() -> None:
    assert {one["kind"] for one in documents()} == {"Job", "Deployment", "Service", "PodDisruptionBudget"}
    for one in documents():
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("name", UNITS)
def test_a_container_starts_a_process_as_mq_up_does(name: str) -> None:
    expected = ["python", *UNITS[name][1:]]
    if name == "web":
        expected[expected.index("--host") + 1] = "0.0.0.0"

    assert containers()[name]["command"] == expected


def test_the_probes_of_the_manifests_are_answered(broker: RunningBroker) -> None:
    web = containers()["web"]

    for probe in ("livenessProbe", "readinessProbe"):
        assert broker.wire().get(web[probe]["httpGet"]["path"]).status == 200


def test_the_image_of_the_manifests_is_that_of_this_version_and_runs_as_its_user() -> None:
    image = (ROOT / "Dockerfile").read_text()
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["web"]["image"]

    for container in containers().values():
        assert container["image"] == compose
        assert f"--uid {container['securityContext']['runAsUser']} " in image


@pytest.fixture(params=[nginx, caddy], ids=["nginx", "caddy"])
def proxy(request: pytest.FixtureRequest, broker: RunningBroker, tmp_path: Path) -> Iterator[Proxy]:
    """The proxy of deploy/ before the broker, on a port of its own."""
    with request.param(tmp_path, free_port(), broker.url) as running:
        yield running


def test_a_message_of_the_largest_size_goes_through_the_proxy(proxy: Proxy, orders: str) -> None:
    body = b"\xff" * (4 * 1024 * 1024)
    with Broker(proxy.url, API_KEY, compression=None, timeout_seconds=60) as client:
        Producer(client, characters.name("shop")).send(orders, body)

        [delivery] = Consumer(client, characters.name("coupons")).receive(orders, wait_seconds=5)

    assert delivery.body == body


def test_a_long_poll_is_not_cut_by_the_proxy(proxy: Proxy, producer: Producer, orders: str) -> None:
    with Broker(proxy.url, API_KEY) as client:
        consumer = Consumer(client, characters.name("coupons"))
        assert consumer.receive(orders, wait_seconds=3) == []
        producer.send(orders, b"order 1")
        assert [one.body for one in consumer.receive(orders, wait_seconds=20)] == [b"order 1"]


def test_what_a_consumer_that_hangs_up_behind_the_proxy_would_have_received_comes_at_once(
    proxy: Proxy, producer: Producer, consumer: Consumer, wire: Wire, orders: str
) -> None:
    def comes() -> list[Delivery]:
        waiting = proxy.asks(f"/v1/consumer-groups/{consumer.group}/receive", {"topic": orders, "wait_seconds": 20})
        # Its first receive makes the group: it has come to the broker.
        eventually(lambda: wire.get(f"/v1/consumer-groups/{consumer.group}").status == 200)
        waiting.close()
        producer.send(orders, b"order 1")
        # Within less than the 60 s that a delivery has.
        return consumer.receive(orders, wait_seconds=10)

    # A message may be handed over before the hang-up has come to the broker, but not each time.
    assert any(comes() for _ in range(5))


def test_the_read_time_outs_are_above_the_longest_poll() -> None:
    for name, word in (("nginx.conf", "proxy_read_timeout"), ("Caddyfile", "response_header_timeout")):
        found = re.search(rf"{word} (\d+)s", (ROOT / "deploy" / "proxies" / name).read_text())
        assert found is not None
        assert int(found[1]) > 2 * settings.MAX_WAIT_SECONDS
