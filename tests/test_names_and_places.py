"""Mistakes about names, keys and places: one finding with its line, its words and its fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from findings import without_infos
from lintfiles import TODAY, overlay
from linting import lint_paths
from test_misread import RUN, H

JOB = H + RUN
CONFIG = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: train-config, namespace: ml}\ndata: {epochs: '1', batch: '2'}\n"
)
CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: datasets, namespace: ml}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Ti}}}
"""
PLAIN = """\
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: ml}
spec:
  backoffLimit: 2
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: t
        image: registry.example.com/a:1.0.0
        env: [{name: E, valueFrom: {configMapKeyRef: {name: train-config, key: epochs}}}]
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: datasets}}]
"""
JOB_SET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: k, namespace: ml}
spec:
  replicatedJobs:
  - name: w
    template:
      spec:
        restartPolicy: Never
        template: {spec: {containers: [{name: a, image: registry.example.com/a:1.0.0}]}}
"""
TRAINING = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: k, namespace: ml}
pytorchReplicaSpecs:
  Master:
    template: {spec: {containers: [{name: pytorch, image: registry.example.com/a:1.0.0}]}}
"""
RESOURCES = "{cpu: 8, memory: 64Gi, gpu: 1}"
BUILD = "resources: [job.yaml]\n"


def lint(folder: Path, files: dict[str, str]) -> list[dict[str, Any]]:
    """Write files into a folder, and return the findings without infos."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return without_infos(json.loads(lint_paths(folder, (), (), format_="json", today=TODAY).out)["findings"])


class Case(NamedTuple):
    """Files with a mistake, and the only finding."""

    files: dict[str, str]
    place: str
    """The file and the line, and `warning` for one."""
    words: str
    is_fixable: bool = False


def plain(old: str, new: str, **others: str) -> dict[str, str]:
    assert old in PLAIN
    return {"job.yaml": PLAIN.replace(old, new), **{f"{name}.yaml": text for name, text in others.items()}}


def change(old: str, new: str) -> dict[str, str]:
    assert old in JOB
    return {"jobgen.yaml": "", "jobs/a.yaml": JOB.replace(old, new)}


def append(text: str, spec: str = "") -> dict[str, str]:
    return {"jobgen.yaml": "", "jobs/a.yaml": JOB + text, **(overlay(spec) if spec else {})}


def build(text: str, job: str = PLAIN, **others: str) -> dict[str, str]:
    return {"kustomization.yaml": text, "job.yaml": job.replace(", namespace: ml", ""), **others}


WITHOUT_REFERENCES = PLAIN.replace(PLAIN.splitlines(keepends=True)[11], "")
CASES = {
    # Names and keys of objects that other files have.
    "key": Case(plain("key: epochs", "key: epoch", c=CONFIG), "job.yaml:12", "did you mean `epochs`?", True),
    "key that is no slip": Case(plain("key: epochs", "key: lr", c=CONFIG), "job.yaml:12", "has no key `lr`; correct"),
    "key in one file": Case(
        {"all.yaml": f"{CONFIG}---\n{PLAIN.replace('key: epochs', 'key: epoch')}"}, "all.yaml:17", "`epochs`", True
    ),
    "name": Case(
        plain("name: train-config", "name: trian-config", c=CONFIG),
        "job.yaml:12 warning",
        "the repository has no ConfigMap `trian-config` in namespace `ml`; did you mean `train-config`?",
        True,
    ),
    "claim": Case(
        plain("claimName: datasets", "claimName: dataset", c=CLAIM),
        "job.yaml:14 warning",
        "did you mean `datasets`?",
        True,
    ),
    "other folder": Case(
        {"a/job.yaml": PLAIN.replace("key: epochs", "key: epoch"), "b/c.yaml": CONFIG},
        "a/job.yaml:12 warning",
        "has no key `epoch`; did you mean `epochs`?",
        True,
    ),
    "namespace that another tool adds": Case(
        plain("key: epochs", "key: epoch", c=CONFIG.replace(", namespace: ml", "")),
        "job.yaml:12 warning",
        "did you mean `epochs`?",
        True,
    ),
    "name in the namespace that another tool adds": Case(
        plain("name: train-config", "name: trian-config", c=CONFIG.replace(", namespace: ml", "")),
        "job.yaml:12 warning",
        "has no ConfigMap `trian-config` in namespace `ml`; did you mean `train-config`?",
        True,
    ),
    "generated key": Case(
        build(
            f"namespace: ml\n{BUILD}configMapGenerator: [{{name: train-config, literals: [epoch=1]}}]\n",
        ),
        "job.yaml:12",
        "ConfigMap `train-config` has no key `epochs`; did you mean `epoch`?",
        True,
    ),
    "generated name": Case(
        build(f"{BUILD}secretGenerator: [{{name: train-confg, literals: [epochs=1]}}]\n").__or__(
            {"job.yaml": PLAIN.replace("configMapKeyRef", "secretKeyRef").replace(", namespace: ml", "")}
        ),
        "job.yaml:12 warning",
        "the repository has no Secret `train-config`; did you mean `train-confg`?",
        True,
    ),
    "key in a repository": Case(
        {
            **append("  env: {A: {configMapKeyRef: {name: train-config, key: epoch}}}\n"),
            "jobs/c.yaml": CONFIG,
        },
        "jobs/a.yaml:10",
        "did you mean `epochs`?",
        True,
    ),
    "port of a probe": Case(
        plain(
            "        image: reg",
            "        ports: [{name: http, containerPort: 80}]\n        readinessProbe: {tcpSocket: {port: htttp}}\n"
            "        image: reg",
        ),
        "job.yaml:12 warning",
        "no port of the container is named `htttp`, so `readinessProbe` never gets a result; did you mean `http`?",
        True,
    ),
    # Volumes.
    "mount of a claim": Case(
        plain("[{name: data, mountPath", "[{name: datasets, mountPath"),
        "job.yaml:13",
        "the pod has no volume `datasets`, which is the name of the claim of volume `data`; write `data`",
        True,
    ),
    "misspelled mount": Case(
        plain("[{name: data, mountPath", "[{name: dta, mountPath"), "job.yaml:13", "did you mean `data`?", True
    ),
    "name of a claim": Case(plain("claimName:", "name:"), "job.yaml:14", "did you mean `claimName`?", True),
    "size": Case(
        plain("persistentVolumeClaim: {claimName: datasets}", "emptyDir: {size: 8Gi}"),
        "job.yaml:14",
        "did you mean `sizeLimit`?",
        True,
    ),
    "path of a host": Case(
        plain("persistentVolumeClaim: {claimName: datasets}", "hostPath: /data"),
        "job.yaml:14",
        "write `hostPath: {path: /data}`",
    ),
    "one volume": Case(plain("      volumes:", "      volume:"), "job.yaml:14", "did you mean `volumes`?", True),
    # Fields in a wrong place.
    "spec of a pod": Case(
        plain("      restartPolicy: Never", "      restartPolicy: Never\n      parallelism: 3"),
        "job.yaml:9",
        "`parallelism` is not a field of `spec.template.spec`; it belongs in `spec`",
        True,
    ),
    "spec of a pod that has its own": Case(
        plain("      restartPolicy: Never", "      restartPolicy: Never\n      backoffLimit: 3"),
        "job.yaml:9",
        "`backoffLimit` is not a field of `spec.template.spec`; `spec` has it, so remove it here",
    ),
    "pod in a container": Case(
        plain("        image:", "        securityContext: {fsGroup: 1}\n        image:"),
        "job.yaml:11",
        "it belongs in `spec.template.spec.securityContext`",
    ),
    "namespace beside metadata": Case(
        plain("metadata: {name: j, namespace: ml}", "metadata: {name: j}\nnamespace: ml"),
        "job.yaml:4",
        "`namespace` is not a field of `Job`; it belongs in `metadata`",
        True,
    ),
    "restart policy of a JobSet": Case(
        {"a.yaml": JOB_SET},
        "a.yaml:9",
        "of `spec.replicatedJobs[0].template.spec`; it belongs in `spec.replicatedJobs[0].template.spec.template.spec`",
    ),
    "no spec": Case(
        {"a.yaml": TRAINING},
        "a.yaml:4",
        "`pytorchReplicaSpecs` belongs in `spec`, which is missing; write `spec:` above",
    ),
    "no spec above fields of metadata": Case(
        {"a.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: j\n" + PLAIN.partition("spec:\n")[2]},
        "a.yaml:5",
        "`backoffLimit` and 1 other field of `metadata` belong in `spec`, which is missing",
    ),
    "no spec of a job": Case(
        {"jobgen.yaml": "", "jobs/a.yaml": JOB.replace("spec:\n", "").replace("\n  ", "\n")},
        "jobs/a.yaml:4",
        "`framework` and 4 other fields belong in `spec`, which is missing; write `spec:` above them, and indent",
    ),
    "no spec below a whole metadata": Case(
        {"jobgen.yaml": "", "jobs/a.yaml": JOB.replace("spec:\n", "")},
        "jobs/a.yaml:4",
        "and the lines below it belong in `spec`, which is missing; write `spec:` above it",
    ),
    # Resources and roles.
    "shared memory": Case(
        change(RESOURCES, f"{RESOURCES[:-1]}, shm: 1Gi}}"), "jobs/a.yaml:7", "`shm: 1Gi` beside `resources`"
    ),
    "queue of resources": Case(
        change(RESOURCES, f"{RESOURCES[:-1]}, queue: a}}"), "jobs/a.yaml:7", "write `queue: a` beside `resources`"
    ),
    "cores": Case(change("cpu: 8", "cpu: 8 cores"), "jobs/a.yaml:7", "must be a quantity such as `8`", True),
    "memory without a unit": Case(change("memory: 64Gi", "memory: 64"), "jobs/a.yaml:7", "write `64Gi`", True),
    "replicas of roles": Case(
        append("  replicas: {master: 1, worker: 3}\n"),
        "jobs/a.yaml:10",
        "write `roles: {master: {replicas: 1}, worker: {replicas: 3}}`",
    ),
    # Overlays and settings.
    "kind of a match": Case(
        append("", "{patches: [{match: {kind: PyTorchJob}, merge: {shm: 8Gi}}]}"),
        "overlays/prod/overlay.yaml:4",
        "write `kinds: [PyTorchJob]`",
        True,
    ),
    "one name": Case(
        append("", "{patches: [{match: {names: a}, merge: {shm: 8Gi}}]}"),
        "overlays/prod/overlay.yaml:4",
        "write `names: [a]`",
        True,
    ),
    "complete": Case(
        append("", "{cluster: {complete: [queues]}}"),
        "overlays/prod/overlay.yaml:4",
        "did you mean `ClusterQueue`, `LocalQueue` or `Queue`?",
    ),
    "merge without patches": Case(
        append("", "{merge: {shm: 8Gi}}"), "overlays/prod/overlay.yaml:4", "write `patches: [{match: …, merge: …}]`"
    ),
    "images": Case(
        append("", "{images: [registry.example.com/a:2.0.0]}"),
        "overlays/prod/overlay.yaml:4",
        'write `images: [{name: registry.example.com/a, newTag: "2.0.0"}]`',
    ),
    "queue": Case(
        append("  queue: reserach\n", "{cluster: {queues: {research: {gpus: 8}}}}"),
        "jobs/a.yaml:10",
        "did you mean `research`?",
        True,
    ),
    "queue of Volcano": Case(
        append(
            "  runPolicy: {schedulingPolicy: {queue: research}}\n",
            "{cluster: {operators: {kueue: 0.14.0}, queues: {research: {gpus: 8}}}}",
        ),
        "jobs/a.yaml:10 warning",
        "Kueue does not read it; write `queue: research` directly below `spec`",
    ),
    "extends": Case(
        {
            **append("", "{extends: [bas]}"),
            **overlay("{namespace: ml}", "base"),
            "jobgen.yaml": "environments: [prod]\n",
        },
        "overlays/prod/overlay.yaml:4",
        "there is no overlay `bas`; did you mean `base`?",
        True,
    ),
    # Kustomizations.
    "field": Case(build("resource: [job.yaml]\n"), "kustomization.yaml:1", "did you mean `resources`?", True),
    "no list": Case(build("resources: job.yaml\n"), "kustomization.yaml:1", "write `resources: [job.yaml]`"),
    "number": Case(
        build(f"{BUILD}images: [{{name: registry.example.com/a, newTag: 2.0}}]\n"),
        "kustomization.yaml:2",
        '`newTag` must be text; write `"2.0"`',
        True,
    ),
    "labels": Case(
        build(f"{BUILD}labels: {{team: nlp}}\n"), "kustomization.yaml:2", "write `labels: [{pairs: {team: nlp}}]`"
    ),
    "pairs": Case(
        build(f"{BUILD}commonLabels: [team=nlp]\n"), "kustomization.yaml:2", "write `commonLabels: {team: nlp}`"
    ),
    "literals": Case(
        build(f"{BUILD}secretGenerator: [{{name: c, literals: {{token: hunter2}}}}]\n"),
        "kustomization.yaml:2",
        "write `literals: [token=…]`",
    ),
    "patch as a path": Case(
        build(f"{BUILD}patches: [p.yaml]\n", **{"p.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n"}),
        "kustomization.yaml:2",
        "write `- path: p.yaml`",
    ),
    "patch without a bar": Case(
        build(f"{BUILD}patches: [{{target: {{kind: Job}}, patch: [{{op: remove, path: /spec/backoffLimit}}]}}]\n"),
        "kustomization.yaml:2",
        "write `patch: |-`",
    ),
    "kind of a target": Case(
        build(f"{BUILD}patches: [{{target: {{kind: Jobs}}, patch: '[{{op: remove, path: /spec/backoffLimit}}]'}}]\n"),
        "kustomization.yaml:2 warning",
        "did you mean `Job`?",
    ),
    "image of no container": Case(
        build(f"{BUILD}images: [{{name: registry.example.com/b, newTag: 2.0.0}}]\n"),
        "kustomization.yaml:2 warning",
        "so nothing is changed; did you mean `registry.example.com/a`?",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_one_finding_with_its_line_and_a_fix(name, tmp_path):
    case = CASES[name]
    found = lint(tmp_path, case.files)

    place, _, severity = case.place.partition(" ")
    assert [f"{each['file']}:{each['line']}" for each in found] == [place], found
    assert found[0]["severity"] == (severity or "error")
    assert case.words in found[0]["message"]
    assert bool(found[0].get("fixable")) == case.is_fixable
    assert "hunter2" not in json.dumps(found)


@pytest.mark.parametrize(
    "files",
    [
        plain("key: epochs", "key: epoch, optional: true", c=CONFIG),
        plain("key: epochs", "key: epoch", c=CONFIG.partition("\ndata:")[0]),
        plain("name: train-config", "name: hub", c=CONFIG),
        plain("claimName: datasets", "claimName: scratch", c=CLAIM),
        {"a/c.yaml": CONFIG.replace(", namespace: ml", "").replace("train", "trian"), "b/job.yaml": PLAIN},
        # A ConfigMap that is in two folders, and not the same, is of two clusters.
        {"a/c.yaml": CONFIG, "b/c.yaml": CONFIG.replace("epochs", "epoch"), "job.yaml": PLAIN},
    ],
)
def test_objects_that_the_cluster_may_have_are_not_reported(files, tmp_path):
    assert lint(tmp_path, files) == []


PATCHED = "{cluster: {gitops: argocd}, patches: [{match: {names: [a]}, %s}]}"
COUNT = "{op: replace, path: /spec/pytorchReplicaSpecs/Worker/replicas, value: 7}"


@pytest.mark.parametrize(
    "patch", [f"jsonPatch: [{COUNT}]", "manifest: {spec: {pytorchReplicaSpecs: {Worker: {replicas: 7}}}}"]
)
def test_a_number_that_a_patch_changed_is_named_where_totals_are_wrong(patch, tmp_path):
    policy = Path(__file__).parents[1] / "policies/replica-totals.yaml"
    files = append("  replicas: 4\n  runPolicy: {schedulingPolicy: {minAvailable: 4}}\n", PATCHED % patch)

    found = lint(tmp_path, {**files, "policies/replica-totals.yaml": policy.read_text()})

    assert [each["rule"] for each in found] == ["replica-totals", "min-available-too-low"]
    for each in found:
        assert [(note["file"], note["line"]) for note in each["related"]] == [("overlays/prod/overlay.yaml", 4)]
