"""Shards: all of them together find what one run finds, byte for byte, and nothing is green because it was skipped."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobgenprocess import run_jobgen_text
from jsonschema import Draft202012Validator
from sampling import laws

import jobgen
from jobgen.model.shard import InvalidShardError, Shard, parse_shard
from jobgen.reports.shard_part import pack, unpack

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from faults import add_data_fault  # noqa: E402 -- in the folder of benchmarks
from varied_jobs import make_manifest  # noqa: E402 -- as above

SETTINGS = """\
exceptions:
  - {rule: mutable-image-tag, paths: [jobs/a], reason: known, owner: "@example/a", expires: "2099-01-31"}
  - {rule: privileged-container, paths: [jobs/b], reason: no longer, owner: "@example/b", expires: "2099-01-31"}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: prod}
spec:
  cluster: {platform: kubeflow, gpus: 20}
  defaults:
    - merge:
        # jobgen: ignore[host-path] -- nothing here
        image: registry.example.com/base:latest # jobgen: ignore[mutable-image-tag] -- all jobs use it
  patches:
    - match: {name: "job-[0-4]"}
      merge: {resources: {memory: 1Gi}}
    - match: {name: nobody}
      merge: {resources: {memory: 2Gi}}
"""
SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: ml}}
spec:
  framework: pytorch
  resources: {{gpu: {gpu}}}
  roles: {{master: {{}}, worker: {{replicas: 2}}}}
"""
EXTRAS = (
    SPEC.format(name="twin", gpu=1),
    SPEC.format(name="twin", gpu=2).replace("metadata", "# jobgen: ignore[duplicate-identity] -- on purpose\nmetadata"),
    SPEC.format(name="deleting", gpu=1) + "  env: {GONE: null}\n",
    SPEC.format(name="broken", gpu=1) + "  replcias: 3\n",
    "kind: [\n",
    SPEC.format(name="secret", gpu=1) + "  env: {AWS_SECRET_ACCESS_KEY: wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY}\n",
    SPEC.format(name="template", gpu=1) + "  command: [<command>, ...]\n",
    SPEC.format(name="expiring", gpu=1) + "  lifecycle: {expires: '2020-01-01'}\n",
    "apiVersion: example.com/v1\nkind: Unknown\nmetadata: {name: other, namespace: ml}\n",
    "apiVersion: example.com/v1\nkind: Unknown\nmetadata: {name: another, namespace: ml}\n",
    "# jobgen: ignore-file[host-network] -- nothing here\n" + SPEC.format(name="quiet", gpu=1),
    SPEC.format(name="output", gpu=64) + "  command: [python, train.py, --output-dir=/mnt/out]\n",
    """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota, namespace: ml}
spec: {hard: {requests.nvidia.com/gpu: 3}}
""",
)


def write_repository(root: Path, seed: int, size: int) -> Path:
    """Write a repository with varied manifests, some with faults, and files that concern each other."""
    random = Random(seed)
    files = {"jobgen.yaml": SETTINGS if random.random() < 0.5 else ""}
    if random.random() < 0.7:
        files["overlays/prod/overlay.yaml"] = OVERLAY if random.random() < 0.8 else OVERLAY.replace("merge:", "mrge:")
        files["overlays/dev/overlay.yaml"] = OVERLAY.replace("prod", "dev").replace("image:", "# image:")
    for number in range(size):
        kind = random.random()
        text = SPEC.format(name=f"job-{number}", gpu=random.choice((1, 8, "500m")))
        if kind < 0.4:
            data = make_manifest(random, number)
            if random.random() < 0.5:
                add_data_fault(random, data, random.randrange(50))
            text = json.dumps(data, indent=1)
        elif kind < 0.8:
            text = random.choice(EXTRAS)
        files[f"jobs/{random.choice('abc')}/{number}.yaml"] = text
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def lint_shards(root: Path, count: int, form: str, **options: object) -> tuple[list[jobgen.LintResult], list[str]]:
    """Lint each shard; return the results, and the names of the reports."""
    results = [jobgen.lint(root, shard=f"{index}/{count}", **options) for index in range(1, count + 1)]
    names = [f"part-{index}.report" for index in range(count)]
    for name, result in zip(names, results, strict=True):
        (root / name).write_text(result.to_text(form))
    return results, names


OBSOLETE = {"unused-suppression", "expired-suppression", "unused-exception", "stale-baseline", "missing-schema"}
"""Rules that only all files together decide, or whose findings are counted together: `merge-reports` reports these."""


@laws(8)
@given(st.integers(0, 10**6), st.integers(1, 14), st.integers(1, 5), st.sampled_from(["json", "sarif", "junit"]))
def test_the_shards_are_the_whole(seed: int, size: int, count: int, form: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = write_repository(Path(folder), seed, size)
        try:
            whole = jobgen.lint(root)
        except jobgen.JobgenError as error:
            with pytest.raises(type(error)):
                jobgen.merge_reports(root, lint_shards(root, count, form)[1])
            return
        results, names = lint_shards(root, count, form)
        merged = jobgen.merge_reports(root, names)

    assert merged.text == whole.to_text(form)
    assert (merged.failed, merged.incomplete) == (whole.failed, whole.incomplete)
    assert any(result.failed for result in results) == whole.failed
    found = {describe(finding) for result in results for finding in (*result.findings, *result.merged)}
    expected = {describe(finding) for finding in (*whole.findings, *whole.merged)}
    assert {each for each in expected ^ found if each[0] not in OBSOLETE and each not in found} == set()
    assert sum(result.files for result in results) == whole.files


def describe(finding: jobgen.Finding) -> tuple[object, ...]:
    return finding.rule, finding.location, finding.env, finding.object, finding.severity


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_jobgen_text(folder, *arguments)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a finding in each of four files, of which two share a name."""
    root = tmp_path_factory.mktemp("shards")
    (root / "jobs").mkdir()
    (root / "tests").mkdir()
    (root / "jobgen.yaml").write_text("")
    for number, name in enumerate(("one", "two", "three", "two")):
        text = SPEC.format(name=name, gpu=number + 1) + "  image: registry.example.com/x:latest\n"
        (root / f"jobs/{number}.yaml").write_text(text)
    for name, kind in (("first", "PyTorchJob"), ("second", "Job"), ("third", "PyTorchJob")):
        expect = {"values": {"kind": kind}} if name != "third" else {"findings": ["mutable-image-tag"]}
        test = {"name": name, "jobs": ["one"], "expect": expect}
        document = {"apiVersion": "jobgen.dev/v1", "kind": "JobTests", "spec": [test]}
        (root / f"tests/{name}.yaml").write_text(json.dumps(document))
    return root


@pytest.mark.parametrize(
    "text", ["0/3", "4/3", "a/b", "1/0", "1/1000000", "", "1", "1/", "/2", "-1/2", "1/2/3", "1 / 2", "\u0661/2"]
)
def test_invalid_shards_are_usage_errors(text: str) -> None:
    with pytest.raises(InvalidShardError):
        parse_shard(text)
    with pytest.raises(jobgen.UsageError):
        jobgen.run_tests(ROOT, shard=text or "?")


@laws(10)
@given(
    st.dictionaries(st.text(max_size=5), st.integers(0, 10**7), max_size=60),
    st.integers(1, 40),
    st.floats(0, 1),
)
def test_each_file_is_in_one_shard_and_shards_are_balanced(sizes: dict[str, int], count: int, shared: float) -> None:
    shares = [Shard(index, count).select(reversed(sizes.items()), shared) for index in range(1, count + 1)]
    loads = [sum(sizes[name] + 500 for name in share) for share in shares]

    assert sorted(name for share in shares for name in share) == sorted(sizes)
    # The first shard has other work; of the rest, none has more than another by more than its smallest file.
    if count > 2 and shares[1:] and max(loads[1:]) > 0:
        smallest = min(sizes[name] + 500 for name in shares[1 + loads[1:].index(max(loads[1:]))])
        assert max(loads[1:]) - min(loads[1:]) <= smallest


@pytest.mark.parametrize("form", ["json", "sarif", "junit"])
def test_processes_together_are_one_process(repository: Path, tmp_path: Path, form: str) -> None:
    options = ("--format", form, "--fail-on", "warning", "--show-suppressed")
    whole = run(repository, "lint", *options)
    parts = [run(repository, "lint", *options, "--shard", f"{index}/3") for index in (1, 2, 3)]
    for index, part in enumerate(parts):
        (tmp_path / f"{index}").write_text(part.stdout)
    merged = run(repository, "merge-reports", *(str(tmp_path / name) for name in "2010"), "-o", "merged.txt")
    written = (repository / "merged.txt").read_text()

    assert "duplicate-identity" in whole.stdout
    assert (written, merged.stderr, merged.returncode) == (whole.stdout, whole.stderr, whole.returncode == 1)
    assert [part.stderr.startswith(f"shard {index} of 3") for index, part in enumerate(parts, 1)] == [True] * 3
    if form == "json":
        schema = json.loads((ROOT / "docs/report_v1.json").read_text())
        assert [list(Draft202012Validator(schema).iter_errors(json.loads(part.stdout))) for part in parts] == [[]] * 3


@pytest.mark.parametrize("form", ["json", "junit"])
def test_shards_of_tests_are_all_tests(repository: Path, tmp_path: Path, form: str) -> None:
    whole = jobgen.run_tests(repository, format=form)
    parts = [jobgen.run_tests(repository, format=form, shard=f"{index}/4") for index in range(1, 5)]
    names = [str(tmp_path / f"{number}") for number in range(4)]
    for name, part in zip(names, parts, strict=True):
        Path(name).write_text(part.text)
    merged = jobgen.merge_reports(tmp_path, names)

    assert (merged.text, merged.failed, merged.command) == (whole.text, True, "test")
    assert sorted(len(part.outcomes) for part in parts) == [0, 1, 1, 1]
    with pytest.raises(jobgen.UsageError, match="shard 3 of 4 is missing"):
        jobgen.merge_reports(tmp_path, [names[0], names[1], names[3]])


def test_shards_render_all_objects_and_touch_no_other_tree(repository: Path, tmp_path: Path) -> None:
    root = shutil.copytree(repository, tmp_path / "repository")
    clash = run(root, "render", "--shard", "1/2")
    (root / "jobs/3.yaml").unlink()
    whole = jobgen.render(root)
    parts = [jobgen.render(root, shard=f"{index}/3") for index in (1, 2, 3)]
    first = run(root, "render", "-o", "part", "--shard", "2/2")
    again = run(root, "render", "-o", "part", "--shard", "1/2")
    empty = run(root, "render", "--shard", "9/9")

    assert (clash.returncode, "duplicate-identity" in clash.stderr) == (1, True)
    assert sorted(one.text for part in parts for one in part.objects) == sorted(one.text for one in whole.objects)
    assert (first.returncode, again.returncode) == (0, 2)
    assert "has a rendered tree" in again.stderr
    assert (empty.returncode, empty.stdout, empty.stderr) == (0, "", "shard 9 of 9 has no objects\n")
    assert run(root, "render", "--check", "-o", "part", "--shard", "1/2").returncode == 2
    assert run(root, "render", "one", "--shard", "1/2").returncode == 2


@pytest.mark.parametrize(
    "options",
    [
        ("--since", "HEAD"),
        ("--fix",),
        ("--diff",),
        ("--write-baseline",),
        ("--kubeconform",),
        ("--second-opinion",),
        ("-",),
    ],
)
def test_what_a_shard_cannot_do_is_a_usage_error(repository: Path, options: tuple[str, ...]) -> None:
    done = run(repository, "lint", "--shard", "1/2", *options)

    assert (done.returncode, done.stdout) == (2, "")
    assert "--shard" in done.stderr


def test_a_baseline_is_applied_by_shards_and_to_the_whole(repository: Path, tmp_path: Path) -> None:
    root = shutil.copytree(repository, tmp_path / "repository")
    assert run(root, "lint", "--write-baseline").returncode == 0
    (root / "jobs/2.yaml").write_text(SPEC.format(name="three", gpu=1) + "  image: registry.example.com/x:1.0.0\n")
    whole = jobgen.lint(root, baseline="jobgen-baseline.json")
    results, names = lint_shards(root, 3, "json", baseline="jobgen-baseline.json")

    assert jobgen.merge_reports(root, names).text == whole.to_text("json")
    assert "stale-baseline" in {finding.rule for finding in whole.findings}
    assert not any(result.failed for result in results)


HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "half": lambda report: report[: len(report) // 2],
    "no report": lambda _: b'{"version": 1, "findings": []}',
    "deep": lambda _: b"[" * 10**6,
    "binary": lambda _: bytes(range(256)) * 100,
    "results": lambda report: change_results(report, "AAAA"),
    "a bomb": lambda report: change_results(report, base64.b64encode(zlib.compress(bytes(257 << 20), 1)).decode()),
    "many values": lambda report: change_results(
        report, base64.b64encode(zlib.compress(b'{"command": "lint", "x": [0' + b",0" * 20_000_000 + b"]}", 1)).decode()
    ),
    "wrong type": lambda report: move_finding(report, [1, "a", 2, 3, 4]),
    "a list": lambda report: change_results(report, pack([1, 2])),
    "a lint of nothing": lambda report: change_results(report, pack({"command": "lint"})),
    "wrong files": lambda report: change_results(report, pack({"command": "lint", "options": 3, "files": {"a": 1}})),
    "tests": lambda report: change_results(report, pack({"command": "test", "tests": "x", "results": 7})),
    "too many tests": lambda report: change_results(
        report, pack({"command": "test", "tests": [10**15, ""], "errors": [], "results": []})
    ),
    "index": lambda report: report.replace(b'"index": 2', b'"index": 1e9'),
    "entities": lambda _: b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]><testsuites>&a;</testsuites>',
    "open XML": lambda _: b"<testsuites>" * 1000,
}


def change_results(report: bytes, results: str) -> bytes:
    document = json.loads(report)
    document["shard"]["results"] = results
    return json.dumps(document).encode()


def read_results(report: bytes) -> dict[str, Any]:
    results: dict[str, Any] = unpack(json.loads(report)["shard"]["results"])[0]
    return results


def move_finding(report: bytes, location: object) -> bytes:
    """Change the location of a finding."""
    data = read_results(report)
    for row in data["rows"]:
        outline, _, facts = row[2].partition("\n")
        answer = json.loads(outline)
        for finding in answer[1]:
            finding[4] = location
        row[2] = f"{json.dumps(answer)}\n{facts}"
    return change_results(report, pack(data))


def test_no_report_replaces_the_results_of_another(repository: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(repository, tmp_path / "r"))
    _, names = lint_shards(root, 2, "json")
    first, second = ((root / name).read_bytes() for name in names)
    own, other = read_results(first), read_results(second)
    (root / "same").write_bytes(change_results(second, pack({**other, "rows": [*other["rows"], *own["rows"]]})))
    claimed = [[key, reads, None] for key, reads, _ in own["rows"]]
    (root / "claims").write_bytes(change_results(second, pack({**other, "rows": [*other["rows"], *claimed]})))

    assert jobgen.merge_reports(root, [names[0], "same"]).text == jobgen.merge_reports(root, names).text
    with pytest.raises(jobgen.UsageError, match="two reports have different results of `jobs/"):
        jobgen.merge_reports(root, [names[0], "claims"])


def test_no_report_replaces_the_outcome_of_a_test(repository: Path, tmp_path: Path) -> None:
    parts = [jobgen.run_tests(repository, format="json", shard=f"{index}/2").text.encode() for index in (1, 2)]
    own, other = map(read_results, parts)
    claimed = [[number, [], []] for number, _, _ in own["results"]]
    (tmp_path / "1").write_bytes(parts[0])
    (tmp_path / "2").write_bytes(change_results(parts[1], pack({**other, "results": [*other["results"], *claimed]})))

    with pytest.raises(jobgen.UsageError, match="results of one test"):
        jobgen.merge_reports(tmp_path, ["1", "2"])


@pytest.mark.parametrize("name", HOSTILE)
def test_broken_and_hostile_reports_are_usage_errors(repository: Path, tmp_path: Path, name: str) -> None:
    _, names = lint_shards(Path(shutil.copytree(repository, tmp_path / "r")), 2, "json")
    second = tmp_path / "r" / names[1]
    second.write_bytes(HOSTILE[name](second.read_bytes()))

    with pytest.raises(jobgen.UsageError):
        jobgen.merge_reports(tmp_path / "r", names)


def test_reports_must_belong_together_and_to_the_checkout(repository: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(repository, tmp_path / "r"))
    _, names = lint_shards(root, 3, "json")

    def fails(files: list[str], said: str) -> None:
        with pytest.raises(jobgen.UsageError, match=said):
            jobgen.merge_reports(root, files)

    fails(names[:2], "shard 3 of 3 is missing")
    fails(names[:1], "shards 2, 3 of 3 are missing")
    fails([*names, "nowhere"], "cannot be read")
    fails([], "name the reports")
    other = jobgen.lint(root, shard="1/2").to_text("json")
    (root / "other").write_text(other)
    fails([*names, "other"], "of another run")
    (root / "other").write_text(jobgen.lint(root, ["jobs"], shard="3/3").to_text("json"))
    fails([*names, "other"], "different reports of shard 3 of 3")
    fails([*names[:2], "other"], "different lints")
    (root / "other").write_text(jobgen.run_tests(root, shard="1/3", format="json").text)
    fails([*names, "other"], "a report of `jobgen test`")
    (root / "jobs/1.yaml").write_text(SPEC.format(name="changed", gpu=1))
    fails(names, "`jobs/1.yaml` is not the file")
    (root / "jobgen.yaml").write_text("rules: {mutable-image-tag: off}\n")
    fails(names, "settings or layers differ")


def test_a_report_that_is_empty_or_a_pipe_is_named(tmp_path):
    (tmp_path / "jobgen.yaml").write_text("")
    (tmp_path / "empty.json").write_text("\n")
    os.mkfifo(tmp_path / "pipe.json")

    empty = run(tmp_path, "merge-reports", "empty.json")
    pipe = run(tmp_path, "merge-reports", "pipe.json")
    assert (empty.returncode, empty.stderr.splitlines()[0]) == (
        2,
        "jobgen: `empty.json` is empty; did the run of this shard end with an error?",
    )
    assert (pipe.returncode, pipe.stderr.splitlines()[0]) == (
        2,
        "jobgen: `pipe.json` is not a regular file; name the report that a shard wrote",
    )
