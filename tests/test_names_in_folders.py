"""Names of ConfigMaps, Secrets, claims and accounts in plain files and kustomizations, which other objects refer to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from linting import lint_paths

RULES = ("unknown-reference", "internal-error")
NOTHING: dict[str, str] = {}


def lint(folder: Path, files: dict[str, str]) -> list[dict[str, Any]]:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    found: list[dict[str, Any]] = json.loads(lint_paths(folder, (".",), (), format_="json").out)["findings"]
    return [each for each in found if each["rule"] in RULES]


def job(more: str, namespace: str = "ml", name: str = "train") -> str:
    """A Job whose line 10 is the text."""
    head = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n"
    pod = "      restartPolicy: Never\n      containers:\n        - {name: main, image: 'a/a:1', command: [a]}\n"
    return f"{head}  template:\n    spec:\n{pod}{more}"


def volume(source: str) -> str:
    return f"      volumes: [{{name: c, {source}}}]\n"


def build(generator: str) -> str:
    head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: ml\nresources: [job.yaml]\n"
    return f"{head}{generator}"


def obj(kind: str, namespace: str, name: str, more: str = "") -> str:
    return f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: {namespace}{more}}}\n"


CONFIG = "configMapGenerator: [{name: train-config, literals: [a=b]}]\n"
SECRET = "secretGenerator: [{name: hub, literals: [token=b]}]\n"
OTHER = "configMapGenerator: [{name: train-a, literals: [a=b]}, {name: train-b, literals: [a=b]}]\n"


@pytest.mark.parametrize(
    ("generator", "source", "words"),
    [
        (
            CONFIG,
            "configMap: {name: training-settings}",
            "generates `train-config`, which nothing uses; write `train-c",
        ),
        (SECRET, "secret: {secretName: hub-token}", "the Secret `hub-token`, but kustomize generates `hub`"),
        (SECRET, "projected: {sources: [{secret: {name: hub-token, items: [{key: token, path: t}]}}]}", "`hub`"),
        (
            OTHER,
            "configMap: {name: training}",
            "generates `train-a` and `train-b`, which nothing uses; write one of them",
        ),
        (CONFIG, "configMap: {name: train-confg}", "did you mean `train-config`?"),
        (CONFIG, "configMap: {name: settings, optional: true}", ""),
        (CONFIG, "configMap: {name: train-config}", ""),
        (SECRET, "configMap: {name: hub}", ""),
        (CONFIG, "configMap: {name: dashboards}", ""),
    ],
)
def test_a_generated_object_that_nothing_uses_is_meant_by_a_name_that_nothing_makes(generator, source, words, tmp_path):
    found = lint(tmp_path, {"job.yaml": job(volume(source)), "kustomization.yaml": build(generator)})

    assert [(each["file"], each["line"], each["severity"]) for each in found] == [("job.yaml", 10, "warning")] * bool(
        words
    )
    assert all(words in each["message"] for each in found)


def test_a_generated_object_that_is_used_is_not_meant(tmp_path):
    text = job("      volumes: [{name: c, configMap: {name: train-config}}, {name: d, configMap: {name: own}}]\n")
    assert lint(tmp_path, {"job.yaml": text, "kustomization.yaml": build(CONFIG)}) == []


def test_an_unused_object_of_the_file_is_meant_by_a_name_that_is_near(tmp_path):
    config = "---\n" + obj("ConfigMap", "ml", "train-config") + "data: {a: b}\n"
    (found,) = lint(tmp_path, {"a.yaml": job(volume("configMap: {name: training-config}")) + config})
    assert found["line"] == 10
    assert found["message"].endswith("but there is `train-config`, which nothing uses; write `train-config`")
    assert lint(tmp_path, {"a.yaml": job(volume("configMap: {name: dashboards}")) + config}) == []


def claim(name: str) -> str:
    return volume(f"persistentVolumeClaim: {{claimName: {name}}}")


BINDING = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: a, namespace: ml}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects:
  - kind: ServiceAccount
    name: trainer
    namespace: default
"""


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("ServiceAccount", "      serviceAccountName: shared\n"),
        ("Secret", "      imagePullSecrets: [{name: shared}]\n"),
        ("Secret", volume("secret: {secretName: shared}")),
        ("ConfigMap", volume("configMap: {name: shared}")),
        ("PersistentVolumeClaim", claim("shared")),
    ],
)
def test_an_object_of_another_namespace_is_named_with_it(kind, more, tmp_path):
    other = obj(kind, "ml-prod", "shared")
    (found,) = lint(tmp_path, {"job.yaml": job(more), "other.yaml": other})

    assert (found["file"], found["line"], found["severity"]) == ("job.yaml", 10, "warning")
    reason = f"{kind} `shared` is in namespace `ml-prod`, and cannot be used in namespace `ml`"
    assert found["message"] == f"{reason}; write the same namespace in both"
    for namespace in ("ml", ""):
        assert lint(tmp_path, {"other.yaml": obj(kind, namespace, "shared")}) == []


@pytest.mark.parametrize(
    "files",
    [
        {"dev/other.yaml": obj("Secret", "dev", "hub"), "prod/job.yaml": job(volume("secret: {secretName: hub}"))},
        {
            "other.yaml": obj("Secret", "dev", "hub", ", annotations: {reflector.v1.k8s.emberstack.com/a: b}"),
            "job.yaml": job(volume("secret: {secretName: hub}")),
        },
        {"other.yaml": obj("ServiceAccount", "dev", "default"), "job.yaml": job("      serviceAccountName: default\n")},
    ],
    ids=["folders of environments", "copied", "default"],
)
def test_what_may_be_in_both_namespaces_is_not_reported(files, tmp_path):
    assert lint(tmp_path, files) == []


def test_the_subject_of_a_binding_is_in_another_namespace(tmp_path):
    (found,) = lint(tmp_path, {"a.yaml": f"{BINDING}---\n{obj('ServiceAccount', 'ml', 'trainer')}"})
    assert found["line"] == 8
    assert found["message"].startswith("ServiceAccount `trainer` is in namespace `ml`, and the binding names `default`")


def test_a_misspelled_account_is_named(tmp_path):
    files = {"job.yaml": job("      serviceAccountName: trainner\n"), "sa.yaml": obj("ServiceAccount", "ml", "trainer")}
    (found,) = lint(tmp_path, files)
    assert found["line"] == 10
    assert found["message"].endswith("; did you mean `trainer`?")


TASKS = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train, namespace: ml}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 4
      restartPolicy: Never
      template:
        spec:
          containers: [{name: pytorch, image: "example.com/a:1", command: [a], volumeMounts: [{name: d, mountPath: /}]}]
          volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]
"""
CLAIM = (
    obj("PersistentVolumeClaim", "ml", "data") + "spec: {accessModes: [%s], resources: {requests: {storage: 1Gi}}}\n"
)


@pytest.mark.parametrize(
    ("mode", "severities", "replicas"),
    [
        ("ReadWriteOncePod", ["error"], 4),
        ("ReadWriteOnce", ["warning"], 4),
        ("ReadWriteMany", [], 4),
        ("ReadWriteOncePod", [], 1),
    ],
)
def test_a_claim_of_one_node_has_pods_on_several(mode, severities, replicas, tmp_path):
    (tmp_path / "claim.yaml").write_text(CLAIM % mode)
    (tmp_path / "train.yaml").write_text(TASKS.replace("replicas: 4", f"replicas: {replicas}"))
    found = json.loads(lint_paths(tmp_path, (".",), (), format_="json").out)["findings"]
    found = [each for each in found if each["rule"] in ("shared-single-node-claim", "internal-error")]

    assert [each["severity"] for each in found] == severities
    words = f"4 pods mount the claim `data`, which is {mode}; use `ReadWriteMany` or one claim per pod"
    assert [(each["file"], each["line"], each["message"]) for each in found] == [("train.yaml", 12, words)][
        : len(found)
    ]
