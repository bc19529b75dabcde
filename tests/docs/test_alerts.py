"""The alerts for Prometheus: each names metrics that there are, fires at its cause, and has its paragraph."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from console.monitoring.metrics import METRICS
from console.monitoring.scrape import CELL_UP
from mqbroker.embedded.commands import ROOT
from tests.packages import skip_for_want_of

RULES = ROOT / "deploy" / "alerts.yml"
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").partition("### Alerts")[2].partition("\n## ")[0]
# The cause of each alert: a series, what it is at first and how it grows in a minute, and the minutes until it fires.
CAUSES = {
    "MqbrokerUnreachable": ('up{job="mqbroker", instance="a"}', "0+0x30", 2),
    "MqbrokerCellAway": ('mqbroker_cell_up{cell="c1"}', "0+0x30", 2),
    "MqbrokerMoveStands": ('mqbroker_move_seconds{move="c1 into c3", step="promoting"}', "10+60x30", 1),
    "MqbrokerReleasesLate": ('mqbroker_delay_next_due_seconds{level="3"}', "-11-60x30", 2),
    "MqbrokerProducerSilent": (
        'mqbroker_oldest_half_message_seconds{producer_group="shop", state="PREPARED"}',
        "601+60x30",
        6,
    ),
    "MqbrokerDiscarded": ('mqbroker_half_messages{producer_group="shop", state="DISCARDED"}', "1+0x30", 1),
    "MqbrokerEndpointNotCalled": ('mqbroker_endpoints{producer_group="shop", state="open"}', "1+0x30", 6),
    "MqbrokerSubscriptionNotCalled": ('mqbroker_subscriptions{state="disabled"}', "1+0x30", 6),
    "MqbrokerConsumerBehind": (
        'mqbroker_oldest_unacked_seconds{consumer_group="mail", topic="orders"}',
        "601+60x30",
        6,
    ),
    "MqbrokerConsumerFails": ('mqbroker_oldest_retrying_seconds{group="mail", topic="orders"}', "61+60x30", 2),
    "MqbrokerDeadLetters": ('mqbroker_dead_letters{consumer_group="mail"}', "1+0x30", 1),
    "MqbrokerOutboxFails": ('mqbroker_outbox_fails{outbox="shop"}', "1+0x30", 3),
    "MqbrokerOutboxStuck": ('mqbroker_outbox_oldest_seconds{outbox="shop"}', "121+60x30", 3),
    "MqbrokerOutboxRefuses": ('mqbroker_outbox_rows_refused_total{outbox="shop"}', "0+1x30", 2),
    "MqbrokerSchedulesFail": ("mqbroker_schedules_failing", "1+0x30", 6),
    "MqbrokerKeyRefused": ('mqbroker_key_refused_total{api_key="shop"}', "0+120x30", 16),
    "MqbrokerExportBehind": ('mqbroker_export_lag_seconds{folder="/exports"}', "93601+60x30", 1),
    "MqbrokerNightlyExportFailed": ('mqbroker_nightly_exports_total{outcome="failed"}', "0+1x30", 2),
    "MqbrokerDroppedUnexported": ("mqbroker_segments_dropped_unexported_total", "0+1x30", 2),
}
# What a broker without a finding has.
HEALTHY = {
    'up{job="mqbroker", instance="a"}': "1+0x30",
    'mqbroker_cell_up{cell="c1"}': "1+0x30",
    'mqbroker_move_seconds{move="c1 into c3", step="divided"}': "5",
    'mqbroker_delay_next_due_seconds{level="3"}': "5+0x30",
    'mqbroker_oldest_half_message_seconds{producer_group="shop", state="PREPARED"}': "5+0x30",
    'mqbroker_oldest_half_message_seconds{producer_group="shop", state="DISCARDED"}': "9000+60x30",
    'mqbroker_half_messages{producer_group="shop", state="PREPARED"}': "100+0x30",
    'mqbroker_endpoints{producer_group="shop", state="healthy"}': "1+0x30",
    'mqbroker_oldest_unacked_seconds{consumer_group="mail", topic="orders"}': "60+0x30",
    'mqbroker_oldest_retrying_seconds{group="mail", topic="orders"}': "10+0x30",
    'mqbroker_dead_letters{consumer_group="mail"}': "0+0x30",
    'mqbroker_outbox_fails{outbox="shop"}': "0+0x30",
    'mqbroker_outbox_oldest_seconds{outbox="shop"}': "3+0x30",
    'mqbroker_outbox_looked_seconds{outbox="shop"}': "6+0x30",
    'mqbroker_outbox_rows_refused_total{outbox="shop"}': "7+0x30",
    "mqbroker_schedules_failing": "0+0x30",
    'mqbroker_key_refused_total{api_key="shop"}': "7+0x30",
    'mqbroker_export_lag_seconds{folder="/exports"}': "86400+0x30",
    'mqbroker_nightly_exports_total{outcome="succeeded"}': "3+1x30",
}


def rules() -> dict[str, dict[str, Any]]:
    """The rules, by their names."""
    [group] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def test_each_alert_names_metrics_that_there_are_and_has_a_paragraph_and_a_cause() -> None:
    known = {metric.name for metric in (*METRICS, CELL_UP)}

    for name, rule in rules().items():
        named = set(re.findall(r"\bmqbroker_\w+", rule["expr"]))
        assert named <= known
        assert named or rule["expr"].startswith("up{")
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert f"| `{name}` |" in PAGE
    assert CAUSES.keys() == rules().keys()


def test_each_alert_fires_at_its_cause_and_none_on_a_healthy_broker(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        skip_for_want_of("prometheus", "promtool")
    firing = 'count(ALERTS{alertstate="firing"})'
    tests = [case_of(HEALTHY, 30, firing, [])]
    for name, (series, values, minutes) in CAUSES.items():
        fired = f'count(ALERTS{{alertname="{name}", alertstate="firing"}})'
        tests.append(case_of({series: values}, minutes, fired, [{"labels": "{}", "value": 1}]))
    (tmp_path / "tests.yml").write_text(yaml.safe_dump({"rule_files": [str(RULES)], "tests": tests}))

    checked = subprocess.run([promtool, "check", "rules", RULES], capture_output=True, text=True)
    tested = subprocess.run([promtool, "test", "rules", tmp_path / "tests.yml"], capture_output=True, text=True)

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert tested.returncode == 0, tested.stdout + tested.stderr


def case_of(series: dict[str, str], minutes: int, expression: str, samples: list[dict[str, object]]) -> dict[str, Any]:
    """A test of promtool: what an expression gives after some minutes of these series."""
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": expression, "eval_time": f"{minutes}m", "exp_samples": samples}],
    }
