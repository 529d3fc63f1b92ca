"""Findings about several objects of files that are linted by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linting import lint_paths

from jobgen.check.idle_services import find_idle_services

RULES = ("conflicting-copies", "role-of-another-kind", "service-selects-nothing", "unknown-reference", "internal-error")


def lint(folder: Path, files: dict[str, str]) -> list[tuple[str, int, str, str]]:
    """Return the file, line, rule and message of each finding about several objects."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    findings = json.loads(lint_paths(folder, (".",), (), format_="json").out)["findings"]
    return [(each["file"], each["line"], each["rule"], each["message"]) for each in findings if each["rule"] in RULES]


def role(*resources: str, name: str = "runner") -> str:
    rules = "".join(f'- {{apiGroups: [""], resources: [{each}], verbs: [get]}}\n' for each in resources)
    head = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
    return f"{head}metadata: {{name: {name}}}\nrules:\n{rules}---\n"


def cron_job(name: str) -> str:
    pod = "{restartPolicy: Never, containers: [{name: a, image: 'example.com/a:1'}]}"
    spec = f"{{schedule: '0 * * * *', jobTemplate: {{spec: {{template: {{spec: {pod}}}}}}}}}"
    return f"apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: {name}, namespace: a}}\nspec: {spec}\n"


def test_copies_that_replace_each_other_are_reported_at_each(tmp_path):
    files = {
        "m/a.yaml": role("pods", "nodes") + cron_job("a"),
        "m/b.yaml": role("pods", "events") + cron_job("b"),
        "m/c.yaml": role("events", "pods") + cron_job("c"),
        "m/shared.yaml": role("pods", "nodes", "events"),
        "n/a.yaml": role("secrets") + cron_job("a"),
    }
    found = lint(tmp_path, files)

    assert [entry[:3] for entry in found] == [(f"m/{name}.yaml", 3, "conflicting-copies") for name in "abc"]
    assert found[0][3] == (
        "`ClusterRole runner` is also in `m/b.yaml` and 1 other file, with different `rules`, and the copy that is"
        " applied last replaces the others; keep one copy, or give them different names"
    )
    assert found[1][3].startswith("`ClusterRole runner` is also in `m/a.yaml`, with different `rules`, ")


SILENT = {
    "equal copies": {"a.yaml": role("pods") + cron_job("a"), "b.yaml": role("pods") + cron_job("b")},
    "another order": {
        "a.yaml": role("pods", "nodes") + cron_job("a"),
        "b.yaml": role("nodes", "pods") + cron_job("b"),
    },
    "alternatives": {"a.yaml": role("pods") + cron_job("a"), "b.yaml": role("nodes") + cron_job("a")},
    "alternatives of roles": {"a.yaml": role("pods"), "b.yaml": role("nodes")},
    "several folders": {"a/a.yaml": role("pods") + cron_job("a"), "b/b.yaml": role("nodes") + cron_job("b")},
    "folder of kustomize": {
        "a.yaml": role("pods") + cron_job("a"),
        "b.yaml": role("nodes") + cron_job("b"),
        "kustomization.yaml": "resources: [a.yaml]\n",
    },
}


@pytest.mark.parametrize("files", SILENT.values(), ids=SILENT)
def test_alternatives_and_equal_copies_are_silent(tmp_path, files):
    assert lint(tmp_path, files) == []


def test_two_copies_in_one_file_are_reported(tmp_path):
    found = lint(tmp_path, {"a.yaml": role("pods") + role("nodes")})

    assert [entry[:3] for entry in found] == [("a.yaml", line, "conflicting-copies") for line in (3, 9)]
    assert found[0][3].startswith("`ClusterRole runner` is twice in this file, with different `rules`, ")


def service(selector: str, name: str = "web", namespace: str = "") -> str:
    where = f", namespace: {namespace}" if namespace else ""
    spec = f"{{ports: [{{port: 80}}], selector: {{{selector}}}}}"
    return f"apiVersion: v1\nkind: Service\nmetadata: {{name: {name}{where}}}\nspec: {spec}\n---\n"


def deployment(labels: str, name: str = "web", namespace: str = "") -> str:
    where = f", namespace: {namespace}" if namespace else ""
    template = f"{{metadata: {{labels: {{{labels}}}}}, spec: {{containers: [{{name: a, image: 'example.com/a:1'}}]}}}}"
    spec = f"{{selector: {{matchLabels: {{{labels}}}}}, template: {template}}}"
    return f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}{where}}}\nspec: {spec}\n---\n"


IDLE = {
    "a label is missing": (service("app: web, tier: front") + deployment("app: web"), "`tier: front`"),
    "a value differs": (service("app: web") + deployment("app: wep"), "`app: web`"),
    "the nearest of several": (
        service("app: web, tier: x") + deployment("app: db", "db") + deployment("app: web"),
        "`tier: x`",
    ),
}


@pytest.mark.parametrize(("text", "label"), IDLE.values(), ids=IDLE)
def test_service_that_selects_no_pod_of_its_file(tmp_path, text, label):
    ((file, line, rule, message),) = lint(tmp_path, {"a.yaml": text})

    assert (file, line, rule) == ("a.yaml", 4, "service-selects-nothing")
    assert message.startswith(f"no pod of these objects has {label}: the template of `Deployment web` ")


CUSTOM = "apiVersion: example.com/v1\nkind: Web\nmetadata: {name: web}\n---\n"
NOT_IDLE = {
    "it selects one": service("app: web") + deployment("app: db", "db") + deployment("app: web, x: y"),
    "pods of another file": service("app: db") + deployment("app: web") + deployment("app: queue", "queue"),
    "labels that controllers add": service("job-name: a, app: web") + deployment("app: web"),
    "a custom resource": service("app: web, tier: x") + deployment("app: web") + CUSTOM,
    "another namespace": service("app: web, x: y", namespace="a") + deployment("app: web", namespace="b"),
    "placeholders": service("app: '${NAME}', x: y") + deployment("app: web"),
    "no workload": service("app: web"),
    "no label in common": service("run: web") + deployment("app: web"),
}


@pytest.mark.parametrize("text", NOT_IDLE.values(), ids=NOT_IDLE)
def test_service_that_may_select_pods_is_silent(tmp_path, text):
    assert lint(tmp_path, {"a.yaml": text}) == []


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), min_size=1)


@given(LABELS, st.lists(LABELS, max_size=3))
def test_service_that_selects_a_pod_is_never_reported(selector, pods):
    objects: list[dict] = [{"apiVersion": "v1", "kind": "Service", "metadata": {}, "spec": {"selector": selector}}]
    objects += [{"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels}} for labels in pods]
    matches = any(selector.items() <= labels.items() for labels in pods)

    found = [number for number, _ in find_idle_services(objects)]
    assert found in ([], [0])
    assert not (matches and found)


BINDING = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata: {name: a}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: a}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: a
"""


def test_a_binding_names_a_role_of_its_file_as_another_kind(tmp_path):
    ((file, line, rule, message),) = lint(tmp_path, {"a.yaml": BINDING % "Role"})
    assert (file, line, rule) == ("a.yaml", 11, "role-of-another-kind")
    assert (
        message
        == "`a` is a Role, and there is no ClusterRole of this name, so the binding grants nothing; write `kind: Role`"
    )
    assert lint(tmp_path, {"a.yaml": BINDING % "ClusterRole"}) == []


KAFKA = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
metadata: {name: events}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata:
  name: rates
  labels: {strimzi.io/cluster: %s}
"""


@pytest.mark.parametrize("name", ["prices", "events", "$CLUSTER"])
def test_a_topic_names_a_cluster_of_its_file(tmp_path, name):
    found = lint(tmp_path, {"a.yaml": KAFKA % name})
    alone = lint(tmp_path, {"a.yaml": (KAFKA % name).partition("---\n")[2]})

    reason = "these files have a Kafka, but not `prices`, so the operator ignores the KafkaTopic"
    message = f"{reason}; write the name of the Kafka, such as `events`"
    assert found == ([("a.yaml", 9, "unknown-reference", message)] if name == "prices" else [])
    assert alone == []


@pytest.mark.parametrize(
    ("selector", "labels", "name", "advice"),
    [
        ("app: ray-head", "app: ray-worker", "ray-head", "add the pods that it is for, or use the same labels in both"),
        ("app: ray-haed", "app: ray-head", "ray-head", "has `app: ray-head`; use the same labels in both"),
    ],
)
def test_the_service_of_a_head_is_not_for_the_workers(tmp_path, selector, labels, name, advice):
    ((*_, message),) = lint(tmp_path, {"a.yaml": service(selector, name) + deployment(labels, "ray")})

    assert message.endswith(advice)
