"""Attacks on jobs for several platforms: hostile numbers and types, existing files, failures while writing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from linting import lint_paths
from test_fuzz import within_limits
from transcripts import write_files

from jobgen.cli.commands.explain import explain_name
from jobgen.features.convert.commands.migrate import migrate_all
from jobgen.features.convert.migrate.migrate_job import migrate_job
from jobgen.rendering import config

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  imagePullPolicy: Always
  command: [torchrun, train.py]
  resources: {cpu: 1, memory: 1Gi}
  roles:
    master: {}
    worker: {replicas: 3}
"""
HEAD = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: prod}\nspec:\n"
OVERLAY = f"{HEAD}  namespace: team\n  patches:\n    - merge: {{imagePullPolicy: Never}}\n"
OWN_PATCH = f"{HEAD}  patches:\n    - merge: {{env: {{KEPT: '1'}}}}\n"
OWN_RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: kept}
spec: {template: {spec: {replicatedJobs: []}}}
"""
REPOSITORY = {"jobgen.yaml": "", "jobs/bert.yaml": JOB, "overlays/prod/overlay.yaml": OVERLAY}


def make_repository(root: Path, files: dict[str, str]) -> Path:
    write_files(root, {path: text.encode() for path, text in files.items()})
    return root


def read_files(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_migration_replaces_no_file_that_has_other_content(tmp_path):
    own = {"overlays/prod/runtimes.yaml": OWN_PATCH, "runtimes/bert.yaml": OWN_RUNTIME}
    make_repository(tmp_path, {**REPOSITORY, **own})

    result = migrate_all(tmp_path, "trainer", None, write=True, force=False)

    written = read_files(tmp_path)
    assert "pods: 1 of 1 equal for training" in result.err
    assert {path: written[path] for path in own} == own
    assert {"overlays/prod/runtimes-2.yaml", "runtimes/bert-2.yaml"} <= written.keys()


def _make_file(root: Path) -> None:
    (root / "runtimes").write_text("a file\n")


def _make_dangling_link(root: Path) -> None:
    (root / "runtimes").symlink_to(root / "nowhere" / "deep")


def _forbid_writing(root: Path) -> None:
    (root / "runtimes").mkdir()
    (root / "runtimes").chmod(0o500)


@pytest.mark.parametrize("obstruct", [_make_file, _make_dangling_link, _forbid_writing])
def test_migration_that_cannot_write_a_file_writes_none(tmp_path, obstruct):
    if obstruct is _forbid_writing and os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    make_repository(tmp_path, REPOSITORY)
    obstruct(tmp_path)
    before = read_files(tmp_path)

    result = migrate_all(tmp_path, "trainer", None, write=True, force=False)

    assert result.code != 0
    assert read_files(tmp_path) == before


MANY = {"framework": "tensorflow", "roles": {"worker": {"replicas": 2147483647}}}
DIGITS = "9" * 5000
TOO_LONG = "`TF_CONFIG` has the names of all 2147483647 pods"
# The platform, the spec, the kind of a runtime, and what lint reports.
HOSTILE: dict[str, tuple[str, dict[str, Any], Any, str]] = {
    "names of many pods of a Job": ("kubernetes", MANY, None, TOO_LONG),
    "names of many pods of a JobSet": ("jobset", MANY, None, TOO_LONG),
    "many pods, whose names Volcano lists": ("volcano", MANY, None, ""),
    "processes as a superscript": ("jobset", {"pytorch": {"nprocPerNode": "²"}}, None, ""),
    "processes with many digits": ("jobset", {"pytorch": {"nprocPerNode": DIGITS}}, None, ""),
    "processes of a command": ("kubeflow", {"command": ["torchrun", f"--nproc-per-node={DIGITS}"]}, None, ""),
    "nodes with many digits": ("kubeflow", {"command": ["torchrun", f"--nnodes={DIGITS}"]}, None, ""),
    "nodes as a superscript": ("kubeflow", {"command": ["torchrun", "--nnodes=²"]}, None, ""),
    "a mapping as the kind of a runtime": ("trainer", {}, {"a": "b"}, "is not a runtime"),
    "a list as the kind of a runtime": ("trainer", {}, ["a"], "is not a runtime"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_values_end_in_findings(tmp_path, name):
    platform, fields, kind, message = HOSTILE[name]
    spec = {"framework": "pytorch", "image": "a:1", "resources": {"gpu": 2}, "roles": {"worker": {"replicas": 2}}}
    job = {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": "a"}, "spec": {**spec, **fields}}
    runtime = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": kind, "metadata": {"name": "a"}}
    files = {
        "jobgen.yaml": "",
        "jobs/a.yaml": json.dumps(job),
        "overlays/prod/overlay.yaml": f"{HEAD}  cluster: {{platform: {platform}}}\n",
        **({"runtimes/a.yaml": json.dumps(runtime)} if kind else {}),
    }

    with within_limits():
        result = lint_paths(make_repository(tmp_path, files), (), (), format_="text")

    assert "internal" not in result.out + result.err
    assert message in result.out


def test_explain_knows_roles_with_any_name(tmp_path):
    job = JOB.replace("pytorch", "generic").replace("master", "driver").replace("worker", "big")
    overlay = f"{HEAD}  cluster: {{platform: jobset}}\n"
    make_repository(tmp_path, {"jobgen.yaml": "", "jobs/bert.yaml": job, "overlays/prod/overlay.yaml": overlay})

    result = explain_name(tmp_path, "bert", "env", (), format_="text")

    assert (result.out, "`env`" in result.err) == ("", True)


# Jobs that stay as they are, and have nothing in common with the job that is migrated.
STAYING = {
    "a job of the new platform": JOB.replace("bert", "jax").replace("pytorch", "jax").replace("    master: {}\n", ""),
    "a sweep with a warning": JOB.replace("bert", "sweep") + "  matrix: {lr: [1, 2]}\n",
}


@pytest.mark.parametrize("name", STAYING)
def test_other_jobs_do_not_prevent_a_migration(tmp_path, name):
    trainer = "  jobs: {names: [jax]}\n  cluster: {platform: trainer}\n  namespace: new\n"
    files = {
        **REPOSITORY,
        "jobs/other.yaml": STAYING[name],
        "overlays/prod/overlay.yaml": f"{OVERLAY}  jobs: {{names: [bert, sweep*]}}\n",
        **({"overlays/new/overlay.yaml": HEAD.replace("prod", "new") + trainer} if "platform" in name else {}),
    }

    result = migrate_all(make_repository(tmp_path, files), "trainer", None, write=False, force=False)

    assert "equal for training" in result.err
    assert result.code == 0, result.err


PLATFORMS = {
    "a role of another platform": ("    worker: {replicas: 3, platforms: [tensorstack]}", "master", "[tensorstack]"),
    "a role of both platforms": ("    worker: {replicas: 3, platforms: [tensorstack, kubeflow]}", "master", "trainer]"),
    "a platform of the job": ("    worker: {replicas: 3}\n  platform: kubeflow", "platform: trainer", "worker"),
}


@pytest.mark.parametrize("name", PLATFORMS)
def test_migration_keeps_roles_on_their_platforms(tmp_path, name):
    workers, *parts = PLATFORMS[name]
    job = JOB.replace("    worker: {replicas: 3}", workers)
    make_repository(tmp_path, {**REPOSITORY, "jobs/bert.yaml": job})

    result = migrate_all(tmp_path, "trainer", None, write=True, force=False)

    assert "pods: 1 of 1 equal for training" in result.err
    assert not [part for part in parts if part not in (tmp_path / "jobs/bert.yaml").read_text()]


@pytest.mark.parametrize(
    ("fields", "change"), [({}, "moved"), ({"envFrom": [{"configMapRef": {"name": "a"}}]}, "lost")]
)
def test_role_whose_pods_are_replaced_is_reported(fields, change):
    kinds = config.load_own(Path(__file__).parent.parent).kinds
    source, target = (next(kind for kind in kinds if kind.name == name) for name in ("JobSet", "TensorFlowTrainingJob"))
    roles = {"worker": {"replicas": 2, **fields}, "node": {}}
    spec = {"framework": "tensorflow", "image": "a:1", "roles": roles}
    job = {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": "a"}, "spec": spec}

    done = migrate_job(job, source, target, "tensorflow", kinds)

    assert [note.change for note in done.notes if note.field == ("roles", "node")] == [change]


@pytest.mark.parametrize(
    ("config", "is_refused"),
    [
        ("{env: {A: nokey}, data: {key: text}}", True),
        ("{mountPath: /a, items: {nokey: a}, data: {key: text}}", True),
        ("{env: {A: nokey}, optional: true, data: {key: text}}", False),
        ("{env: {A: key}, mountPath: /a, items: {key: a}, data: {key: text}}", False),
    ],
)
def test_keys_that_a_config_does_not_have_are_errors(tmp_path, config, is_refused):
    make_repository(tmp_path, {"jobgen.yaml": "", "jobs/bert.yaml": f"{JOB}  configs: {{c: {config}}}\n"})

    result = lint_paths(tmp_path, (), (), format_="text")

    assert ("`data` of config `c` has no `nokey`" in result.out) is is_refused
    assert (result.code != 0) is is_refused, result.out
