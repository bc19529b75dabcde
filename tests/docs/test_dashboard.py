"""The dashboard for Grafana: each of its expressions is one of Prometheus, over metrics and labels that there are."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import yaml

from console.monitoring.metrics import METRICS
from console.monitoring.requests import SECONDS
from console.monitoring.scrape import CELL_UP
from mqbroker.embedded.commands import ROOT
from tests.packages import skip_for_want_of

PANELS = json.loads((ROOT / "deploy" / "grafana.json").read_text(encoding="utf-8"))["panels"]
TARGETS = [(panel["title"], target) for panel in PANELS for target in panel.get("targets", ())]
LABELS = {metric.name: {*metric.labels, "cell"} for metric in (*METRICS, CELL_UP)}
LABELS[f"{SECONDS.name}_bucket"] = {*SECONDS.labels, "le"}


def test_each_expression_names_metrics_and_labels_that_there_are() -> None:
    for title, target in TARGETS:
        [name] = re.findall(r"\bmqbroker_\w+", target["expr"])
        grouped = {
            label.strip() for found in re.findall(r"by \(([^)]*)\)", target["expr"]) for label in found.split(",")
        }
        shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))

        assert name in LABELS, title
        # The bounds of a histogram are gone behind its quantile.
        assert shown == grouped - {"le"}
        assert grouped <= LABELS[name], title


def test_what_an_operator_is_woken_by_is_on_the_dashboard() -> None:
    alerts = (ROOT / "deploy" / "alerts.yml").read_text(encoding="utf-8")
    shown = {name for _, target in TARGETS for name in re.findall(r"\bmqbroker_\w+", target["expr"])}

    assert set(re.findall(r"\bmqbroker_\w+", alerts)) <= shown


def test_prometheus_can_read_each_expression(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        skip_for_want_of("prometheus", "promtool")
    rules = [
        {"record": f"panel:{number}", "expr": target["expr"].replace("$__rate_interval", "1m")}
        for number, (_, target) in enumerate(TARGETS)
    ]
    (tmp_path / "panels.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))

    checked = subprocess.run([promtool, "check", "rules", tmp_path / "panels.yml"], capture_output=True, text=True)

    assert checked.returncode == 0, checked.stdout + checked.stderr
