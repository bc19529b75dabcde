"""`manage.py doctor`: prints each fault with its cause and its remedy. Exit code 1 if a fault is urgent."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from console.monitoring import doctor
from console.monitoring.doctor import Finding


class Command(BaseCommand):
    """manage.py doctor"""

    help = __doc__
    # The command itself reports wrong migrations and settings.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds the option that chooses the output format."""
        parser.add_argument("--json", action="store_true", help="print a JSON object for each finding")

    def handle(self, *arguments: Any, **options: Any) -> None:
        """Prints the findings, and exits with 1 if one of them is urgent."""
        try:
            findings = doctor.examine()
        except doctor.FAILURES as problem:
            findings = list(doctor.unexamined(problem))
        for finding in findings:
            self.stdout.write(json.dumps(finding._asdict()) if options["json"] else text(finding))
        if not findings and not options["json"]:
            self.stdout.write("Nothing is out of order.")
        if any(finding.urgent for finding in findings):
            raise SystemExit(1)


def text(finding: Finding) -> str:
    """A finding as text of three lines."""
    mark = "!" if finding.urgent else "-"
    return f"{mark} {finding.what}\n    why:  {finding.why}\n    mend: {finding.mend}"
