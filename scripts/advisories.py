"""Asks a public database whether an installed package has a known vulnerability (pip-audit).

    python scripts/advisories.py

Exit 1 when one has. Where no database answers it says NOT CHECKED, loudly, and exits 0: a build without a network
proves nothing about advisories and must not say that it did. pip-audit itself reports "No known vulnerabilities" when
its database knew none of the packages; here only packages that were really looked up count.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 90  # seconds
COMMAND = (str(Path(sys.executable).with_name("pip-audit")), "--format=json", "--progress-spinner=off", "--timeout=5")
OURS = {"understudy"}


@dataclass(frozen=True)
class Finding:
    """What the database said: packages looked up, packages it did not know, and advisories in words."""

    checked: int
    unknown: tuple[str, ...]
    advisories: tuple[str, ...]


def main(command: Sequence[str] = COMMAND) -> int:
    """Asks, prints the answer and returns the exit code."""
    finding = read(_answer(command))
    if finding is None or not finding.checked:
        print("Advisories: NOT CHECKED. No advisory database could be reached; run `make check` where one can.")
        return 0
    for advisory in finding.advisories:
        print(advisory)
    if finding.unknown:
        print(f"Advisories: not in the database, so not checked: {', '.join(finding.unknown)}.")
    print(f"Advisories: {finding.checked} packages checked, {len(finding.advisories)} advisories.")
    return 1 if finding.advisories else 0


def read(text: str) -> Finding | None:
    """What pip-audit's answer says; None if it is no answer at all."""
    try:
        packages: list[Mapping[str, Any]] = json.loads(text)["dependencies"]
    except (json.JSONDecodeError, KeyError, TypeError):
        return None
    known = [package for package in packages if "skip_reason" not in package]
    unknown = {package["name"] for package in packages if "skip_reason" in package} - OURS
    advisories = [
        f"{package['name']} {package['version']} has a known vulnerability: {advisory['id']} "
        f"(fixed in {', '.join(advisory['fix_versions']) or 'no version yet'})."
        for package in known
        for advisory in package["vulns"]
    ]
    return Finding(len(known), tuple(sorted(unknown)), tuple(advisories))


def _answer(command: Sequence[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE).stdout
    except subprocess.TimeoutExpired:
        return ""


if __name__ == "__main__":
    raise SystemExit(main())
