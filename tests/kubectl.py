"""The real kubectl, the reference for how Kubernetes reads a text.

A call costs as much as a thousand files, so each call reads many files.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

KUBECTL = Path(sys.executable).parent / "kubectl"
HEADER = "apiVersion: v1\nkind: Case\nmetadata: {name: case}\n"
_END_OF_CASE = "apiVersion: v1\nkind: EndOfCase\nmetadata: {name: end}\n"
GO = {"GOGC": "off", "GOMEMLIMIT": "512MiB", "GOMAXPROCS": "1"}
"""With these, a program in Go takes two thirds of the CPU time to start: it collects no garbage, with one thread."""
_REFUSED_FILE = re.compile(r"/(\d+)-case\.yaml\b")


class Reading(NamedTuple):
    """What kubectl made of one file: its objects, and whether it refused some part of it."""

    objects: list[Any]
    refused: bool


def run(arguments: Sequence[str], *, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """A call of kubectl that knows no cluster and no home."""
    with tempfile.TemporaryDirectory() as home:
        command = [str(KUBECTL), *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, check=False, env={"HOME": home, **GO})


def read(files: Sequence[bytes]) -> list[Reading]:
    """Every file read on its own, as `kubectl apply -f` would; each document needs the fields of HEADER."""
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate(files):
            Path(folder, f"{number:05}-case.yaml").write_bytes(content)
            Path(folder, f"{number:05}-end.yaml").write_text(_END_OF_CASE, "utf-8")
        done = run(["annotate", "--local", "--filename", folder, "read=yes", "--output", "json"])
    refused = {int(number) for number in _REFUSED_FILE.findall(done.stderr.decode())}
    cases = list(_cases(done.stdout.decode()))
    assert len(cases) == len(files), done.stderr.decode()[:2000]
    return [Reading(objects, number in refused) for number, objects in enumerate(cases)]


def _cases(output: str) -> Iterator[list[Any]]:
    decoder = json.JSONDecoder(parse_int=_number)
    objects: list[Any] = []
    at = 0
    while at < len(output):
        value, at = decoder.raw_decode(output, at)
        at += 1
        if value["kind"] == "EndOfCase":
            yield objects
            objects = []
        else:
            del value["metadata"]["annotations"]
            objects.append(value)


def _number(digits: str) -> int | float:
    """Kubernetes has no integers beyond 64 bits: what looks like one is a float in full."""
    number = int(digits)
    return number if -(2**63) <= number < 2**63 else float(digits)
