"""What was once said wrongly about real incidents: advice that does not help, and effects that do not happen."""

import json
from pathlib import Path

import pytest
from linting import lint_paths

from jobgen.features.kueue.cluster_objects import parse_configuration
from jobgen.features.kueue.job_workloads import explain_unmanaged

QUEUES = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: h100}
spec: {nodeLabels: {gpu: h100}, topologyName: racks}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team-a}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu]
      flavors: [{name: h100, resources: [{name: cpu, nominalQuota: 100}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: team-a, namespace: ml}
spec: {clusterQueue: team-a}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Topology
metadata: {name: racks}
spec: {levels: [{nodeLabel: example.com/block}, {nodeLabel: kubernetes.io/hostname}]}
---
apiVersion: v1
kind: Node
metadata: {name: a, labels: {gpu: h100, kubernetes.io/hostname: a}}
status: {allocatable: {cpu: "96", pods: "110"}, conditions: [{type: Ready, status: "True"}]}
---
"""
PLACED = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: ml, labels: {kueue.x-k8s.io/queue-name: team-a}}
spec:
  template:
    metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: example.com/block}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "a/b:1", resources: {requests: {cpu: 1}}}]
"""


def ray(kind: str, spec: str = "", *, groups: int = 1) -> str:
    """A RayCluster or RayJob with a queue, this text in its spec, and groups of workers."""
    pod = 'rayStartParams: {}, template: {spec: {containers: [{name: ray, image: "a/ray:1"}]}}'
    cluster = f"headGroupSpec: {{{pod}}}\nworkerGroupSpecs:\n"
    cluster += "".join(
        f"- {{groupName: g{n}, replicas: 1, minReplicas: 1, maxReplicas: 1, {pod}}}\n" for n in range(groups)
    )
    if kind == "RayCluster":
        body = spec + cluster
    else:
        inner = spec if "enableInTree" in spec else ""
        outer = "" if inner else spec
        body = f"entrypoint: a\nshutdownAfterJobFinishes: true\n{outer}rayClusterSpec:\n"
        body += "".join(f"  {line}\n" for line in (inner + cluster).splitlines())
    metadata = "metadata: {name: a, namespace: ml, labels: {kueue.x-k8s.io/queue-name: team-a}}"
    indented = "".join(f"  {line}\n" for line in body.splitlines())
    return f"apiVersion: ray.io/v1\nkind: {kind}\n{metadata}\nspec:\n{indented}"


def messages(folder: Path, text: str, settings: str, rule: str) -> list[str]:
    (folder / "jobs").mkdir()
    (folder / "jobs/a.yaml").write_text(text)
    (folder / "jobgen.yaml").write_text(f"cluster: {{{settings}}}\n")
    found = json.loads(lint_paths(folder, (), (), format_="json", today="2025-01-31").out)["findings"]
    return [each["message"] for each in found if each["rule"] == rule]


SCALES = "enableInTreeAutoscaling: true\n"
GATE = "kueue: {version: '0.16', featureGates: {ElasticJobsViaWorkloadSlices: true}}"


@pytest.mark.parametrize(
    ("kind", "settings", "advice"),
    [
        ("RayJob", "kueue: {version: 0.15.0}", "remove autoscaling, or update Kueue to 0.15.2 or later"),
        ("RayJob", "kueue: {version: 0.14}", "remove autoscaling, or update Kueue to 0.15.2 or later"),
        ("RayCluster", "kueue: {version: 0.13.4}", "remove autoscaling, or update Kueue to 0.14 or later"),
        ("RayCluster", "kueue: {version: 0.14}", "remove autoscaling, or turn the gate on and add the annotation"),
        ("RayJob", "kueue: {version: '0.16'}", "remove autoscaling, or turn the gate on and add the annotation"),
        ("RayJob", GATE, "add it, or remove autoscaling"),
        ("RayJob", "kueue: {version: 0.18.0}", "add it, or remove autoscaling"),
        ("RayJob", "", "add it, or remove autoscaling"),
    ],
)
def test_the_annotation_is_advised_only_where_it_helps(kind, settings, advice, tmp_path):
    [message] = messages(tmp_path, ray(kind, SCALES), settings, "rejected-by-operator")

    assert message.endswith(advice)


def test_the_annotation_does_not_help_where_kueue_never_accepts_it(tmp_path):
    text = ray("RayJob", SCALES).replace(
        "metadata: {", 'metadata: {annotations: {kueue.x-k8s.io/elastic-job: "true"}, '
    )

    assert messages(tmp_path, text, "kueue: {version: 0.15.0}", "rejected-by-operator")


@pytest.mark.parametrize(
    ("kind", "spec", "groups", "version", "most"),
    [
        ("RayJob", "", 7, "0.14", 6),
        ("RayJob", "", 6, "0.14", None),
        ("RayJob", "submissionMode: HTTPMode\n", 7, "0.14", None),
        ("RayJob", "submissionMode: HTTPMode\n", 8, "0.14", 7),
        ("RayCluster", "", 7, "0.14", None),
        ("RayCluster", "", 8, "0.14", 7),
        ("RayJob", "", 9, "0.18", 8),
        ("RayJob", "", 16, "0.19", None),
        ("RayJob", "", 17, "0.19", 16),
    ],
)
def test_the_head_and_the_submitter_are_pod_sets(kind, spec, groups, version, most, tmp_path):
    found = messages(
        tmp_path, ray(kind, spec, groups=groups), f"kueue: {{version: '{version}'}}", "rejected-by-operator"
    )

    assert [message.rpartition("; ")[2] for message in found] == (
        [] if most is None else [f"use at most {most} groups"]
    )


SELECTED = {
    "apiVersion": "ray.io/v1",
    "kind": "RayJob",
    "metadata": {"name": "a", "namespace": "ml"},
    "spec": {"entrypoint": "a", "clusterSelector": {"ray.io/cluster": "b"}},
}


@pytest.mark.parametrize(
    ("version", "code"), [("0.14.1", "invalid"), ("0.14.0", "invalid"), ("0.14.2", "unmanaged"), ("0.14", "unmanaged")]
)
def test_kueue_rejects_or_ignores_a_job_of_an_existing_cluster(version, code):
    obstacle = explain_unmanaged(SELECTED, "team-a", parse_configuration({}, version))

    assert obstacle is not None
    assert obstacle.code == code
    assert ("starts at once" in obstacle.message) is (code == "unmanaged")


def test_nodes_without_a_label_of_the_topology_need_the_label(tmp_path):
    [message] = messages(tmp_path, QUEUES + PLACED, "kueue: {version: '0.14'}", "inadmissible-job")

    assert "request less" not in message
    assert message.endswith("the labels of all levels of its topology `racks`, or remove the levels that they lack")


MPI = """\
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: a, namespace: ml}
spec:
  runPolicy: {backoffLimit: 3}
  mpiReplicaSpecs:
    Launcher: {replicas: 1, restartPolicy: Never, template: {spec: {containers: [{name: mpi, image: "a/b:1"}]}}}
"""
TORCH = MPI.replace("MPIJob", "PyTorchJob").replace("mpi", "pytorch").replace("Launcher", "Master")


@pytest.mark.parametrize(("text", "is_advised"), [(MPI, False), (TORCH, True)])
def test_exit_code_is_advised_only_where_pods_are_created_again(text, is_advised, tmp_path):
    [message] = messages(tmp_path, text, "operators: {training-operator: 1.9.2}", "backoff-without-restarts")

    assert ("ExitCode" in message) is is_advised
    assert "OnFailure" in message


JOB_SET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: %s, namespace: ml}
spec:
  replicatedJobs:
    - name: workers
      replicas: 1
      template:
        spec:
          completions: 2
          parallelism: 2
          template: {spec: {restartPolicy: Never, containers: [{name: a, image: "a/b:1"}]}}
"""


@pytest.mark.parametrize(
    ("length", "version", "is_rejected"),
    [(50, "0.3.0", False), (50, "0.3.2", True), (50, "", True), (60, "0.3.0", True), (40, "0.3.2", False)],
)
def test_jobset_checks_the_names_of_pods_since_a_patch(length, version, is_rejected, tmp_path):
    settings = f"operators: {{jobset: {version}}}" if version else ""

    assert bool(messages(tmp_path, JOB_SET % ("a" * length), settings, "rejected-by-operator")) is is_rejected


SYNCED = """\
apiVersion: %s
kind: %s
metadata: {name: a, namespace: ml, annotations: {argocd.argoproj.io/sync-options: %s}}
spec: %s
"""
POD = (
    "{spec: {restartPolicy: Never, containers: [{name: pytorch, image: a, resources: {limits: {nvidia.com/gpu: 1}}}]}}"
)


@pytest.mark.parametrize(
    ("api", "kind", "option", "spec", "effect"),
    [
        ("batch/v1", "Job", "Replace=true", f"{{template: {POD}}}", "makes each sync of a changed job fail"),
        ("batch/v1", "Job", "Force=true", f"{{template: {POD}}}", "can stop the running job"),
        (
            "kubeflow.org/v1",
            "PyTorchJob",
            "Replace=true",
            f"{{pytorchReplicaSpecs: {{Master: {{replicas: 1, template: {POD}}}}}}}",
            "can stop the running job",
        ),
    ],
)
def test_a_replace_fails_where_pods_are_immutable(api, kind, option, spec, effect, tmp_path):
    [message] = messages(tmp_path, SYNCED % (api, kind, option, spec), "", "forced-sync")

    assert effect in message


MPI_HOSTS = """\
apiVersion: kubeflow.org/%s
kind: MPIJob
metadata: {name: resnet%s}
spec:
  slotsPerWorker: 8
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers: [{name: mpi, image: "a/b:1", command: [mpirun, -np, "8", -H, "%s:8", python, t.py]}]
    Worker:
      replicas: 1
      template: {spec: {%scontainers: [{name: mpi, image: "a/b:1", resources: {limits: {nvidia.com/gpu: 8}}}]}}
"""
NAMED = ", namespace: ml"
ALIASES = "hostAliases: [{ip: 10.0.0.1, hostnames: [worker-0]}], "


@pytest.mark.parametrize(
    ("version", "namespace", "host", "pod", "right", "settings"),
    [
        ("v2beta1", NAMED, "worker-0", "", "resnet-worker-0.resnet.ml.svc", ""),
        ("v2beta1", NAMED, "resnet-worker-0", "", "resnet-worker-0.resnet.ml.svc", ""),
        ("v2beta1", "", "resnet-worker-0", "", "resnet-worker-0.resnet.<namespace>.svc", ""),
        (
            "v2beta1",
            NAMED,
            "worker-0",
            "",
            "resnet-worker-0.resnet-worker.ml.svc",
            "operators: {mpi-operator: 0.4.0}",
        ),
        ("v2beta1", NAMED, "resnet-worker-0.resnet.ml.svc", "", "", ""),
        ("v2beta1", NAMED, "worker-0", ALIASES, "", ""),
        ("v2beta1", NAMED, "gpu-7.example.com", "", "", ""),
        ("v1", NAMED, "worker-0", "", "resnet-worker-0", ""),
        ("v1", NAMED, "resnet-worker-0", "", "", ""),
    ],
)
def test_hosts_of_mpirun_have_the_names_of_the_hostfile(version, namespace, host, pod, right, settings, tmp_path):
    found = messages(tmp_path, MPI_HOSTS % (version, namespace, host, pod), settings, "launch-refused")

    assert bool(right) == bool(found), found
    assert all(f"write `{right}`, or remove the option" in each for each in found)


TORCH_LINE = """apiVersion: %s
kind: %s
metadata: {name: a, namespace: ml}
spec:
  %s
"""
OF_JOB_SET = (
    "replicatedJobs: [{name: w, template: {spec: {completionMode: Indexed, completions: 4, parallelism: 4, %s}}}]"
)
OF_TORCH_JOB = "pytorchReplicaSpecs: {Master: {%s}, Worker: {replicas: 3, %s}}"


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (
            "JobSet",
            "--nnodes=4 --node_rank=$RANK",
            (
                "`--node-rank` gets an empty value, because nothing sets `RANK`; "
                "write `--node-rank=$(JOB_COMPLETION_INDEX)`"
            ),
        ),
        (
            "JobSet",
            "--nnodes=$WORLD_SIZE",
            "`--nnodes` gets an empty value, because nothing sets `WORLD_SIZE`; write `--nnodes=4`, the number of pods",
        ),
        (
            "JobSet",
            "--nnodes=4 --node_rank $RANK",
            (
                "`--node-rank` gets an empty value, because nothing sets `RANK`; "
                "write `--node-rank=$(JOB_COMPLETION_INDEX)`"
            ),
        ),
        ("JobSet", "--nnodes=4 --node_rank=$JOB_COMPLETION_INDEX", ""),
        ("JobSet", "--nnodes=4 --node_rank ${RANK:-0}", ""),
        (
            "PyTorchJob",
            "--nnodes=$SLURM_NNODES --node_rank=$SLURM_NODEID",
            (
                "`--nnodes` and `--node-rank` get empty values, because nothing sets `SLURM_NNODES` and "
                "`SLURM_NODEID`: no Slurm starts the container; remove `--nnodes`, for which `PET_NNODES` is set, "
                "and remove `--node-rank`, for which `PET_NODE_RANK` is set"
            ),
        ),
        ("PyTorchJob", "--nnodes=4 --node_rank=$RANK", ""),
    ],
)
def test_numbers_of_torchrun_that_nothing_sets(kind, options, message, tmp_path):
    line = f"torchrun {options} --nproc_per_node=1 --master_addr=a-w-0-0.a --master_port=29500 t.py"
    name = "pytorch" if kind == "PyTorchJob" else "main"
    pod = f'template: {{spec: {{containers: [{{name: {name}, image: "a/b:1", command: [bash, -c, "{line}"]}}]}}}}'
    text = OF_TORCH_JOB % (pod, pod) if kind == "PyTorchJob" else OF_JOB_SET % pod
    version = "kubeflow.org/v1" if kind == "PyTorchJob" else "jobset.x-k8s.io/v1alpha2"
    found = messages(tmp_path, TORCH_LINE % (version, kind, text), "", "launch-refused")

    assert set(found) == ({message} if message else set())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("accelerate launch --num_machines=4 --machine_rank=$RANK --num_processes=4 t.py", "`--machine_rank` gets an"),
        ("deepspeed --num_nodes=4 --num_gpus=$GPUS t.py", "`--num_gpus` gets an"),
        ("deepspeed --num_nodes=4 --num_gpus=all t.py", "`all` is not a number for `--num_gpus`"),
    ],
)
def test_numbers_of_other_launchers_that_nothing_sets(line, message, tmp_path):
    pod = f'template: {{spec: {{containers: [{{name: main, image: "a/b:1", command: [bash, -c, "{line}"]}}]}}}}'
    text = TORCH_LINE % ("jobset.x-k8s.io/v1alpha2", "JobSet", OF_JOB_SET % pod)
    [found] = messages(tmp_path, text, "", "launch-refused")

    assert message in found
    assert found.endswith("; write an integer")
