"""Slips of new users, each with the one line that is to change and what to write there."""

from __future__ import annotations

import subprocess

import pytest
from command import run_jobgen_text
from lintfiles import lint_files, overlay

QUEUES = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: a100}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: research-cq}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu]
      flavors: [{name: a100, resources: [{name: cpu, nominalQuota: 10}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: research, namespace: ml}
spec: {clusterQueue: NAME}
"""
JOB = """\
---
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: ml, labels: {kueue.x-k8s.io/queue-name: research}}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: a, image: "registry.example.com/a:1.0.0", resources: {requests: {cpu: 1}}}]
"""


@pytest.mark.parametrize("job", ["", JOB])
@pytest.mark.parametrize("name", ["research", "reserch-cq", "cq"])
def test_a_wrong_cluster_queue_is_one_finding_at_the_local_queue_with_or_without_jobs(tmp_path, job, name):
    found = lint_files(tmp_path, {"jobs/queues.yaml": QUEUES.replace("NAME", name) + job})
    [(rule, line, message)] = [
        (each["rule"], each["line"], each["message"]) for each in found if "ClusterQueue" in each["message"]
    ]

    assert (rule, line) == ("inadmissible-job" if job else "unknown-cluster-queue", 17)
    assert f"there is no ClusterQueue `{name}`" in message
    assert message.endswith("did you mean `research-cq`?")


def test_a_cluster_queue_of_which_nothing_is_known_is_not_reported(tmp_path):
    found = lint_files(tmp_path, {"jobs/queues.yaml": QUEUES.replace("NAME", "other")})
    assert not [each for each in found if "there is no ClusterQueue" in each["message"]]


def test_an_environment_is_no_revision(tmp_path):
    files = {"jobs/a.yaml": JOB.removeprefix("---\n"), **overlay("{namespace: ml}", "prod")}
    lint_files(tmp_path, files)
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (("init", "-q"), ("add", "-A"), (*author, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    done = run_jobgen_text(tmp_path, "diff", "prod")

    assert done.returncode == 2
    assert "`prod` is an environment, and no revision; write `jobgen diff -e prod`" in done.stderr
    assert "there is no revision `staging`" in run_jobgen_text(tmp_path, "diff", "staging").stderr


CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: ml}
data:
  ON: "1"
  no: "2"
  "yes": "3"
"""


def test_a_key_that_yaml_reads_as_a_boolean_is_quoted(tmp_path):
    (tmp_path / "a.yaml").write_text(CONFIG)
    done = run_jobgen_text(tmp_path, "lint", "a.yaml", "--format", "concise")

    assert "a.yaml:5:3: warning: the key `ON` is read as `true` by YAML; quote it [ambiguous-scalar]" in done.stdout
    assert "a.yaml:6:3: warning: the key `no` is read as `false` by YAML; quote it" in done.stdout
    assert "a.yaml:7" not in done.stdout
    run_jobgen_text(tmp_path, "lint", "a.yaml", "--fix")
    assert (tmp_path / "a.yaml").read_text() == CONFIG.replace("ON:", '"ON":').replace("no:", '"no":')


def test_two_keys_that_are_the_same_boolean_are_one_error(tmp_path):
    (tmp_path / "a.yaml").write_text(CONFIG.replace("no:", "y:"))
    done = run_jobgen_text(tmp_path, "lint", "a.yaml", "--format", "concise")

    message = "`ON` and `y` are both the key `true` in YAML; Kubernetes keeps only the last one; quote them"
    assert f"a.yaml:6:3: error: {message} [duplicate-key]" in done.stdout


SERVE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: ml}
spec:
  selector: {matchLabels: {app: SELECTED}}
  template:
    metadata: {labels: {app: LABELED}}
    spec:
      containers: [{name: a, image: "registry.example.com/a:1.0.0"}]
---
"""
HPA = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: serve, namespace: ml}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}
  maxReplicas: 4
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
"""
KEDA = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: serve, namespace: ml}
spec:
  scaleTargetRef: {name: NAME}
  triggers: [{type: cron, metadata: {timezone: UTC, start: 0 6 * * *, end: 0 20 * * *, desiredReplicas: "3"}}]
"""
BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: serve, namespace: ml}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {app: NAME}}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: serve, namespace: ml}
spec: {selector: {app: NAME}, ports: [{port: 80}]}
"""


def list_places(folder, text, rules):
    found = lint_files(folder, {"jobs/serve.yaml": text})
    return [(each["line"], each["rule"]) for each in found if each["rule"] in rules]


RULES = ("invalid-selector", "service-selects-nothing", "unknown-reference")


@pytest.mark.parametrize("name", ["srve", "server", "predictor"])
@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        (HPA, 15, "unknown-reference"),
        (KEDA, 15, "unknown-reference"),
        (BUDGET, 16, "service-selects-nothing"),
        (SERVICE, 14, "service-selects-nothing"),
    ],
)
def test_what_names_a_workload_wrongly_is_reported_there(tmp_path, text, line, rule, name):
    serve = SERVE.replace("SELECTED", "serve").replace("LABELED", "serve")
    assert list_places(tmp_path, serve + text.replace("NAME", name), RULES) == [(line, rule)]
    assert list_places(tmp_path, serve + text.replace("NAME", "serve"), RULES) == []


def test_an_autoscaler_of_another_object_may_be_meant_for_what_the_cluster_has(tmp_path):
    serve = SERVE.replace("SELECTED", "serve").replace("LABELED", "serve")
    scaled = HPA.replace("NAME", "serve")
    other = HPA.replace("NAME", "predictor").replace("{name: serve,", "{name: other,")
    assert list_places(tmp_path, f"{serve}{scaled}---\n{other}", RULES) == []


@pytest.mark.parametrize("text", [SERVICE, BUDGET])
def test_labels_that_fit_neither_the_selector_nor_the_service_are_one_finding(tmp_path, text):
    serve = SERVE.replace("SELECTED", "serve").replace("LABELED", "server")
    assert list_places(tmp_path, serve + text.replace("NAME", "serve"), RULES) == [(5, "invalid-selector")]


CLAIMS = """\
apiVersion: batch/v1
kind: Job
metadata: {name: prepare, namespace: ml}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: a, image: "registry.example.com/a:1.0.0", volumeMounts: [{name: data, mountPath: /data}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: NAME}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: ml}
spec: {accessModes: [MODE], resources: {requests: {storage: 5Gi}}}
"""


def lint_alone(folder, text):
    (folder / "a.yaml").write_text(text)
    return run_jobgen_text(folder, "lint", "a.yaml", "--format", "concise").stdout


def test_a_claim_that_nothing_makes_beside_one_that_nothing_uses(tmp_path):
    found = lint_alone(tmp_path, CLAIMS.replace("NAME", "dataset").replace("MODE", "ReadWriteMany"))
    assert "a.yaml:9:65: warning: nothing here makes the PersistentVolumeClaim `dataset`, but there is `data`" in found
    right = CLAIMS.replace("NAME", "data").replace("MODE", "ReadWriteMany")
    assert lint_alone(tmp_path, right) == ""
    assert lint_alone(tmp_path, right.replace("claimName: data", "claimName: models")) == ""


def test_the_short_name_of_an_access_mode_is_known(tmp_path):
    found = lint_alone(tmp_path, CLAIMS.replace("NAME", "data").replace("MODE", "RWX"))
    assert "did you mean `ReadWriteMany`?" in found


def test_a_metric_that_pods_do_not_have_scales_nothing(tmp_path):
    text = HPA.replace("NAME", "serve").replace("name: cpu", "name: nvidia.com/gpu")
    serve = SERVE.replace("SELECTED", "serve").replace("LABELED", "serve")
    found = lint_files(tmp_path, {"jobs/serve.yaml": serve + text})
    assert [(each["line"], each["rule"]) for each in found] == [(17, "autoscaler-without-effect")]


SCRIPT = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: ml}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: a
        image: registry.example.com/a:1.0.0
        command:
        - bash
        - -c
        - QUOTEset -e
BETWEEN
          torchrun train.pyQUOTE
"""


@pytest.mark.parametrize("quote", ["'", '"', ""])
def test_an_empty_line_keeps_the_lines_of_a_script_apart(tmp_path, quote):
    text = SCRIPT.replace("QUOTE", quote)
    assert "folded-item" not in lint_alone(tmp_path, text.replace("BETWEEN", ""))
    assert "a.yaml:14:9: warning: without `|`, YAML joins the lines" in lint_alone(
        tmp_path, text.replace("BETWEEN\n", "")
    )
