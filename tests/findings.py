"""Findings of a JSON report that a test is about."""

from __future__ import annotations

import re
from typing import Any


def without_infos(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out infos, so that a new rule of that severity fails no test about other rules."""
    return [finding for finding in findings if finding["severity"] != "info"]


def text_without_infos(report: str) -> str:
    """Leave infos out of a text report, with the lines that belong to them, and out of its summary line."""
    kept: list[str] = []
    in_info = False
    for line in report.splitlines(keepends=True):
        if re.match(r"\S+:\d+:\d+: \w+: |\d+ objects? ", line):
            in_info = ": info: " in line
        if not in_info:
            kept.append(re.sub(r"(: |, )\d+ infos?\b", "", line) if re.match(r"\d+ objects? ", line) else line)
    return "".join(kept)
