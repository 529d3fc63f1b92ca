"""Messages are true of the object at hand, on the line at fault, and one fault is one finding."""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from command import jobgen
from examples import EXAMPLES, cases
from lintfiles import PYTORCH, TODAY
from lintfiles import lint_with_infos as lint_files
from linting import lint_paths
from transcripts import write_files

from jobgen import render
from jobgen.check.checker import Checker
from jobgen.check.policy.evaluator import ClusterFacts, PolicyEvaluator
from jobgen.check.rule_docs import all_rule_docs
from jobgen.check.rules import all_rules
from jobgen.cli.result import Result
from jobgen.features.convert.commands.migrate import migrate_jobs
from jobgen.features.convert.migrate.differences import list_names
from jobgen.k8s.resources import summarize_memory
from jobgen.model.data import untraced
from jobgen.model.place import PathTo
from jobgen.pipeline.policies import load_policies
from jobgen.rendering import config
from jobgen.rendering.build import is_spec
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

ALL_CASES = [case for path in sorted(EXAMPLES.glob("*.yaml")) for case in cases(path)]
PROJECT = config.load_own(Path(__file__).parent)


# Rules: what policies say, and where

POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: own}}
spec:
  matchConstraints:
    resourceRules:
      - {{apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE], resources: [pytorchjobs]}}
  variables:
    - {{name: roles, expression: object.spec.pytorchReplicaSpecs}}
    - name: gpus
      expression: >-
        variables.roles.map(role, int(variables.roles[role].replicas)
        * int(variables.roles[role].template.spec.containers[0].resources.limits['nvidia.com/gpu'])).sum()
    - name: containers
      expression: variables.roles.Worker.template.spec.containers
  validations:
    - expression: >-
        {expression}
      messageExpression: {message}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: own}}
spec: {{policyName: own, validationActions: [Deny]}}
"""
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: docker.io/example/bert:1.4.2
  resources: {gpu: 8, memory: 64Gi}
  roles:
    master: {replicas: 1}
    worker: {replicas: 3}
  podTemplate:
    spec:
      containers:
        - name: logs
          image: registry.example.com/logs:2.0.1
"""


def find_policy(folder: Path, expression: str, message: str = "'wrong'", job: str = JOB) -> list[tuple[int, str]]:
    files = {"jobgen.yaml": "", "jobs/bert.yaml": job, "policies/own.yaml": ""}
    files["policies/own.yaml"] = POLICY.format(expression=expression, message=json.dumps(message))
    return [(found["line"], found["message"]) for found in lint_files(folder, files) if found["rule"] == "own"]


def test_message_expression_is_about_the_whole_object(tmp_path):
    found = find_policy(tmp_path, "variables.gpus <= 16", "string(variables.gpus) + ' GPUs'")
    assert {message for _, message in found} == {"32 GPUs"}


READS_IMAGE = [
    "variables.containers.all(c, c.image.startsWith('registry.example.com/'))",
    "variables.containers.filter(c, !c.image.startsWith('registry.example.com/')).size() == 0",
    "variables.containers.map(c, c.image).all(i, i.startsWith('registry.example.com/'))",
    "!variables.containers.exists(c, c.image.contains('docker.io'))",
    "!variables.containers.exists_one(c, c.image.contains('docker.io'))",
    "variables.roles.all(r, variables.roles[r].template.spec.containers.all(c, c.image.startsWith('registry')))",
    "variables.containers.all(c, c.name != 'x' && (c.image.startsWith('a') || c.image.startsWith('r')))",
]


@pytest.mark.parametrize("expression", READS_IMAGE)
def test_a_macro_blames_the_value_that_the_failing_element_reads(expression, tmp_path):
    found = find_policy(tmp_path, expression)
    assert {line for line, _ in found} == {6}  # image:


def test_a_macro_blames_the_second_element(tmp_path):
    job = JOB.replace("docker.io", "registry.example.com").replace("registry.example.com/logs", "quay.io/logs")
    found = find_policy(tmp_path, READS_IMAGE[0], job=job)
    assert {line for line, _ in found} == {15}


def test_an_element_that_lacks_a_field_is_blamed_where_its_author_wrote_it(tmp_path):
    """The name of the main container comes from the kind description, which is shown as `framework:`."""
    found = find_policy(tmp_path, "variables.containers.all(c, has(c.livenessProbe))")
    assert {line for line, _ in found} == {6, 14}


# Specs: fields of other tools and of other places in a job or an overlay.

SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  resources: {cpu: 4, memory: 16Gi}
"""


def lint_spec(folder: Path, job: str = SPEC, overlay: str = "") -> list[dict[str, Any]]:
    """The errors and warnings of a repository with one job and one overlay."""
    write_files(folder, {"jobgen.yaml": b"{}\n", "jobs/a.yaml": job.encode()})
    if overlay:
        head = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n"
        write_files(folder, {"overlays/prod/overlay.yaml": (head + overlay).encode()})
    report = json.loads(lint_paths(folder, (), (), format_="json").out)
    return [finding for finding in report["findings"] if finding["severity"] != "info"]


@pytest.mark.parametrize(
    ("field", "place"),
    [
        ("ephemeralContainers: []", "`podTemplate.spec.ephemeralContainers`"),
        ("hostNetwork: true", "`podTemplate.spec.hostNetwork`"),
        ("livenessProbe: {}", "`podTemplate.spec.containers[].livenessProbe`"),
        ("gpus: 4", "`resources.gpu`"),
        ("nprocPerNode: 4", "`pytorch.nprocPerNode`"),
        ("elasticPolicy: {}", "`pytorch.elasticPolicy`"),
        ("slotsPerWorker: 4", "`mpi.slotsPerWorker`"),
        ("tfReplicaSpecs: {}", "`roles.<role>`"),
        ("pytorchReplicaSpecs: {}", "`manifest.spec.pytorchReplicaSpecs`"),
        ("ttlSecondsAfterFinished: 4", "`runPolicy.ttlSecondsAfterFinished`"),
        ("backoffLimit: 4", "`runPolicy.backoffLimit`"),
        ("activeDeadlineSeconds: 4", "`runPolicy.activeDeadlineSeconds`"),
        ("cleanPodPolicy: All", "`runPolicy.cleanPodPolicy`"),
        ("containers: []", "`podTemplate.spec.containers`"),
        ("volumeMounts: []", "`volumes.<name>.mountPath`"),
        ("values: {}", "`defaults` and `patches`"),
        ("roles: {worker: {gpus: 4}}", "`resources.gpu`"),
        ("roles: {worker: {queue: a}}", "`queue` of the job"),
        ("roles: {worker: {hostIPC: true}}", "`podTemplate.spec.hostIPC`"),
        ("replcias: 4", "did you mean `replicas`?"),
    ],
)
def test_unknown_field_of_a_job_gets_its_place(tmp_path, field, place):
    [finding] = lint_spec(tmp_path, SPEC + f"  {field}\n")

    assert finding["rule"] == "unknown-field"
    assert place in finding["message"]


@pytest.mark.parametrize(
    ("field", "place"),
    [
        ("bases: [../base]", "`extends`"),
        ("image: bert", "`defaults.image`"),
        ("resources: [job.yaml]", "all files under jobs/ are read"),
        ("resources: {gpu: 1}", "`defaults.resources`"),
        ("patchesStrategicMerge: []", "`merge` or `manifest` in `patches`"),
        ("namePrefix: prod-", "`namespace`"),
        ("commonLabels: {}", "`defaults.labels`"),
        ("values: {}", "`defaults` and `patches`"),
        ("platform: trainer", "`cluster.platform`"),
        ("tolerations: []", "`defaults.tolerations`"),
        ("backoffLimit: 3", "`defaults.runPolicy.backoffLimit`"),
        ("initContainers: []", "`defaults.initContainers`"),
        ("patches: [{target: {kind: PyTorchJob}, merge: {}}]", "`match`"),
        ("patches: [{patch: x}]", "`merge`, `manifest` or `jsonPatch`"),
        ("patches: [{env: {}}]", "`merge.env`"),
        ("defaults: {backoffLimit: 3}", "`runPolicy.backoffLimit`"),
    ],
)
def test_unknown_field_of_an_overlay_gets_its_place(tmp_path, field, place):
    [finding] = lint_spec(tmp_path, overlay=f"  {field}\n")

    assert finding["rule"] == "unknown-field"
    assert place in finding["message"]


def test_misplaced_fields_of_a_job_are_moved(tmp_path):
    lint_spec(tmp_path, SPEC.replace("memory: 16Gi", "memory: 16Gi, gpus: 1") + "  backoffLimit: 3\n")

    lint_paths(tmp_path, (), (), format_="json", fix="safe")

    fixed = (tmp_path / "jobs/a.yaml").read_text()
    assert "runPolicy: {backoffLimit: 3}" in fixed
    assert "memory: 16Gi, gpu: 1}" in fixed


# Rules: hints are right for the kind and version at hand


def find_messages(folder: Path, rule: str, text: str) -> list[str]:
    return [found["message"] for found in lint_files(folder, {"job.yaml": text}) if found["rule"] == rule]


def test_old_kinds_of_kubeflow_are_not_those_of_tensorstack(tmp_path):
    job = """\
    apiVersion: kubeflow.org/v1alpha1
    kind: PyTorchJob
    metadata: {name: bert, namespace: ml}
    spec:
      replicaSpecs:
        - {replicas: 1, replicaType: MASTER, template: {spec: {containers: [{name: a, image: a}]}}}
    """
    assert {found["rule"] for found in lint_files(tmp_path, {"job.yaml": job})} == {"old-api-version"}


QUEUE = "kueue.x-k8s.io/queue-name"
SEPARATELY = f"label `{QUEUE}` on pods does not queue the job; at most, Kueue admits each pod separately"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            PYTORCH.replace("namespace: ml}", f"namespace: ml, labels: {{{QUEUE}: a}}}}"),
            f"Kueue ignores label `{QUEUE}` on the pods of a queued job; remove it, the job has it",
        ),
        (PYTORCH, f"{SEPARATELY}; move it to the job"),
        (
            PYTORCH.replace("PyTorchJob", "MPIJob").replace("pytorchR", "mpiR").replace("Master", "Launcher"),
            f"{SEPARATELY}; remove it, because Kueue does not manage MPIJob",
        ),
    ],
    ids=["queued", "not queued", "not managed"],
)
def test_queue_label_on_pods(text, message, tmp_path):
    text = text.replace("template:\n", f"template:\n        metadata: {{labels: {{{QUEUE}: a}}}}\n")
    assert find_messages(tmp_path, "queue-label-on-pods", text) == [message]


@pytest.mark.parametrize(
    ("more", "remedy"),
    [
        ("", "remove `privileged`"),
        ("              resources: {limits: {rdma/hca: 1}}\n", "for RDMA, `IPC_LOCK` is enough"),
        (
            "          volumes: [{name: ib, hostPath: {path: /dev/infiniband}}]\n",
            "request the devices from a device plugin, and remove `privileged`",
        ),
    ],
)
def test_ipc_lock_is_enough_only_with_a_device_plugin(more, remedy, tmp_path):
    text = PYTORCH + "              securityContext: {privileged: true}\n" + more
    message = f"privileged container `pytorch` has full control of its node; {remedy}"
    assert find_messages(tmp_path, "privileged-container", text) == [message]


RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec:
  mlPolicy: {numNodes: 1, torch: {numProcPerNode: auto}}
  template:
    spec:
      replicatedJobs:
        - name: node
          template: {spec: {template: {spec: {containers: [{name: node}]}}}}
"""


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (RUNTIME, ""),
        (PYTORCH.replace("spec:\n", "spec:\n  cleanPodPolicy: All\n", 1), "; it belongs in `spec.runPolicy`"),
        (
            PYTORCH.replace("      replicas: 1\n", "      imagePullPolicy: Always\n"),
            "; it belongs in `spec.pytorchReplicaSpecs.Master.template.spec.containers[]`",
        ),
        (PYTORCH.replace("      replicas: 1\n", "      backoffLimit: 1\n"), "; it belongs in `spec.runPolicy`"),
        (PYTORCH.replace("template:\n", "template:\n        kind: Pod\n"), ""),
        (
            PYTORCH + "              volumes: []\n",
            "; it belongs in `spec.pytorchReplicaSpecs.Master.template.spec`",
        ),
    ],
    ids=["other branch", "below", "role", "section", "unrelated", "around"],
)
def test_a_field_belongs_where_it_means_the_same(text, hint, tmp_path):
    (message,) = find_messages(tmp_path, "unknown-field", text)
    assert message.partition("; it belongs")[1:] == (hint.partition("; it belongs")[1:])


@pytest.mark.parametrize("resource", ["google.com/tpu", "aws.amazon.com/neuron", "habana.ai/gaudi"])
def test_other_accelerators_are_not_gpus(resource, tmp_path):
    more = f"              resources: {{limits: {{{resource}: 4}}}}\n"
    overlay = """\
    apiVersion: jobgen.dev/v1
    kind: Overlay
    spec: {cluster: {budgets: {teams: {nlp: {gpus: 1}}, namespaces: {ml: {gpus: 1}}}}}
    """
    files = {"jobs/bert.yaml": PYTORCH + more, "overlays/prod/overlay.yaml": overlay}
    messages = [found["message"] for found in lint_files(tmp_path, files)]
    assert not [message for message in messages if "GPU" in message]


# A value, or several, that a message names for the field that it is about.
HINT = re.compile(
    r"(?:; (?:use|write|set it to)|must be|did you mean) ((?:(?:, | or |exactly )?(?:`[^`]*`|[0-9]+\b))+)"
    r"(?=$|;|\?|, got)"
)
RESTART_POLICIES = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec: {pytorchReplicaSpecs: {Master: {replicas: 1, restartPolicy: POLICY, template: {spec: {containers: [{name: pytorch, image: "a:1"}]}}}}}
---
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
spec: {mpiReplicaSpecs: {Launcher: {replicas: 1, restartPolicy: POLICY, template: {spec: {containers: [{name: mpi, image: "a:1"}]}}}}}
---
apiVersion: batch.tensorstack.dev/v1beta1
kind: PyTorchTrainingJob
spec: {replicaSpecs: [{type: worker, replicas: 1, restartPolicy: POLICY, template: {spec: {containers: [{name: pytorch, image: "a:1"}]}}}]}
"""  # noqa: E501


def hint_documents() -> Iterator[Any]:
    texts = ["\n".join(line for line in case.lines if not line.startswith("# file:")) for case in ALL_CASES]
    texts += [RESTART_POLICIES.replace("POLICY", policy) for policy in ("Sometimes", "onFailure", "Always")]
    for text in texts:
        for document in read(text.encode(), "job.yaml", traced=True).documents:
            if isinstance(document.data, dict) and "spec" in document.data and not is_spec(document.data):
                yield document.data


def with_value_at(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    if isinstance(tree, dict):
        return {
            str(key): with_value_at(each, path[1:], value) if key == path[0] else each for key, each in tree.items()
        }
    return [with_value_at(each, path[1:], value) if index == path[0] else each for index, each in enumerate(tree)]


def test_a_value_that_a_hint_names_is_not_refused(stress):
    """Each value that a message names for a field is set there: the finding goes, and no other comes."""
    policies = PolicyEvaluator(load_policies(PROJECT.layers).policies, ClusterFacts())
    queues = {"gpu-a": {"gpus": 64}}
    applied: Counter[str] = Counter()
    clusters = ((Cluster(), policies), (Cluster(gitops="argocd", queues=queues), None))
    for number, (cluster, evaluator) in enumerate(clusters):
        # Each document is in one of the clusters, and with `--stress` in both.
        start, step = (0, 1) if stress > 1 else (number, 2)
        check = Checker(PROJECT.layers, PROJECT.kinds, cluster, all_rules(), evaluator)
        for document in islice(hint_documents(), start, None, step):
            plain = untraced(document)
            for problem in check(plain):
                match = HINT.search(str(problem.sentence))
                is_value = type(problem.node) is PathTo and not problem.node.is_key
                is_value = is_value and not isinstance(problem.node.follow(plain), (dict, list))
                path = problem.node.steps if match and is_value else None
                # Its hint is about another field, which it names.
                if match is None or path is None or problem.rule in ("slots-gpu-mismatch", "endless-sync"):
                    continue
                before = Counter(found.rule for found in check(plain))
                for text in re.findall(r"[^`]+(?=`(?:$|,| or))|[0-9]+", match[1]):
                    is_number = type(problem.node.follow(plain)) is int
                    # `field: value` is about another field.
                    if ": " in text:
                        continue
                    value = int(text, 8 if text.startswith("0") else 10) if is_number and text.isdecimal() else text
                    after = Counter(found.rule for found in check(with_value_at(plain, path, value)))
                    if problem.rule == "unknown-role":
                        # Its fields belong to the role that is there, which a message names, too.
                        del after["duplicate-role"]
                    assert not after - before, (str(problem.sentence), value, after - before)
                    assert after[problem.rule] < before[problem.rule], (str(problem.sentence), value)
                    applied[problem.rule] += 1
    assert {"unsupported-value", "restart-policy-sanity", "unknown-enum-value", "never-completes"} <= applied.keys()


def test_kind_of_the_documentation_leaves_other_frameworks_alone(tmp_path):
    page = (Path(__file__).parent.parent / "docs/write_kind.md").read_text()
    example = re.search(r"```yaml\n# (schemas/\S+)\n(.*?)```", page, re.DOTALL)
    assert example is not None
    framework = re.search(r"^frameworks:\n  (\w+):", example[2], re.MULTILINE)
    assert framework is not None
    job = SPEC.replace("framework: pytorch", f"framework: {framework[1]}").replace("bert,", "own,")
    write_files(tmp_path, {example[1]: example[2].encode(), "jobs/own.yaml": job.encode()})

    findings = lint_spec(tmp_path)

    assert [(found["rule"], found["file"]) for found in findings] == [("missing-schema", "jobs/own.yaml")]
    assert "`jobgen schema import " in findings[0]["message"]
    assert {made.identity.kind for made in render(tmp_path).objects} == {"PyTorchJob", "TrainingRun"}


GPU_JOB = (
    SPEC.replace("memory: 16Gi}", "memory: 16Gi, gpu: 2}")
    + "  replicas: 3\n  roles: {master: {}, worker: {replicas: 2}}\n"
)
MORE_REPLICAS = "  patches:\n    - match: {names: [bert]}\n      merge:\n        roles: {worker: {replicas: 8}}\n"


def test_replica_total_names_the_line_of_the_overlay(tmp_path):
    [finding] = [each for each in lint_spec(tmp_path, GPU_JOB, MORE_REPLICAS) if each["severity"] == "error"]

    assert (finding["rule"], finding["file"], finding["line"]) == ("replica-totals", "overlays/prod/overlay.yaml", 7)
    related = finding["related"][0]
    assert (related["file"], related["line"], related["message"]) == ("jobs/a.yaml", 8, "the job declares 3")


def test_budget_names_its_jobs_and_stands_where_an_overlay_sets_the_replicas(tmp_path):
    job = GPU_JOB.replace("  replicas: 3\n", "")
    write_files(tmp_path, {"jobs/b.yaml": job.replace("bert", "gpt").encode()})
    budget = "  cluster: {budgets: {namespaces: {ml: {gpus: 8}}}}\n"

    [finding] = [
        each for each in lint_spec(tmp_path, job, budget + MORE_REPLICAS) if each["rule"] == "gpu-budget-exceeded"
    ]

    assert "request 24 GPUs (`bert` 18, `gpt` 6), above its budget of 8" in finding["message"]
    places = [(related["file"], related["line"], related["message"]) for related in finding["related"]]
    assert ("jobs/b.yaml", 3, "`gpt` requests 6 GPUs") in places
    assert (finding["file"], finding["line"]) == ("overlays/prod/overlay.yaml", 8)


@pytest.mark.parametrize(
    ("kibibytes", "text"),
    [
        (6919565200, "6.4Ti"),
        (64 << 20, "64Gi"),
        (1536 << 10, "1536Mi"),
        (-6919565200, "-6.4Ti"),
        (0, "0"),
        (1 << 50, "1Ei"),
    ],
)
def test_memory_totals_are_short(kibibytes, text):
    assert summarize_memory(kibibytes * 1024 * 1000) == text


def migrate(folder: Path, target: str, job: str = SPEC, name: str = "bert", **overlays: str) -> Result:
    """Migrate a job of a repository with these overlays; the first is the environment of today."""
    head = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n"
    files = {f"overlays/{env}/overlay.yaml": head + text for env, text in overlays.items()}
    write_files(
        folder, {path: text.encode() for path, text in {"jobs/a.yaml": job, "jobgen.yaml": "{}\n", **files}.items()}
    )
    return migrate_jobs(folder, [name], target, list(overlays)[:1], None, list_names())


SIDECAR = "  podTemplate: {spec: {containers: [{name: log, image: registry.example.com/log:1}]}}\n"


def test_migration_with_lost_fields_does_not_call_everything_the_same(tmp_path):
    lost = migrate(tmp_path / "a", "trainer", SPEC + "  imagePullPolicy: Always\n", prod="  namespace: ml\n")
    assert "lost: `imagePullPolicy`" in lost.err
    assert "all nodes: imagePullPolicy: `Always` before, nothing after [lost-fields]" in lost.err
    assert "are the same" not in lost.err

    sidecar = migrate(tmp_path / "b", "trainer", SPEC + SIDECAR, prod="  namespace: ml\n")
    assert "containers log: `registry.example.com/log:1` before, nothing after [lost-fields]" in sidecar.err
    assert "are the same" not in sidecar.err


def test_migration_follows_the_version_of_the_overlay(tmp_path):
    job = SPEC + "  labels: {team: nlp}\n"
    new = "  cluster: {platform: trainer, operators: {trainer: 2.2.0}}\n"

    recent = migrate(tmp_path / "new", "trainer", job, prod="  namespace: ml\n", next=new)
    older = migrate(tmp_path / "old", "trainer", job, prod="  namespace: ml\n", next=new.replace("2.2.0", "2.0.0"))

    assert "overlay `next` has trainer 2.2.0" in recent.err
    assert "lost: `labels`" not in recent.err
    assert "overlay `next` has trainer 2.0.0" in older.err
    assert "lost: `labels`" in older.err
    assert "not migrated" not in recent.err + older.err


@pytest.mark.parametrize(
    "overlay",
    ["  defaults: {restartPolicy: Never}\n", "  patches: [{merge: {roles: {master: {restartPolicy: Never}}}}]\n"],
)
def test_migration_keeps_the_restart_policy_of_an_overlay(tmp_path, overlay):
    done = migrate(tmp_path / "t9k", "tensorstack", prod=overlay)
    assert "restartPolicy: Never" in done.out
    assert "changed: `restartPolicy`: overlay `prod` sets `Never`; it is written out now" in done.err

    trainer = migrate(tmp_path / "trainer", "trainer", prod=overlay)
    assert "lost: `restartPolicy`: overlay `prod` sets `Never`" in trainer.err


SWEEP = (
    SPEC
    + """\
  imagePullPolicy: Always
  matrix: {lr: [0.1, 0.01]} # two rates
  args: ["--lr=${{ matrix.lr }}"]
  roles: {master: {}, worker: {replicas: 2}}
"""
)
TRAINER = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {cluster: {platform: trainer}, namespace: ml}\n"


def test_sweep_is_migrated_as_a_whole(tmp_path):
    done = migrate(tmp_path, "trainer", SWEEP, prod="  namespace: ml\n")

    assert done.code == 0
    assert "matrix: {lr: [0.1, 0.01]} # two rates" in done.out
    assert "--lr=${{ matrix.lr }}" in done.out
    assert "lost: `imagePullPolicy`" in done.err
    assert done.err.count("PyTorchJob (kubeflow) to TrainJob (trainer)") == 1

    write_files(tmp_path, {"jobs/a.yaml": done.out.encode(), "overlays/prod/overlay.yaml": TRAINER.encode()})
    assert {made.identity.name for made in render(tmp_path).objects} == {"bert-0p1", "bert-0p01"}


def test_member_and_counted_variable_of_a_sweep_are_not_migrated(tmp_path):
    member = migrate(tmp_path, "trainer", SWEEP, "bert-0p1", prod="  namespace: ml\n")
    assert "not migrated: `bert-0p1` is a member of a sweep; migrate `bert`, the whole sweep" in member.err

    counted = SWEEP.replace("replicas: 2", 'replicas: "${{ matrix.size }}"').replace("0.01]", "0.01], size: [1, 2]")
    done = migrate(tmp_path, "trainer", counted, prod="  namespace: ml\n")
    assert "not migrated: `roles.worker.replicas` is a variable of the matrix" in done.err


# Rules: one fault, one finding

MPI = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: bert, namespace: ml}
spec:
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      restartPolicy: Always
      template: {spec: {containers: [{name: mpi, image: "registry.example.com/mpi:1.0"}]}}
"""
SAME_FAULTS = {
    "gpu mismatch": (
        PYTORCH
        + "              resources: {limits: {nvidia.com/gpu: 1, memory: 1Gi}, requests: {nvidia.com/gpu: 2}}\n",
        ("gpu-request-limit-mismatch", ["gpu-limits-match-requests"]),
    ),
    "gpu request alone": (
        PYTORCH + "              resources: {limits: {memory: 1Gi}, requests: {nvidia.com/gpu: 1}}\n",
        ("missing-resource-limit", ["gpu-limits-match-requests"]),
    ),
    "restart policy of the role": (
        MPI,
        ("unsupported-restart-policy", ["restart-policy-sanity", "restart-policy-risk"]),
    ),
    "restart policy that never completes": (
        PYTORCH.replace("      replicas: 1\n", "      replicas: 1\n      restartPolicy: Always\n"),
        ("never-completes", ["restart-policy-risk"]),
    ),
    "restart policy of the template": (
        PYTORCH.replace("          containers:\n", "          restartPolicy: Never\n          containers:\n"),
        ("overwritten-restart-policy", ["restart-policy-risk"]),
    ),
    "image": (
        PYTORCH.replace(":1.4.2", ":latest") + "              imagePullPolicy: IfNotPresent\n",
        ("stale-image", ["mutable-image-tag"]),
    ),
    "template": (
        PYTORCH.replace("bert,", "<name>,").replace("replicas: 1", "replicas: ..."),
        ("unfilled-placeholder", ["invalid-name", "wrong-type"]),
    ),
}


@pytest.mark.parametrize("fault", SAME_FAULTS)
def test_one_fault_is_one_finding(fault, tmp_path):
    text, expected = SAME_FAULTS[fault]
    found = lint_files(tmp_path, {"job.yaml": text})
    assert [(each["rule"], each.get("alsoReportedBy", [])) for each in found] == [expected]


def test_a_mandatory_policy_is_not_hidden_by_a_rule(tmp_path):
    text, _ = SAME_FAULTS["gpu mismatch"]
    settings = "mandatory: [gpu-limits-match-requests]\n"
    (found,) = lint_files(tmp_path, {"jobs/job.yaml": text, "jobgen.yaml": settings})
    assert (found["rule"], found["alsoReportedBy"]) == ("gpu-limits-match-requests", ["gpu-request-limit-mismatch"])


def test_a_suppressed_finding_hides_no_other(tmp_path):
    text, _ = SAME_FAULTS["gpu mismatch"]
    text = "# jobgen: ignore-file[gpu-request-limit-mismatch] -- the policy reports it\n" + text
    (found,) = lint_files(tmp_path, {"job.yaml": text})
    assert (found["rule"], found.get("alsoReportedBy")) == ("gpu-limits-match-requests", None)


def test_shared_outputs_of_one_line_are_one_finding(tmp_path):
    job = """\
    apiVersion: jobgen.dev/v1
    kind: TrainingJob
    metadata: {name: NAME, namespace: ml}
    spec:
      framework: pytorch
      image: registry.example.com/bert:1.4.2
      command: [python, train.py, --output_dir=s3://b/a/out, --logging_dir=s3://b/a/logs, --save_dir=s3://b/a/save]
      resources: {cpu: 4, memory: 16Gi}
    """
    files = {f"jobs/{name}.yaml": job.replace("NAME", name) for name in ("first", "second")}
    found = lint_files(tmp_path, files | {"jobgen.yaml": ""})
    assert [each["rule"] for each in found] == ["shared-output"]


# Rules: files that come with jobgen


def test_files_of_jobgen_are_called_built_in(tmp_path):
    write_files(tmp_path, {"jobgen.yaml": b"", "jobs/bert.yaml": JOB.encode()})
    origins = jobgen(tmp_path, "explain", "bert", "kind").stdout.decode()
    assert "  built-in:schemas/kubeflow.org/pytorchjob_v1.yaml:3:7  kind PyTorchJob" in origins
    assert " built-in:policies/replica-totals.yaml " in jobgen(tmp_path, "policy", "list").stdout.decode()


# Rules: every rule has a page


def test_the_page_of_a_rule_has_a_reason_and_a_remedy():
    docs = all_rule_docs()

    assert [name for name, doc in docs.items() if not re.search(r"[.?](?:\s|$)", doc.text)] == []
    assert [name for name, doc in docs.items() if doc.text == doc.summary] == []


def test_null_is_not_to_be_put_in_quotes(tmp_path):
    job = PYTORCH.replace("namespace: ml}", "namespace: ml, labels: {a: 1, b: [x]}}")
    messages = find_messages(tmp_path, "wrong-type", job)
    assert messages == [
        "`a` is `1`, and must be a string; quote it",
        "`b` is a list, and must be a string; write `b: x`",
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"true"', "`true`, and must be true or false; remove the quotes"),
        ('"yes"', "`yes`, and must be true or false"),
        ("1", "`1`, and must be true or false"),
    ],
)
def test_a_quoted_value_of_a_manifest_is_to_lose_its_quotes(tmp_path, value, expected):
    job = PYTORCH.replace("namespace: ml}", "namespace: ml}", 1) + f"  runPolicy: {{suspend: {value}}}\n"
    assert find_messages(tmp_path, "wrong-type", job) == [f"`suspend` is {expected}"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"80"', "`80`, and must be a whole number; remove the quotes"),
        ('"http"', "`http`, and must be a whole number"),
    ],
)
def test_a_quoted_value_of_a_job_is_to_lose_its_quotes(tmp_path, value, expected):
    write_files(tmp_path, {"jobgen.yaml": b"", "jobs/bert.yaml": (SPEC + f"  ports: {{web: {value}}}\n").encode()})
    assert f"`web` is {expected} [wrong-type]" in jobgen(tmp_path, "lint").stdout.decode()


def test_migration_of_a_job_with_errors_shows_them(tmp_path):
    done = migrate(tmp_path, "trainer", SPEC + "  bogus: 1\n", prod="  namespace: ml\n")

    assert "`bogus` is not a field of a job" in done.err
    assert "no job without errors is called `bert`" in done.err


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("brt", "there is no job `brt`; did you mean `bert`?"),
        ("jobs/plan.yaml", "there is no file `jobs/plan.yaml`"),
        ("jobgen.yaml", "there is no job in `jobgen.yaml`"),
    ],
)
def test_migration_of_an_unknown_job_says_what_there_is(tmp_path, name, expected):
    write_files(tmp_path, {"jobgen.yaml": b"", "jobs/bert.yaml": SPEC.encode()})
    done = jobgen(tmp_path, "migrate", name, "--to", "trainer")

    assert done.returncode == 3
    assert expected in done.stderr.decode()


# Specs: numbers and booleans in place of text


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (
            "command: [torchrun, yes]",
            "`command[1]` is `yes`, which YAML reads as `true`, and must be a string; quote it",
        ),
        ("command: [a, 1.10]", "`command[1]` is `1.10`, which YAML reads as `1.1`, and must be a string; quote it"),
        ("args: [010]", "`args[0]` is `010`, which YAML reads as `8`, and must be a string; quote it"),
        ("args: [5]", "`args[0]` is `5`, and must be a string; quote it"),
        ("labels: {v: 1.10}", "`v` is `1.10`, which YAML reads as `1.1`, and must be a string; quote it"),
        ("nodeSelector: {gpu: true}", "`gpu` is `true`, and must be a string; quote it"),
        ("image: 1.10", "`image` is `1.10`, which YAML reads as `1.1`, and must be a string; quote it"),
        ("env: {E: 1.10}", "`E` is `1.10`, which YAML reads as `1.1`, and must be"),
        ("env: {LR: 0.5}", "true or false; quote it"),
        ("env: [{name: LR, value: 0.5}]", "true or false; quote it"),
    ],
)
def test_number_in_place_of_text_is_shown_as_written(tmp_path, field, message):
    job = SPEC.replace("  image: registry.example.com/bert:1.4.2\n", "") if "image" in field else SPEC
    [finding] = lint_spec(tmp_path, job + f"  {field}\n")

    assert (finding["rule"], message in finding["message"]) == ("wrong-type", True), finding["message"]

    lint_paths(tmp_path, (), (), format_="json", fix="safe")
    assert not [found for found in lint_spec_again(tmp_path) if found["rule"] == "wrong-type"]


def lint_spec_again(folder: Path) -> list[dict[str, Any]]:
    """The findings of a repository as it is now."""
    found: list[dict[str, Any]] = json.loads(lint_paths(folder, (), (), format_="json").out)["findings"]
    return found


def test_version_and_key_that_yaml_changes_are_shown_as_written(tmp_path):
    overlay = "  cluster: {operators: {training-operator: 1.10}}\n  defaults: {labels: {on: yes}}\n"

    messages = [finding["message"] for finding in lint_spec(tmp_path, overlay=overlay)]

    assert messages == [
        "`training-operator` is `1.10`, which YAML reads as `1.1`, and must be a string; quote it",
        "the key `on` is read as `true` by YAML; quote it",
        "`on` is `yes`, which YAML reads as `true`, and must be a string; quote it",
    ]


@pytest.mark.parametrize("field", ["command: {a: b}", "labels: [a]", "replicas: many"])
def test_other_wrong_types_are_not_to_be_quoted(tmp_path, field):
    [finding] = lint_spec(tmp_path, SPEC + f"  {field}\n")

    assert "quote it" not in finding["message"]


CEL_POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: own}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  validations:
    - expression: "object.spec.replicas <"
"""


@pytest.mark.parametrize(
    ("name", "rules"), [("own", ["invalid-value"]), ("<name>", ["unfilled-placeholder", "invalid-value"])]
)
def test_only_what_the_file_says_is_a_placeholder(name, rules, tmp_path):
    text = CEL_POLICY.replace("own", name)
    assert [each["rule"] for each in lint_files(tmp_path, {"policy.yaml": text})] == rules
    done = lint_paths(tmp_path, ("-",), (), format_="json", today=TODAY, stdin=text.encode())
    assert [each["rule"] for each in json.loads(done.out)["findings"]] == rules


LISTS = {
    "a kind named like a list": ("example.com/v1", "AllowList", "items: []", ["missing-schema"]),
    "its items are no objects": ("example.com/v1", "AllowList", "items: [{kind: a}, 5]", ["missing-schema"]),
    "a list of an unknown kind": (
        "example.com/v1",
        "DanceList",
        "items: [{apiVersion: v1, kind: Namespace, metadata: {name: a}}]",
        [],
    ),
    "a kind of Kubernetes": ("v1", "AllowList", "items: []", ["unknown-kind"]),
    "an empty list": ("v1", "PodList", "items: []", []),
    "an empty list of a custom kind": ("kubeflow.org/v1", "PyTorchJobList", "items: []", []),
    "a field of a list": ("v1", "PodList", "items: []\nspec: {}", ["unknown-field"]),
    "a field of a List": ("v1", "List", "items: []\nspec: {}", ["unknown-field"]),
    "an item": ("v1", "PodList", "items: [5]", ["not-a-mapping"]),
    "no items": ("v1", "PodList", "spec: {}", ["missing-field"]),
}


@pytest.mark.parametrize("case", LISTS)
def test_no_list_is_skipped(case, tmp_path):
    api_version, kind, rest, rules = LISTS[case]
    namespace = "---\n{apiVersion: v1, kind: Namespace, metadata: {name: b}}\n"
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n{rest}\n{namespace}"
    assert [each["rule"] for each in lint_files(tmp_path, {"jobs/list.yaml": text})] == rules


VERSIONS = {
    "core": ("core/v1", "Pod", "", "`core` is not an API group", "use `v1`"),
    "many slashes": ("a/b/c/v1", "Pod", "", "`a/b/c/v1` is not an apiVersion", "use `v1`"),
    "words in the wrong order": ("apps/v1/x", "Deployment", "", "`apps/v1/x` is not an apiVersion", "use `apps/v1`"),
    "no version": ("v1/", "Pod", "", "`v1/` is not an apiVersion", "use `v1`"),
    "no domain": ("networking/v1", "Ingress", "", "`networking` is not an API", "use `networking.k8s.io/v1`"),
    "the closest group": ("volcano/v1alpha1", "Job", "", "`volcano` is", "use `batch.volcano.sh/v1alpha1`"),
    "an unknown kind": ("core/v1", "Dance", "", "`core` is not an API group", "such as `example.com/v1`"),
    "kueue 0.15": (
        "kueue.x-k8s.io/v1",
        "LocalQueue",
        "0.15.0",
        "kueue 0.15.0 has no `LocalQueue` of `kueue.x-k8s.io/v1`",
        "use `kueue.x-k8s.io/v1beta2`",
    ),
    "kueue 0.14": ("kueue.x-k8s.io/v1", "LocalQueue", "0.14.0", "kueue 0.14.0 has", "use `kueue.x-k8s.io/v1beta1`"),
}


@pytest.mark.parametrize("case", VERSIONS)
def test_an_api_version_that_no_cluster_has_is_an_error_with_the_right_one(case):
    api_version, kind, kueue, start, end = VERSIONS[case]
    cluster = Cluster(operators={"kueue": kueue} if kueue else {})
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "b"}}
    (problem,) = Checker(PROJECT.layers, PROJECT.kinds, cluster)(obj)
    assert (problem.rule, problem.severity) == ("old-api-version", "error")
    assert str(problem.sentence).startswith(start)
    assert str(problem.sentence).endswith(end)


def test_a_version_of_an_undeclared_operator_may_exist():
    obj = {"apiVersion": "kueue.x-k8s.io/v1", "kind": "LocalQueue", "metadata": {"name": "a", "namespace": "b"}}
    (problem,) = Checker(PROJECT.layers, PROJECT.kinds, Cluster())(obj)
    assert problem.rule == "missing-schema"
    assert "use `kueue.x-k8s.io/v1beta2`, which jobgen knows" in str(problem.sentence)


UNKNOWN_FIELDS = {
    "a name that many mappings have": (
        {},
        """\
        apiVersion: leaderworkerset.x-k8s.io/v1
        kind: LeaderWorkerSet
        metadata: {name: a, namespace: b}
        spec:
          leaderWorkerTemplate:
            size: 2
            subGroupPolicy: {subGroupSize: 1, type: LeaderWorker}
            workerTemplate: {spec: {containers: [{name: a, image: "registry.example.com/a:1.0.0"}]}}
        """,
        "`type` is not a field of `subGroupPolicy`",
    ),
    "a field of a later release": (
        {"kubernetes": "1.31"},
        """\
        apiVersion: v1
        kind: Pod
        metadata: {name: a, namespace: b}
        spec:
          resources: {limits: {cpu: 1}}
          containers: [{name: a, image: "registry.example.com/a:1.0.0"}]
        """,
        "`resources` is not a field of `spec` in this release; it exists since Kubernetes 1.32",
    ),
    "a section that has it": (
        {},
        """\
        apiVersion: kubeflow.org/v1
        kind: PyTorchJob
        metadata: {name: a, namespace: b}
        spec:
          pytorchReplicaSpecs:
            Worker:
              ttlSecondsAfterFinished: 5
              template: {spec: {containers: [{name: pytorch, image: "registry.example.com/a:1.0.0"}]}}
        """,
        "`ttlSecondsAfterFinished` is not a field of `Worker`; it belongs in `spec.runPolicy`",
    ),
}


@pytest.mark.parametrize("case", UNKNOWN_FIELDS)
def test_an_unknown_field_has_one_true_hint(case):
    cluster, text, message = UNKNOWN_FIELDS[case]
    document = read(textwrap.dedent(text).encode(), "a.yaml").documents[0].data
    problems = Checker(PROJECT.layers, PROJECT.kinds, Cluster(**cluster))(document)
    assert [str(problem.sentence) for problem in problems if problem.rule == "unknown-field"] == [message]


def test_a_field_that_is_newer_than_the_operator_is_one_finding(tmp_path):
    job = PYTORCH.replace("spec:\n", "spec:\n  runPolicy: {managedBy: kueue.x-k8s.io/multikueue}\n", 1)
    settings = "cluster: {operators: {training-operator: 1.7.0}}\n"
    found = lint_files(tmp_path, {"jobs/job.yaml": job, "jobgen.yaml": settings})
    about = [each for each in found if "managedBy" in each["message"]]
    assert [(each["rule"], each.get("alsoReportedBy")) for each in about] == [
        ("field-newer-than-operator", ["unknown-field"])
    ]
