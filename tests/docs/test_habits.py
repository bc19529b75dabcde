"""The files about the project itself agree with it: hooks, changes, license, the worked example, the drawings."""

import re
import shlex
import subprocess
import tomllib
from collections import Counter

import yaml
from django.apps import apps

from mqbroker.embedded.commands import ROOT, python
from tests.docs.pages import page
from tests.house import message_fields
from tests.house.sources import labels
from tools.check import STEPS

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HOOKS = ROOT / ".pre-commit-config.yaml"
# Of keepachangelog.com, in this order.
CHANGE_GROUPS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
MOST_WORDS_OF_A_CHANGE = 25


def test_the_hooks_are_understood_by_pre_commit() -> None:
    done = subprocess.run(python("-m", "pre_commit", "validate-config", str(HOOKS)), capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_hooks_run_what_mq_check_runs() -> None:
    [repository] = yaml.safe_load(HOOKS.read_text())["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        # A hook is handed the changed files, and repairs their format instead of complaining.
        step = [word for word in STEPS[hook["id"]][1:] if word not in (".", "--check")]
        words = [word for word in shlex.split(hook["entry"])[1:] if word not in (".", "--force-exclude")]
        assert (words, hook["entry"].split()[0], hook["language"]) == (step, ".venv/bin/python", "system")


def test_changes_are_unreleased_until_their_version_has_a_tag() -> None:
    names = re.findall(r"^## ([^\n,]+)", page("CHANGELOG.md").text, re.MULTILINE)
    versions = [name for name in names if name != "Unreleased"]

    tags = subprocess.run(["git", "-C", str(ROOT), "tag"], capture_output=True, text=True).stdout.split()
    assert {f"v{version}" for version in versions} - set(tags) == set()
    assert versions[:1] in ([], [PROJECT["version"]])
    assert "Unreleased" not in names[1:]


def test_changes_are_grouped_in_the_usual_way() -> None:
    for section in page("CHANGELOG.md").text.split("\n## ")[1:]:
        groups = re.findall(r"^### (.+)", section, re.MULTILINE)

        assert groups == [group for group in CHANGE_GROUPS if group in groups]


def test_each_change_is_said_once_and_briefly_and_names_its_symbol_first() -> None:
    changes = re.findall(r"^- ((?:.+\n?)(?:^  .+\n?)*)", page("CHANGELOG.md").text, re.MULTILINE)

    assert [change for change, count in Counter(changes).items() if count > 1] == []
    assert [change for change in changes if words(change) > MOST_WORDS_OF_A_CHANGE] == []
    assert [change for change in changes if not re.match(r"`|\*\*|[1-5]\d\d\b", change)] == []


def words(change: str) -> int:
    """The number of words of a change, without the targets of its links."""
    return len(re.sub(r"\]\([^)]*\)", "]", change).split())


def test_the_license_is_the_one_that_the_project_names() -> None:
    text = (ROOT / "LICENSE").read_text()

    assert PROJECT["license"] == "Apache-2.0"
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_worked_example_follows_a_field_that_goes_all_the_way() -> None:
    section = page("CONTRIBUTING.md").section("The commonest change: a new field of a message")
    places = {name for name in section.names if name.endswith((".py", ".sql")) and not name.startswith("tests/")}

    assert {str(place) for place in message_fields.places()} - places == set()
    assert {place for place in places if "sharding_key" not in (ROOT / place).read_text()} == set()
    functions = {name for name in section.names if re.fullmatch(r"[a-z_]+|[A-Z][a-zA-Z]+|PACKED|Record\.of", name)}
    text = "".join((ROOT / place).read_text() for place in places)
    assert {name for name in functions if name.split(".")[-1] not in text} <= {"content_type"}


def test_the_rooms_are_drawn_as_the_linter_holds_them() -> None:
    [drawn] = page("docs/architecture.md").section("The rooms").blocks_of("text")

    rooms = [re.split(r" {2,}", line)[0] for line in drawn.splitlines()]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert rooms == contracts[0]["layers"]


def test_the_tables_are_drawn_as_they_are() -> None:
    drawing = page("docs/architecture.md").blocks_of("text")[0]
    ours = {model._meta.db_table: model for model in apps.get_models() if model._meta.app_label in labels().values()}

    def drawn(label: str) -> set[str]:
        [line] = [line for line in drawing.splitlines() if line.startswith(f"│  {label} ")]
        return set(re.findall(r"[a-z_]+", line.partition(label)[2]))

    by_segment, others = drawn("by segment, append-only"), drawn("small and hot") | drawn("configuration")
    kept = {name for name, model in ours.items() if "segment_id" in {field.name for field in model._meta.fields}}
    assert by_segment <= kept
    assert others <= ours.keys() - kept
