"""The law of `jobgen new`: what it writes lints clean, or it names the line to change; the first edit is no error."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command import run_jobgen_text
from findings import without_infos
from sampling import sample

from jobgen.cli.starter import PLATFORM_NAMES, PLATFORMS
from jobgen.repo.layout import list_starter_frameworks

FRAMEWORKS = list_starter_frameworks()
OPERATORS = {name: version for platform in PLATFORMS.values() for name, version in platform.operators}
# Both name their CRD `mpijobs.kubeflow.org`, so a cluster has one of them.
OPERATORS = {**OPERATORS, "training-operator": "1.9.4"}
_OVERLAY_LINE = re.compile(r"(?:overlays/[a-z]+/overlay|jobgen)\.yaml:\d+")
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {{name: {0}}}\nspec:\n{1}"
TEAM = """\
apiVersion: jobgen.dev/v1
kind: Team
metadata: {name: nlp}
spec:
  folders: [jobs]
  labels: {team: nlp}
  queues: [nlp-*]
  namespaces: [ml]
"""


def declare(first: str, *others: str) -> str:
    """The lines of a cluster with several platforms."""
    names = dict.fromkeys((first, *others))
    mpi = {"mpi-operator"} if first != "mpi-operator" else {"training-operator"}
    operators = {name: version for name, version in OPERATORS.items() if name not in mpi}
    return f"  cluster:\n    platforms: [{', '.join(names)}]\n    operators: {json.dumps(operators)}\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def make_initialized(root: Path, first: str) -> Path:
    assert run_jobgen_text(root, "init", "--platform", first, "--ci", "none").returncode == 0
    return root


def make_with_others(root: Path, first: str) -> Path:
    """What `init` wrote, with all other platforms added to its list."""
    make_initialized(root, first)
    base = root / "overlays/base/overlay.yaml"
    text = re.sub(r"    operators: .*\n", "", base.read_text())
    name = PLATFORMS[first].name
    base.write_text(text.replace(f"  cluster:\n    platform: {name}\n", declare(name, *PLATFORM_NAMES)))
    return root


def make_plain(root: Path, first: str) -> Path:
    """One environment, with nothing but a platform."""
    overlay = OVERLAY.format("prod", f"  cluster: {{platform: {PLATFORMS[first].name}}}\n  namespace: ml\n")
    return write(root, {"jobgen.yaml": "", "overlays/prod/overlay.yaml": overlay})


def make_strict(root: Path, first: str) -> Path:
    """Three environments with other platforms, locks, queues and a team."""
    name = PLATFORMS[first].name
    defaults = "  defaults: {image: registry.example.com/base:1.0.0, queue: nlp-a}\n  locked: [image, queue]\n"
    queues = "    queues: {nlp-a: {gpus: 64}, b: {gpus: 8}}\n"
    base = f"{declare(name, *PLATFORM_NAMES)}{queues}  namespace: ml\n{defaults}"
    return write(
        root,
        {
            "jobgen.yaml": "environments: [dev, staging, prod]\n",
            "overlays/base/overlay.yaml": OVERLAY.format("base", base),
            "overlays/dev/overlay.yaml": OVERLAY.format("dev", "  extends: [base]\n"),
            "overlays/staging/overlay.yaml": OVERLAY.format(
                "staging", f"  extends: [base]\n{declare(*reversed(PLATFORM_NAMES))}"
            ),
            "overlays/prod/overlay.yaml": OVERLAY.format("prod", "  extends: [base]\n"),
            "teams/nlp.yaml": TEAM,
        },
    )


def make_queued(root: Path, first: str) -> Path:
    """Two environments with queues and a team that must name one, and no defaults."""
    base = f"{declare(PLATFORMS[first].name, *PLATFORM_NAMES)}    queues: {{b: {{gpus: 8}}, nlp-a: {{gpus: 64}}}}\n"
    return write(
        root,
        {
            "jobgen.yaml": "environments: [dev, prod]\n",
            "overlays/base/overlay.yaml": OVERLAY.format("base", f"{base}  namespace: ml\n"),
            "overlays/dev/overlay.yaml": OVERLAY.format("dev", "  extends: [base]\n"),
            "overlays/prod/overlay.yaml": OVERLAY.format("prod", "  extends: [base]\n"),
            "teams/nlp.yaml": TEAM,
        },
    )


def lint(root: Path) -> list[dict[str, Any]]:
    done = run_jobgen_text(root, "lint", "--format", "json")
    return without_infos(json.loads(done.stdout)["findings"])


def list_files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and ".git" not in path.parts}


def check_law(root: Path, framework: str, platform: str) -> bool:
    """Write a job, and edit its number of pods; return whether there is one."""
    known = {json.dumps(each) for each in lint(root)} if (root / "jobs").exists() else set()
    option = ["--platform", platform] if platform else []
    done = run_jobgen_text(root, "new", "n", "--framework", framework, *option)
    path = root / "jobs/n.yaml"
    if done.returncode == 2:
        assert "do not run" in done.stderr
        assert _OVERLAY_LINE.search(done.stderr) or "`--platform " in done.stderr, done.stderr
        assert not path.exists()
        return False
    text = path.read_text()
    assert 'name: "n"' in text
    # Kueue does not manage an MPIJob of training-operator: its team or an overlay must name a queue, without effect.
    without_effect = ("queue-label-on-pods", "ineffective-queue-label")
    added = [each for each in lint(root) if json.dumps(each) not in known]
    found = [each for each in added if each["rule"] not in without_effect or "MPIJob" not in each["message"]]
    assert found == [], done.stderr
    assert done.returncode == 0

    path.write_text(re.sub(r"replicas: (\d+)", lambda found: f"replicas: {int(found[1]) * 2}", text, count=1))
    edited = [each for each in lint(root) if each["severity"] == "error" and json.dumps(each) not in known]
    assert edited == []
    path.unlink()
    return True


@pytest.mark.parametrize("framework", sample(FRAMEWORKS, 3))
@pytest.mark.parametrize("make", [make_initialized, make_plain])
@pytest.mark.parametrize("first", sample(PLATFORMS, 4))
def test_jobs_of_one_platform(tmp_path: Path, first: str, make: Any, framework: str) -> None:
    root = make(tmp_path, first)
    before = list_files(root)

    check_law(root, framework, "")

    assert list_files(root) == before, "nothing else is written"


@pytest.mark.parametrize("platform", sample(["", *PLATFORM_NAMES], 4))
@pytest.mark.parametrize("framework", sample(FRAMEWORKS, 5))
@pytest.mark.parametrize("make", [make_with_others, make_strict, make_queued])
@pytest.mark.parametrize("first", sample(PLATFORMS, 5))
def test_jobs_of_several_platforms(tmp_path: Path, first: str, make: Any, framework: str, platform: str) -> None:
    root = make(tmp_path, first)
    before = list_files(root)

    check_law(root, framework, platform)

    assert list_files(root) == before, "nothing else is written"


def test_a_new_job_in_an_empty_folder_gets_what_its_head_needs_for_the_queue(tmp_path: Path) -> None:
    (make_queued(tmp_path, "kubeflow") / "jobs").mkdir()
    done = run_jobgen_text(tmp_path, "new", "n", "--framework", "deepspeed", "--platform", "ray")
    assert done.returncode == 0, done.stderr
    assert lint(tmp_path) == []


def test_a_platform_whose_operator_is_another_one_is_refused(tmp_path: Path) -> None:
    """Both operators of MPIJobs name their CRD alike, so a cluster has one of them."""
    root = make_with_others(tmp_path, "mpi-operator")
    done = run_jobgen_text(root, "new", "n", "--framework", "mpi", "--platform", "kubeflow")

    assert (done.returncode, (root / "jobs/n.yaml").exists()) == (2, False)
    assert "do not run `mpi` on platform `kubeflow`; " in done.stderr
    assert "or use `--platform mpi-operator`" in done.stderr
