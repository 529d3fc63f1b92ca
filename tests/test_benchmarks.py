"""The benchmarks measure what benchmarks/README.md says: valid files, the requested faults, the same objects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import faults
import page
import pytest
import render
import yaml
import yaml_styles
from findings import without_infos
from measurement import Measurement, require_linear
from repository import write_jobs, write_manifests, write_varied
from sampling import sample
from varied_jobs import make_manifest

from jobgen.rendering import config

ROOT = Path(__file__).parent.parent
COMPANIONS = {"ConfigMap", "PersistentVolumeClaim"}


def run_jobgen(folder: Path, *arguments: str, first: str = "") -> str:
    """Run jobgen in a new process, after a line of Python; return what it prints."""
    command = f"{first}\nimport runpy; runpy.run_module('jobgen', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", command, *arguments],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def find_problems(folder: Path, *paths: str) -> list[dict]:
    report = json.loads(run_jobgen(folder, "lint", "--no-cache", "--format", "json", *paths))
    return without_infos(report["findings"])


def files_below(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text("utf-8") for path in sorted(folder.rglob("*")) if path.is_file()
    }


def objects_in(text: str) -> list[dict]:
    documents = [data for data in yaml.load_all(text, yaml.CSafeLoader) if data is not None]
    return [item for data in documents for item in (data["items"] if data["kind"] == "List" else [data])]


def shape_of(data):
    """Return data without its scalars, so that files from one template look the same."""
    if isinstance(data, dict):
        return tuple((key, shape_of(value)) for key, value in sorted(data.items()))
    return tuple(map(shape_of, data)) if isinstance(data, list) else ""


def test_files_from_templates_have_no_findings(tmp_path):
    write_jobs(tmp_path, 12)
    write_manifests(tmp_path / "manifests", 14)

    assert find_problems(tmp_path) == []
    assert find_problems(tmp_path, "manifests") == []


@pytest.mark.stress
def test_files_from_templates_have_the_requested_share_of_faults(tmp_path):
    write_jobs(tmp_path, 40, faults=0.1)
    write_manifests(tmp_path / "manifests", 40, faults=0.1)

    for findings in (find_problems(tmp_path), find_problems(tmp_path, "manifests")):
        assert len({finding["file"] for finding in findings}) == 4
        assert len({finding["rule"] for finding in findings}) >= 3


@pytest.fixture(scope="module")
def varied(tmp_path_factory):
    """A folder with 400 varied manifests without faults."""
    folder = tmp_path_factory.mktemp("varied")
    write_varied(folder / "varied", 400)
    return folder


@pytest.fixture(scope="module")
def problems(varied):
    return find_problems(varied, "varied")


@pytest.mark.stress
def test_varied_manifests_have_no_errors_and_few_warnings(problems):
    assert [finding for finding in problems if finding["severity"] == "error"] == []
    # Sidecars, workers without a cleanup policy and entry points with several commands are part of what varies.
    wanted = ("endless-sidecar", "workers-outlive-job", "command-split-by-shell")
    assert len([finding for finding in problems if finding["rule"] not in wanted]) <= 400 * 0.06


def test_varied_manifests_are_of_all_kinds_and_no_two_have_one_shape(varied):
    objects = [each for text in files_below(varied / "varied").values() for each in objects_in(text)]
    jobs = [each for each in objects if each["kind"] not in COMPANIONS]
    shapes = Counter(map(shape_of, jobs))
    described = {(str(kind.api_version), kind.name) for kind in config.load_own(varied).kinds}

    assert len(jobs) == 400
    assert {(each["apiVersion"], each["kind"]) for each in jobs} == described
    # Tiny jobs may have the same keys by chance.
    assert len(shapes) >= 400 * 0.97


def test_varied_manifests_follow_from_their_seed(tmp_path):
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        write_varied(tmp_path / name, 30, seed=seed)

    assert files_below(tmp_path / "one") == files_below(tmp_path / "same")
    assert not set(files_below(tmp_path / "one").values()) & set(files_below(tmp_path / "other").values())


@pytest.mark.stress
def test_varied_manifests_have_the_requested_share_of_faults_of_many_rules(tmp_path, problems):
    write_varied(tmp_path / "faulty", 400, faults=0.25)
    clean = {finding["rule"] for finding in problems}
    findings = [finding for finding in find_problems(tmp_path, "faulty") if finding["rule"] not in clean]
    files = {finding["file"] for finding in findings}

    # A file with several manifests may have several faults.
    assert 400 * 0.25 * 0.8 <= len(files) <= 400 * 0.25
    assert len({finding["rule"] for finding in findings}) >= 40
    assert len({finding["category"] for finding in findings}) >= 8


@pytest.mark.parametrize("number", sample(range(150), 10))
def test_a_manifest_in_any_style_reads_as_its_data(number):
    random = Random(number)
    data = [make_manifest(random, number) for _ in range(random.randint(1, 2))]
    text = yaml_styles.to_yaml(data, yaml_styles.choose_style(random), random)

    assert [each for each in yaml.load_all(text, yaml.CSafeLoader) if each is not None] == data
    assert json.loads(yaml_styles.to_json(data[:1])) == data[0]


def test_every_text_fault_is_possible_in_some_file():
    texts = []
    for number in range(40):
        random = Random(number)
        texts.append(yaml_styles.to_yaml([make_manifest(random, 0)], yaml_styles.choose_style(random), random))

    for fault in faults.TEXT:
        assert any(fault(text) != text for text in texts), fault.__name__


def test_kustomize_prints_the_same_objects(tmp_path):
    write_jobs(tmp_path / "ours", 12)

    assert render.kustomize_seconds(tmp_path / "ours", tmp_path / "theirs") > 0


def test_growth_that_is_not_linear_misses_its_target():
    before = Measurement("ten", 1.0, series="lint", count=10)

    assert require_linear(before, Measurement("hundred", 14.0, count=100)).met
    assert not require_linear(before, Measurement("hundred", 16.0, count=100)).met
    assert not require_linear(before, Measurement("hundred", 14.0, "2x", met=False, count=100)).met


def test_new_results_replace_the_old_ones_and_leave_the_rest_of_the_page():
    rows = [
        Measurement(f"render {count}", count / 100, peer="kustomize", peer_value=count, series="render", count=count)
        for count in (1, 10)
    ]
    records = [row.record for row in rows]
    machine = {"cpu": "abacus", "cores": 2, "system": "wood", "python": "3.11"}
    text = (ROOT / "benchmarks/README.md").read_text()
    filled = page.replace_results(text, {"date": "2027-01-31", "machine": machine, "seconds": 1.0, "rows": records})

    assert "Measured on 2027-01-31: abacus, 2 cores" in filled
    assert "| render 10 | 100 ms | kustomize 10.00 s | 100.0x |  |  |" in filled
    assert filled.split(page.END)[1] == text.split(page.END)[1]
    assert filled.split(page.BEGIN)[0] == text.split(page.BEGIN)[0]
    assert len(ET.fromstring(page.draw_growth(records)).findall("{*}circle")) == 4


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot bind a process to a core")
def test_output_is_the_same_in_one_process_or_many_and_with_a_cache_or_without(tmp_path):
    write_jobs(tmp_path, 60, faults=0.15)
    one_core = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})"
    outputs = {
        run_jobgen(tmp_path, *options, "lint", "--format", "json", first=first)
        for first, options in ((one_core, ["--no-cache"]), ("", ["--no-cache"]), ("", []), ("", []))
    }

    assert len(outputs) == 1
    assert len(json.loads(outputs.pop())["findings"]) >= 9
