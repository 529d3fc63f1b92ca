"""A rule's severity keeps the promise of docs/checked.md: an error certainly fails, and what only may fail is none."""

import ast
import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from linting import lint_paths

from jobgen.check.rule_docs import all_rule_docs
from jobgen.check.rules import Rule, all_rules

RULES = {rule.name: rule for rule in all_rules()}

# What happens if a finding is not fixed, and the severities that this allows.
SEVERITIES = {
    "refused": {"error"},  # by the API server, a webhook, or the tool that applies
    "never-starts": {"error"},
    "never-ends": {"error"},
    "fails": {"error"},  # after the start
    "loses-work": {"error"},  # trains again, or trains something else than was meant
    "forbidden": {"error"},  # by a limit that the repository declares itself
    "leaks": {"error"},
    "uncertain": {"warning"},  # one of these, if something is so that no file says: UNCERTAIN says what
    "ignored": {"warning"},  # a part of the object has no effect
    "wastes": {"warning"},
    "exposes": {"warning"},  # the pod can do more than it needs
    "risk": {"warning", "info"},
    "advice": {"info"},
}

CONSEQUENCES = {
    "refused": """bad-job-name bad-max-exec-time bad-patch-manager bad-queue-name bad-topology-request
        chief-and-master cohort-cycle elastic-job-unsupported elastic-without-worker env-in-runtime-patch
        exceeds-limit-range exceeds-quota field-newer-than-operator generated-name invalid-replica-count
        kind-not-served long-job-name missing-main-container missing-replicas missing-role mixed-mpi-versions
        nproc-per-node-twice number-out-of-bounds pod-security-violation priority-differs-from-class
        priority-without-class rejected-by-operator rejected-child reserved-runtime-env role-without-template
        invalid-kueue-configuration service-port-clash
        unfilled-placeholder unknown-enum-value unknown-reference unknown-role unsupported-restart-policy""",
    "never-starts": """command-in-one-string forbidden-root-user unknown-medium gang-beyond-queue impossible-placement
        gpu-share-range inadmissible-job malformed-image
        memory-too-small min-available-too-high never-starts pod-name-collision queue-quota-exceeded unknown-queue""",
    "never-ends": "never-completes",
    "fails": """elastic-bounds launch-refused launcher-without-script missing-mounted-file model-too-large
        nnodes-mismatch script-syntax unknown-nproc-per-node""",
    "loses-work": "ttl-reruns-job",
    "forbidden": """foreign-namespace foreign-priority-class foreign-queue foreign-service-account
        foreign-team-label foreign-traffic foreign-volume kind-not-allowed platform-not-allowed sweep-too-large
        team-budget-exceeded team-cloud-identity team-node-name team-untracked-object unqueued-accelerators
        unrequested-devices""",
    "leaks": "plain-secret",
    "ignored": """argocd-typo arguments-after-script autoscaler-without-effect backoff-without-restarts bad-sync-wave
        deprecated-nproc-per-node gang-without-volcano ignored-device-claims ineffective-queue-label
        ineffective-quota kueue-label-as-annotation misread-annotation overwritten-env overwritten-restart-policy
        pod-security-label-typo queue-label-typo runtime-patch-time topology-on-job
        undefined-reference unexpanded-variable unknown-cluster-queue unknown-cohort unknown-probe-port""",
    "wastes": """cluster-outlives-job idle-command idle-gpus launch-variables launcher-on-one-pod overlapping-runs
        ray-gpu-mismatch uncounted-claim unmounted-volume unreachable-quota wave-without-health""",
    "exposes": "dangerous-capability host-namespaces host-path privileged-container runtime-socket",
    "risk": """blocked-eviction exposed-devices file-mounted-as-folder
        gpu-image-without-gpus finalizer-in-git gpu-budget-exceeded lost-checkpoints lost-logs
        hook-without-health
        install-at-start instance-label-on-pods lost-exit-code kueue-and-volcano-queues min-available-too-low
        missed-deadline
        missing-memory missing-namespace missing-queue missing-requests missing-resources mixed-image-versions
        mixed-schedulers mutable-image-tag queue-label-on-pods queue-support-ending queued-tolerations
        shared-output small-shared-memory stale-image suspend-in-git template-text uncounted-accelerators
        uncounted-devices
        unnecessary-image-pull uneven-priority untagged-image curly-quote foreign-path single-process split-argument
        stray-quote unused-parallelism""",
    "advice": "gpu-share-without-count node-agent non-canonical-quantity",
}

# Rules that report what would be refused, never start or fail, and what is not known about it.
UNCERTAIN = {
    "admits-nothing": "a queue can be closed on purpose; a job in it is an error of its own, `inadmissible-job`",
    "broken-script": "nothing may start the script; where a command does, it is an error of another rule",
    "child-name-collision": "the objects can be meant for different clusters",
    "command-split-by-shell": "the submitter may have what the rest of the entrypoint needs",
    "compute-domain-size": "newer drivers start pods before all nodes have joined",
    "conflicting-autoscalers": "the objects can be meant for different clusters",
    "cpu-image-on-gpus": "the name of an image does not prove what is in it",
    "cpu-too-large": "there are machines with more CPUs",
    "decimal-file-mode": "which user reads the files",
    "dropped-field": "the gate may be on",
    "duplicate-role": "only the operator's documents are public",
    "endless-sidecar": "the image or a script can end the program in another way",
    "endless-sync": "Kueue or a person can resume the Job, and newer releases of Argo CD wait for its result",
    "failing-probe": "the server may be ready in time",
    "feature-gate-off": "the gate may be on; if the environment declares its gates, it is an error",
    "fixed-node": "the node may have room",
    "flavor-without-nodes": "an autoscaler may add nodes",
    "flux-substitution": "whether Flux substitutes is decided where the Kustomization is",
    "forced-sync": "Flux deletes only if a change is rejected; both options of Argo CD together are an error",
    "gang-beyond-pods": "something else may create more pods",
    "git-repo-volume": "the gate may be on before 1.36; with 1.36 declared, it is an error",
    "gpu-typo": "a device plugin can offer any name",
    "host-network-dns": "the DNS of a node may know the cluster",
    "injected-proxy": "the mesh can be configured to start its proxy first, and to stop it last",
    "larger-than-nodes": "an autoscaler may add nodes",
    "launcher-command-on-workers": "a program may listen for the launcher; a worker that calls `mpirun` is an error",
    "master-worker-gpu-mismatch": "a program may train without NCCL",
    "missing-completion-index": "a program may have a default for an empty index",
    "missing-initializer": "an administrator may have added the initializer to the runtime",
    "missing-shm": "a program may need no shared memory",
    "misspelled-claim": "something else may create the claim",
    "misspelled-kind": "the cluster may have such a kind",
    "misspelled-scheduler": "the cluster may have a scheduler of that name",
    "mixed-gpu-resources": "a node may offer both resources",
    "mpi-slots-mismatch": "other MPI implementations share slots; with Open MPI, it is an error",
    "needs-later-object": "the object can exist in the cluster from before",
    "nproc-gpu-mismatch": "a program may train on the CPU; with NCCL, it is an error",
    "object-too-large": "server-side apply has no such limit; above the limit of etcd, it is an error",
    "overlapping-selectors": "newer releases of Kubernetes also look at the owner of a pod",
    "owner-references-in-git": "the owner may exist in this cluster",
    "policy-without-effect": "a kubelet can evict the pod, which then fails",
    "read-only-output": "a program may not write at this path; what it refuses is known when it runs",
    "reapply-refused": "the first apply succeeds, and the job runs",
    "retry-hangs": "the pod with index 0 has to fail first",
    "role-of-another-kind": "the cluster may have a role of the other kind",
    "runtime-mismatch": "a program may need no GPUs; what the webhook rejects is an error",
    "runtime-without-trainer": "a runtime may need nothing of its jobs",
    "scheduling-gate": "a controller may remove the gate",
    "server-managed-field": "the API server drops most of these fields, and refuses some in some requests only",
    "shared-device-claim": "a device of the network can be used from several nodes",
    "shared-single-node-claim": "all pods may run on one node; `ReadWriteOncePod` is an error",
    "shell-syntax-without-shell": "some images have a program `cd`, and a program may read `&&`",
    "shm-over-memory": "the volume may never be full",
    "shm-too-small": "a program may write nothing to the volume",
    "slots-gpu-mismatch": "processes may share a GPU",
    "stuck-after-admission": "the pods may get nodes that they tolerate",
    "stuck-rollout": "an autoscaler may add nodes",
    "toleration-typo": "the cluster may have a taint of that name",
    "ttl-in-runtime": "the version of Trainer decides",
    "unknown-runtime": "the runtime may exist in the cluster only",
    "unknown-storage-scheme": "an initializer of one's own may read it",
    "unreachable-rendezvous": "a program can read its address from another place",
    "unshared-folder": "whether the image has the folder, and the argument means that",
    "unusable-queue": "the cluster may have a queue that the repository does not have",
    "unusable-ssh-key": "which user the image has",
    "workers-outlive-job": "somebody can delete the job",
}

_TABLE = {name: what for what, names in CONSEQUENCES.items() for name in names.split()}
_TABLE |= dict.fromkeys(UNCERTAIN, "uncertain")
# Words for what certainly happens.
_CERTAIN = re.compile(
    r"never (?:starts|completes|runs|ends)|stays? `?pending"
    r"|\b(?:rejects|refuses|is refused|is rejected|waits? forever|hangs?|fails?)\b",
    re.IGNORECASE,
)
_SEVERITY_NAMES = {"ERROR": "error", "WARNING": "warning", "INFO": "info"}


def test_every_rule_has_one_consequence():
    listed = [name for names in CONSEQUENCES.values() for name in names.split()] + [*UNCERTAIN]

    assert sorted(listed) == sorted(RULES)


def test_the_severity_fits_the_consequence():
    assert [name for name in RULES if RULES[name].severity.value not in SEVERITIES[_TABLE[name]]] == []


def test_a_page_that_says_that_something_fails_is_an_error_or_says_why_not():
    for name, rule in RULES.items():
        if rule.severity.value != "error" and (said := _CERTAIN.search(page_of(name))):
            assert _TABLE[name] in ("uncertain", "risk", "exposes"), (name, said[0])


def test_a_page_names_each_severity_that_its_rule_can_have():
    """Severities that the code of a rule sets beside its own; those of operators without public source are general."""
    missing = [
        (name, word)
        for name, rule in RULES.items()
        for word in other_severities(rule)
        if not re.search(rf"\b{word}\b", page_of(name))
    ]

    assert missing == []


def page_of(name: str) -> str:
    doc = all_rule_docs()[name]
    return f"{doc.summary} {' '.join(doc.text.split())}"


def list_names(node: ast.AST) -> set[str]:
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return names | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def list_parts(rule: Rule) -> list[ast.AST]:
    """The function of a rule, and the functions and constants of its module that it uses."""
    tree = ast.parse(Path(str(import_module(rule.check.__module__).__file__)).read_text())
    defined = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef)}
    for each in tree.body:
        if isinstance(each, ast.Assign):
            defined |= {target.id: each for target in each.targets if isinstance(target, ast.Name)}
    seen, pending = set[str](), [rule.check.__name__]
    while pending:
        name = pending.pop()
        if name in defined and name not in seen:
            seen.add(name)
            pending += list_names(defined[name])
    return [defined[name] for name in seen]


def other_severities(rule: Rule) -> set[str]:
    """The severities that a rule and what it uses of its module name, apart from the rule's own."""
    names = {name for node in list_parts(rule) for name in list_names(node)}
    return {word for name, word in _SEVERITY_NAMES.items() if name in names} - {rule.severity.value}


# The severity of one rule in two cases, of which only the first certainly fails.


def pytorch_job(worker: str, *, replicas: int = 2, master: str = "", gpus: int = 0) -> str:
    """A PyTorchJob whose workers, and master, have these commands."""
    limits = f"resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}, " if gpus else ""
    roles = {"Master": (1, master), "Worker": (replicas, worker)}
    text = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a, namespace: b}\n"
    text += "spec:\n  pytorchReplicaSpecs:\n"
    for name, (count, command) in roles.items():
        container = f"{{name: pytorch, image: 'a/b:1', {limits}command: [{command}]}}"
        text += (
            f"    {name}: {{replicas: {count}, template: {{spec: {{containers: [{container}]}}}}}}\n" if command else ""
        )
    return text


def mpi_job(command: str, version: str = "v2beta1", spec: str = "") -> str:
    container = f"{{name: mpi, image: 'a/b:1', command: [{command}]}}"
    return f"""\
apiVersion: kubeflow.org/{version}
kind: MPIJob
metadata: {{name: a, namespace: b}}
spec:
  slotsPerWorker: 4
  {spec}
  mpiReplicaSpecs:
    Launcher: {{replicas: 1, template: {{spec: {{containers: [{container}]}}}}}}
    Worker: {{replicas: 2, template: {{spec: {{containers: [{{name: mpi, image: 'a/b:1'}}]}}}}}}
"""


def train_job(runtime: str, command: str = "") -> str:
    return f"""\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: a, namespace: b}}
spec:
  runtimeRef: {{name: {runtime}}}
  trainer: {{numNodes: 2, numProcPerNode: -5{command and f", command: [{command}]"}}}
"""


def volcano_job(command: str) -> str:
    task = "replicas: 1, template: {spec: {restartPolicy: OnFailure, containers: [{name: main, image: 'a/b:1'"
    return f"""\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: a, namespace: b}}
spec:
  plugins: {{mpi: []}}
  tasks:
    - {{name: master, {task}, command: [mpirun, a]}}]}}}}}}
    - {{name: worker, {task}{command}}}]}}}}}}
"""


GIT = """\
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: b}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: a, image: "a/b:1", volumeMounts: [{name: c, mountPath: /c}]}]
      volumes: [{name: c, gitRepo: {repository: "https://example.com/a.git"}}]
"""
CASES = [
    ("nnodes-mismatch", pytorch_job("torchrun, --nnodes=4, a.py"), "error"),
    ("nnodes-mismatch", pytorch_job("torchrun, --nnodes=2, a.py", replicas=4), "error"),
    ("nnodes-mismatch", pytorch_job("python, -m, torch.distributed.run, --nnodes, '3', a.py"), "error"),
    ("nnodes-mismatch", pytorch_job("torchrun, --nnodes=1, a.py"), "warning"),
    ("nnodes-mismatch", pytorch_job("torchrun, a.py, --nnodes=9", master="torchrun, a.py"), ""),
    ("nnodes-mismatch", pytorch_job("torchrun, a.py"), "warning"),
    ("nnodes-mismatch", pytorch_job("python, a.py, --nnodes=3"), ""),
    ("nnodes-mismatch", pytorch_job("torchrun, --standalone, a.py"), "warning"),
    ("nnodes-mismatch", pytorch_job("sh, -c, 'if [ -e a ]; then torchrun --nnodes=3 a.py; fi'"), "warning"),
    ("nnodes-mismatch", pytorch_job("torchrun, --nnodes=2, a.py", master="python, server.py"), ""),
    ("nproc-gpu-mismatch", pytorch_job("torchrun, --nproc-per-node=8, a.py, --backend=nccl", gpus=4), "error"),
    ("nproc-gpu-mismatch", pytorch_job("torchrun, --nproc-per-node=8, a.py, --backend, nccl", gpus=4), "error"),
    ("nproc-gpu-mismatch", pytorch_job("torchrun, --nproc-per-node=8, a.py", gpus=4), "warning"),
    ("nproc-gpu-mismatch", pytorch_job("torchrun, --nproc-per-node=2, a.py, --backend=nccl", gpus=4), "warning"),
    ("mpi-slots-mismatch", mpi_job("mpirun, -np, '16', ./a"), "error"),
    ("mpi-slots-mismatch", mpi_job("mpirun, -np, '16', ./a", spec="mpiImplementation: Intel"), ""),
    ("mpi-slots-mismatch", mpi_job("mpirun, --oversubscribe, -np, '16', ./a"), ""),
    ("mpi-slots-mismatch", mpi_job("mpiexec.hydra, -np, '16', ./a"), "warning"),
    ("mpi-slots-mismatch", mpi_job("mpirun, -np, '16', ./a", "v1"), "warning"),
    ("mpi-slots-mismatch", mpi_job("mpirun, --allow-run-as-root, -np, '16', ./a", "v1"), "error"),
    ("unknown-nproc-per-node", train_job("torch-distributed"), "error"),
    ("unknown-nproc-per-node", train_job("torch-distributed", "torchrun, a.py"), "error"),
    ("unknown-nproc-per-node", train_job("torch-distributed", "python, a.py"), "warning"),
    ("unknown-nproc-per-node", train_job("our-own"), "warning"),
    ("never-completes", volcano_job(", command: [/usr/sbin/sshd, -D]"), "error"),
    ("never-completes", volcano_job(", command: [sh, -c, 'mkdir -p /run/sshd; /usr/sbin/sshd -De']"), "error"),
    ("never-completes", volcano_job(", command: [sh, -c, '/usr/sbin/sshd && ./wait.sh']"), "warning"),
    ("never-completes", volcano_job(""), "warning"),
    ("never-completes", volcano_job(", command: [./worker.sh]"), ""),
]


@pytest.mark.parametrize(("rule", "text", "severity"), CASES)
def test_only_what_is_certain_is_an_error(rule, text, severity, tmp_path):
    assert severities_of(rule, tmp_path, text) == [severity] * bool(severity)


@pytest.mark.parametrize(("release", "severity"), [("1.36", "error"), ("1.35", "warning"), ("", "warning")])
def test_a_git_volume_is_an_error_where_the_release_cannot_mount_it(release, severity, tmp_path):
    settings = f'cluster: {{kubernetes: "{release}"}}\n' if release else ""

    assert severities_of("git-repo-volume", tmp_path, GIT, settings) == [severity]


def test_roles_with_one_number_of_processes_have_one_finding(tmp_path):
    command = "torchrun, a.py"
    job = pytorch_job(command, master=command, gpus=4).replace("spec:\n", 'spec:\n  nprocPerNode: "8"\n', 1)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(job)
    [message] = [each["message"] for each in lint(tmp_path) if each["rule"] == "nproc-gpu-mismatch"]

    assert "8 processes per pod, but a pod has 4 GPUs" in message


def severities_of(rule: str, folder: Path, text: str, settings: str = "") -> list[str]:
    (folder / "jobs").mkdir()
    (folder / "jobs/a.yaml").write_text(text)
    (folder / "jobgen.yaml").write_text(settings)
    return [each["severity"] for each in lint(folder) if each["rule"] == rule]


def lint(folder: Path) -> list[dict[str, str]]:
    return json.loads(lint_paths(folder, (), (), format_="json", today="2025-01-31").out)["findings"]
