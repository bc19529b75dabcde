"""docs/faststream.md: its program and its test do what the page says."""

import subprocess
import sys
from pathlib import Path

from mqbroker.embedded.commands import ROOT
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.docs.pages import page
from tests.docs.stories import BARE

CLIENT = str(ROOT / "client")
PROGRAM, TEST = page("docs/faststream.md").blocks_of("python")


def test_the_program_of_the_page_prints_its_coupon(broker: RunningBroker, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    own = {"MQBROKER_URL": broker.url, "MQBROKER_API_KEY": API_KEY, "PYTHONPATH": CLIENT}
    log = tmp_path / "log"
    with log.open("wb") as output:
        shop = subprocess.Popen([sys.executable, "shop.py"], cwd=tmp_path, env=BARE | own, stdout=output, stderr=output)
        try:
            eventually(lambda: "coupon for tea" in log.read_text(), within_seconds=60)
        finally:
            shop.terminate()
    assert shop.wait(120) == 0, log.read_text()


def test_the_test_of_the_page_passes(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    [command] = [name for name in page("docs/faststream.md").names if name.startswith("pytest ")]
    (tmp_path / "test_shop.py").write_text(TEST)
    own = {"MQBROKER_URL": "http://127.0.0.1:1", "MQBROKER_API_KEY": "mq_none", "PYTHONPATH": CLIENT}

    words = [sys.executable, "-m", *command.split(), "--rootdir", ".", "-p", "no:cacheprovider", "-p", "no:django"]
    done = subprocess.run(words, cwd=tmp_path, env=BARE | own, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
