"""A fresh clone has the packages that the broker starts with, and none of its tools': `--help` needs no others."""

import subprocess
import sys

from mqbroker.embedded.cli.__main__ import COMMANDS, TOOLS
from mqbroker.embedded.commands import ROOT
from tests.cli.test_locks import pins

# Runs each command's --help where the modules of some packages cannot be found.
HELPS = """
import contextlib, importlib.metadata, io, re, sys
missing, commands = set(sys.argv[1].split()), sys.argv[2].split()
named = lambda package: re.sub("[-_.]+", "-", package).lower()
of = importlib.metadata.packages_distributions()
hidden = {module for module, packages in of.items() if all(named(one) in missing for one in packages)}
sys.modules.update(dict.fromkeys(hidden))
from mqbroker.embedded.cli.__main__ import main
for command in commands:
    try:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            main([command, "--help"])
    except SystemExit as end:
        problem = end.code and f"ended with {end.code}"
    except BaseException as failure:
        problem = f"{type(failure).__name__}: {failure}"
    else:
        problem = None
    if problem or "usage:" not in said.getvalue():
        print(command, problem)
"""


def test_the_help_of_each_command_needs_no_package_but_the_brokers() -> None:
    own = {name for name, _ in pins("requirements.lock")}
    others = {name for lock in ("dev", "analytics") for name, _ in pins(f"requirements-{lock}.lock")} - own
    # `./mq manage cells` has its help from Django, behind a database; `./mq mqb` becomes another program.
    commands = [name for name in (*COMMANDS, *TOOLS) if name not in ("cells", "doctor", "mqb")]

    done = subprocess.run(
        [sys.executable, "-c", HELPS, " ".join(others), " ".join(commands)], cwd=ROOT, capture_output=True, text=True
    )

    assert (done.stdout, done.returncode) == ("", 0), done.stderr
