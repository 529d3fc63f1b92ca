"""Agents of a node keep what they need, jobs do not; volumes that webhooks add are known where they are added."""

from __future__ import annotations

import pytest
from lintfiles import lint_with_infos as lint_files

WORKLOAD = """
apiVersion: GROUP
kind: KIND
metadata: {name: a, namespace: ml}
spec:
  SELECTOR
  template:
    metadata: {labels: {a: b}}
    spec:
      RESTART
      POD
      containers:
      - name: a
        image: registry.example.com/a:1
        CONTAINER
"""
PRIVILEGED = "securityContext: {privileged: true}"
LIMITS = "resources: {limits: {nvidia.com/gpu: 1, memory: 1Gi}}"


def write_workload(kind: str, pod: str = "", container: str = PRIVILEGED) -> str:
    """Return the text of a workload with some fields of its pod and container."""
    is_job = kind == "Job"
    text = WORKLOAD.replace("GROUP", "batch/v1" if is_job else "apps/v1").replace("KIND", kind)
    text = text.replace("SELECTOR", "" if is_job else "selector: {matchLabels: {a: b}}")
    text = text.replace("RESTART", "restartPolicy: Never" if is_job else "")
    return text.replace("POD", pod).replace("CONTAINER", container)


def mount(path: str) -> str:
    """Return the field `volumes` with a folder of the node."""
    return f"volumes: [{{name: a, hostPath: {{path: {path}}}}}]"


MOUNTED = f"{PRIVILEGED}\n        volumeMounts: [{{name: a, mountPath: /a}}]"
WORKLOADS = {
    "a DaemonSet": (write_workload("DaemonSet"), ["node-agent"]),
    "a DaemonSet with all of it": (
        write_workload("DaemonSet", f"hostPID: true\n      hostNetwork: true\n      {mount('/')}", MOUNTED),
        ["node-agent"],
    ),
    "a DaemonSet that only reads logs": (
        write_workload("DaemonSet", mount("/var/log/pods"), "volumeMounts: [{name: a, mountPath: /a}]"),
        [],
    ),
    "a Deployment": (write_workload("Deployment"), ["privileged-container"]),
    "a Deployment with a folder of the kubelet": (
        write_workload("Deployment", mount("/var/lib/kubelet/plugins"), MOUNTED),
        ["node-agent"],
    ),
    "a Deployment with a folder of data": (
        write_workload("Deployment", mount("/var/lib/data"), MOUNTED),
        ["host-path", "privileged-container"],
    ),
    "a Job that enters the node": (
        write_workload("Job", "hostPID: true", f"{PRIVILEGED}\n        command: [nsenter, -t, '1', reboot]"),
        ["node-agent"],
    ),
    "a Job that names the command in a script": (
        write_workload("Job", "", f"{PRIVILEGED}\n        command: [sh, -c, 'set -e; nsenter -t 1 reboot']"),
        ["node-agent"],
    ),
    "a Job with a similar command": (
        write_workload("Job", "", f"{PRIVILEGED}\n        command: [nsenter-test]"),
        ["privileged-container"],
    ),
    "a Job that trains": (
        write_workload("Job", mount("/sys"), f"{MOUNTED}\n        {LIMITS}"),
        ["host-path", "privileged-container"],
    ),
    "an agent of the cluster": (write_workload("DaemonSet").replace("namespace: ml", "namespace: kube-system"), []),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_agents_are_told_what_helps(name, tmp_path):
    text, expected = WORKLOADS[name]
    found = lint_files(tmp_path, {"a.yaml": text})
    assert sorted(each["rule"] for each in found) == expected


def test_a_message_about_an_agent_names_all_means(tmp_path):
    (found,) = lint_files(tmp_path, {"a.yaml": WORKLOADS["a DaemonSet with all of it"][0]})
    assert "(`hostPID`, `privileged`, `hostPath: /`)" in found["message"]
    assert found["severity"] == "info"


POD = """
apiVersion: v1
kind: Pod
metadata:
  name: a
  namespace: ml
  METADATA
spec:
  containers:
  - name: a
    image: registry.example.com/a:1
    volumeMounts: [{name: VOLUME, mountPath: /a}]
"""
INJECTED = {
    "gke-gcsfuse-cache": ('annotations: {gke-gcsfuse/volumes: "true"}', ""),
    "vault-secrets": ('annotations: {vault.hashicorp.com/agent-inject: "true"}', ""),
    "linkerd-identity-token": ("annotations: {linkerd.io/inject: enabled}", ""),
    "azure-identity-token": ('labels: {azure.workload.identity/use: "true"}', 'labels: {azure: "true"}'),
    "istio-envoy": ("", 'labels: {sidecar.istio.io/inject: "false"}'),
    "aws-iam-token": ("", None),
}


@pytest.mark.parametrize("volume", INJECTED)
def test_an_injected_volume_is_known_on_its_condition(volume, tmp_path):
    met, unmet = INJECTED[volume]
    text = POD.replace("VOLUME", volume)
    assert lint_files(tmp_path, {"a.yaml": text.replace("METADATA", met)}) == []
    if unmet is not None:
        (found,) = lint_files(tmp_path, {"a.yaml": text.replace("METADATA", unmet)})
        assert found["rule"] == "unknown-volume"


def test_the_template_of_a_deployment_is_validated_before_webhooks(tmp_path):
    text = write_workload("Deployment", "", "volumeMounts: [{name: aws-iam-token, mountPath: /a}]")
    assert [each["rule"] for each in lint_files(tmp_path, {"a.yaml": text})] == ["unknown-volume"]


RAY = """
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: a, namespace: ml}
spec:
  headGroupSpec:
    rayStartParams: {}
    template:
      spec:
        containers:
        - name: head
          image: rayproject/ray:2.46.0
          volumeMounts: [{name: VOLUME, mountPath: /a}]
"""


@pytest.mark.parametrize(("volume", "rules"), [("ray-token", []), ("ray-tokens", ["unknown-volume"])])
def test_kuberay_adds_volumes(volume, rules, tmp_path):
    assert [each["rule"] for each in lint_files(tmp_path, {"a.yaml": RAY.replace("VOLUME", volume)})] == rules


MPI = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: a, namespace: ml}
spec:
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers: [{name: a, image: x/y:1, volumeMounts: [{name: mpi-job-config, mountPath: /a}]}]
    Worker:
      replicas: 2
      template:
        spec:
          containers: [{name: a, image: x/y:1, volumeMounts: [{name: VOLUME, mountPath: /a}]}]
"""


@pytest.mark.parametrize(("volume", "errors"), [("ssh-auth", []), ("mpi-job-config", ["unknown-volume"])])
def test_mpi_operator_adds_volumes_by_role(volume, errors, tmp_path):
    found = lint_files(tmp_path, {"a.yaml": MPI.replace("VOLUME", volume)})
    assert [each["rule"] for each in found if each["severity"] == "error"] == errors
