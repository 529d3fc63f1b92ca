"""Verdicts of a real API server about details that are the same for many kinds: metadata, status, text, pods.

A case is a line of a manifest, and the rule that reports it on that line; no rule if the API server accepts it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobgen.check import validation
from jobgen.check.admission import validate_pod_template
from jobgen.check.admission.fields import Kind
from jobgen.check.checker import Checker
from jobgen.check.rules import all_rules
from jobgen.model.data import location_of, untraced, with_layer
from jobgen.model.finding import Severity
from jobgen.model.placed import follow
from jobgen.model.times import is_time
from jobgen.rendering import config
from jobgen.rendering.build import manifest_errors
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

PROJECT = config.load_own(Path(__file__).parent)
CHECK = Checker(PROJECT.layers, PROJECT.kinds, Cluster(), [one for one in all_rules() if one.name == "rejected-child"])

CUSTOM = "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: demo\n"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: demo\n"
LEASE = "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata:\n  name: demo\n"
JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: demo
{}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
          - name: pytorch
            image: x:1
"""


def find_errors(text: str) -> list[tuple[str, int]]:
    """The rule and line of every error about a manifest."""
    found = []
    for document in read(text.encode(), "a.yaml", traced=True).documents:
        placed = CHECK(untraced(document.data))
        problems = manifest_errors(document.data) or [
            follow(problem, lambda path, tree=document.data: path.follow(tree)) for problem in placed
        ]
        found += [
            (problem.rule, getattr(problem.location, "line", 0))
            for problem in problems
            if problem.severity is Severity.ERROR
        ]
    return found


# Lines of metadata, with the rule that rejects them in custom resources, and in kinds of Kubernetes if that differs.
METADATA = [
    ('creationTimestamp: "2024-01-01"', "invalid-value"),
    ("creationTimestamp: null", ""),
    ('creationTimestamp: ""', "invalid-value"),
    ("creationTimestamp: 5", "wrong-type"),
    ("deletionTimestamp: now", "invalid-value"),
    ("creationTimestamp: 2024-01-01T00:00:00Z", ""),
    ("creationTimestamp: '2024-01-01T00:00:00+02:00'", ""),
    ("managedFields: [{time: yesterday}]", "invalid-value"),
    ("managedFields: [null]", ""),
    ("managedFields: [{operation: x, fieldsType: q, fieldsV1: z}]", ""),
    ("managedFields: [{fields: {}}]", "unknown-field"),
    ("managedFields: {}", "wrong-type"),
    ("finalizers: [a/b/c]", "invalid-finalizer"),
    ("finalizers: [/f]", "invalid-finalizer"),
    ("finalizers: [Example.com/f]", "invalid-finalizer"),
    ("finalizers: [null]", "invalid-finalizer"),
    ("finalizers: ['']", "invalid-finalizer"),
    ("finalizers: [example.com/-f]", "invalid-finalizer"),
    ("finalizers: [1]", "wrong-type"),
    ("finalizers: [a.b/c, a.b/c]", ""),
    ("finalizers: null", ""),
    ("finalizers: [orphan, a.b/c]", ""),
    ("finalizers: [orphan, foregroundDeletion]", "invalid-finalizer"),
    ("finalizers: [foregroundDeletion, a.b/c, orphan]", "invalid-finalizer"),
    ("finalizers: [single]", "", "invalid-finalizer"),
    ("ownerReferences: [null]", "missing-field"),
    ("ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: ''}]", "missing-field"),
    ("ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a}]", "missing-field"),
    ("ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: null}]", "missing-field"),
    ("ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: '', uid: u}]", "missing-field"),
    ("ownerReferences: [{apiVersion: a/b/c, kind: ConfigMap, name: a, uid: u}]", "invalid-value"),
    ("ownerReferences: [{apiVersion: a/, kind: ConfigMap, name: a, uid: u}]", "invalid-value"),
    ("ownerReferences: [{apiVersion: v1, kind: Event, name: a, uid: u}]", "invalid-value"),
    ("ownerReferences: [{apiVersion: events.k8s.io/v1, kind: Event, name: a, uid: u}]", ""),
    ("ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: u, controller: yes please}]", "wrong-type"),
    ("ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: u, bogus: 1}]", "unknown-field"),
    ("ownerReferences: [{apiVersion: v1, kind: A, name: a, uid: u}, {apiVersion: v1, kind: A, name: b, uid: u}]", ""),
    (
        (
            "ownerReferences: [{apiVersion: v1, kind: A, name: a, uid: u, controller: true},"
            " {apiVersion: v1, kind: A, name: b, uid: v, controller: true}]"
        ),
        "invalid-value",
    ),
    (
        (
            "ownerReferences: [{apiVersion: v1, kind: A, name: a, uid: u, controller: true},"
            " {apiVersion: v1, kind: A, name: a, uid: u, controller: true}]"
        ),
        "",
    ),
    ("generateName: A_", "invalid-name"),
    ("generateName: a.", "invalid-name"),
    ("generateName: '-a'", "invalid-name"),
    ("generateName: a-", ""),
    ("generateName: 中-", "invalid-name"),
    ("generateName: A-", ""),
    ("generateName: ''", ""),
    ("generateName: null", ""),
    ("generateName: 1.5", "wrong-type"),
    (f"generateName: {'a' * 253}", ""),
    (f"generateName: {'a' * 254}", "invalid-name"),
    ("generation: -1", "", "out-of-range"),
    ("generation: '1'", "wrong-type"),
    ("deletionGracePeriodSeconds: 1", ""),
    ("deletionGracePeriodSeconds: 1.5", "wrong-type"),
    ("uid: abc", ""),
    ("uid: 5", "wrong-type"),
    ("selfLink: /x", ""),
    ("labels: {a: null}", ""),
    ("labels: {'app:a': null}", "invalid-label"),
    ("labels: {a: 1}", "wrong-type"),
    ("labels: {a: b c}", "invalid-label"),
    ("labels: []", "wrong-type"),
    ("annotations: {a/b/c: x}", "invalid-annotation"),
    ("annotations: {A.B/c: null}", ""),
    ("annotations: {a: true}", "wrong-type"),
    ("namespace: A_b", "invalid-name"),
    ("Labels: {a: b}", "unknown-field"),
    ("bogus: 1", "unknown-field"),
]


@pytest.mark.parametrize("case", METADATA, ids=lambda case: case[0][:60])
def test_metadata_is_validated_for_all_kinds(case: tuple[str, ...]) -> None:
    line, in_custom, in_builtin = (*case, case[1])[:3]
    for base, rule in ((CUSTOM, in_custom), (JOB, in_custom), (CONFIG_MAP, in_builtin)):
        text = base.format(f"  {line}") if "{}" in base else f"{base}  {line}\n"

        assert find_errors(text) == ([(rule, 5)] if rule else []), base


def test_kinds_without_qualified_finalizers() -> None:
    assert find_errors(LEASE + "  finalizers: [single]\n") == []
    assert find_errors(LEASE + "  generation: -1\n") == [("out-of-range", 5)]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("{name: '', generateName: demo-}", []),
        ("{name: null, generateName: demo-}", []),
        ("{generateName: demo-}", []),
        ("{generateName: A-}", [("invalid-name", 3)]),
        ("{generateName: ''}", [("missing-field", 3)]),
        ("{name: null}", [("missing-field", 3)]),
        ("{}", [("missing-field", 3)]),
        ("null", [("missing-field", 3)]),
        ("[]", [("wrong-type", 3)]),
    ],
)
def test_an_object_needs_a_name_or_a_prefix_of_one(metadata: str, expected: list[tuple[str, int]]) -> None:
    found = find_errors(f"apiVersion: example.com/v1\nkind: Widget\nmetadata: {metadata}\n")
    assert [rule for rule, _ in found] == [rule for rule, _ in expected]


def test_the_namespace_of_a_cluster_scoped_object_is_dropped() -> None:
    text = "apiVersion: kueue.x-k8s.io/v1beta1\nkind: {}\nmetadata: {{name: a, namespace: A_b}}\n"
    assert not [rule for rule, _ in find_errors(text.format("Topology")) if rule == "invalid-name"]
    assert [rule for rule, _ in find_errors(text.format("LocalQueue")) if rule == "invalid-name"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-29T23:59:59Z", True),
        ("2023-02-29T00:00:00Z", False),
        ("2024-01-01T1:00:00Z", True),
        ("2024-01-01T00:00:00,5Z", True),
        ("2024-01-01T00:00:00.123456789123+24:60", True),
        ("2024-01-01T00:00:00+25:00", False),
        ("2024-01-01T24:00:00Z", False),
        ("2024-01-01T00:00:60Z", False),
        ("2024-13-01T00:00:00Z", False),
        ("2024-00-01T00:00:00Z", False),
        ("2024-01-00T00:00:00Z", False),
        ("2024-01-01t00:00:00z", False),
        ("2024-01-01 00:00:00Z", False),
        ("2024-01-01T00:00:00", False),
        ("2024-01-01T00:00:00.Z", False),
        ("0000-02-29T00:00:00Z", True),
        ("2024-01-01T00:00:00Z\n", False),
        ("\u0662024-01-01T00:00:00Z", False),
        ("", False),
    ],
)
def test_times_are_read_as_in_go(text: str, expected: bool) -> None:
    assert is_time(text) is expected


HEAD = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: demo}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("...\nmore: text\n", [("ignored-document", Severity.WARNING, 5)]),
        ("...\n{ not yaml\n", [("ignored-document", Severity.WARNING, 5)]),
        ("...\n# only a comment\n", []),
        ("x: {a: !foo b}\n", [("unknown-tag", Severity.WARNING, 4)]),
        ("x: !foo [1]\n", [("unknown-tag", Severity.WARNING, 4)]),
        ("x: [!foo,1]\n", [("unknown-tag", Severity.ERROR, 4)]),
        ('x: {1: a, "1": b}\n', [("duplicate-key", Severity.WARNING, 4)]),
        ("x: {1: a, 1.0: b}\n", [("duplicate-key", Severity.WARNING, 4)]),
        ("x: {true: a, 'true': b}\n", [("duplicate-key", Severity.WARNING, 4)]),
        ("x: {true: a, yes: b}\n", [("duplicate-key", Severity.ERROR, 4)]),
        ("x: {1: a, 0x1: b}\n", [("duplicate-key", Severity.ERROR, 4)]),
        ("x: {a: 1, 'a': 2}\n", [("duplicate-key", Severity.ERROR, 4)]),
    ],
)
def test_text_that_kubernetes_reads_otherwise_than_written_is_a_warning(
    text: str, expected: list[tuple[str, Severity, int]]
) -> None:
    source = read((HEAD + text).encode(), "a.yaml")

    assert [(found.rule, found.severity, found.location.line) for found in source.findings] == expected
    assert all(found[1] is Severity.ERROR for found in expected) or source.documents


POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  {}\n  containers: [{{name: c, image: x:1}}]\n"
TOPOLOGY = "affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: a, {}}}]}}}}"
WEBHOOK = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: a}}
webhooks:
- {{name: a.b.c, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {{url: https://a}}, rules: [{}]}}
"""
ANY_RULE = "{{apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], operations: [{}]}}"
CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: a}}
spec:
  {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {}}}}}}}
"""


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (POD.format("hostAliases: [{ip: 1.1.1.1, hostnames: [null]}]"), "invalid-host-name"),
        (POD.format("dnsConfig: {searches: [null]}"), "invalid-dns-config"),
        (POD.format("tolerations: [null]"), "invalid-toleration"),
        (POD.format("imagePullSecrets: [null]"), ""),
        (POD.format(TOPOLOGY.format("labelSelector: {}, matchLabelKeys: [null]")), "invalid-label"),
        (POD.format("nodeSelector: {a: null}"), ""),
        (POD.format("priority: 5"), ""),
        (WEBHOOK.format(ANY_RULE.format("CREATE, null")), "invalid-value"),
        (WEBHOOK.format(ANY_RULE.format("CREATE")), ""),
        (CLAIM.format("null"), "invalid-volume-source"),
        (CLAIM.format("1Gi"), ""),
    ],
)
def test_null_in_a_list_or_a_map_is_the_zero_value_of_its_type(text: str, rule: str) -> None:
    assert find_errors(text) == ([(rule, 5)] if rule else [])


PREFERRED = "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1}]}}"
VERSION = "{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: %s}}}}"
CRD = "{group: b.c, scope: Cluster, names: {plural: as, kind: A}, versions: [%s]}"
TASK = "{minAvailable: 1, tasks: [{name: a, replicas: 1, template: %s}]}"
RUNTIME = "{mlPolicy: {numNodes: 1}, template: {spec: {replicatedJobs: [{name: %s, template: %s}]}}}"
PODS = "{spec: {template: {spec: {containers: [{name: node, image: x:1}]}}}}"
CLAIMS = (
    "{serviceName: a, selector: {matchLabels: {a: b}}, volumeClaimTemplates: [{metadata: {name: a, %s}, spec: %s}], "
)
CLAIM_SPEC = "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}"
LABELED = "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x:1}]}}}"
RESERVED = "{type: QuotaReserved, status: 'True', reason: a, message: a, lastTransitionTime: '2024-01-01T00:00:00Z'}"
SETS = "{podSets: [{name: a, count: 1, template: {spec: {containers: [{name: c, image: x}]}}}]}"
ADMITTED = f"{{conditions: [{RESERVED}], admission: {{clusterQueue: a, podSetAssignments: []}}}}"


@pytest.mark.parametrize(
    ("api_version", "kind", "metadata", "spec", "rule"),
    [
        ("v1", "Pod", "{name: a}", f"{{{PREFERRED}, containers: [{{name: a, image: x:1}}]}}", "missing-pod-field"),
        ("v1", "Pod", "{name: a}", "{overhead: {cpu: 1}, containers: [{name: a, image: x:1}]}", "invalid-value"),
        ("v1", "Pod", "{name: ''}", "{containers: [{name: a, image: x:1}]}", "missing-field"),
        ("v1", "LimitRange", "{name: ''}", "{limits: [{type: Pod, max: {cpu: Gi}}]}", ""),
        ("v1", "ResourceQuota", "{name: a}", "{hard: {cpu: 1K}}", "invalid-quantity"),
        ("v1", "PodTemplate", "{name: a, finalizers: [b]}", "", "invalid-finalizer"),
        ("events.k8s.io/v1", "Event", "{name: a, finalizers: [b]}", "", "invalid-finalizer"),
        ("resource.k8s.io/v1", "DeviceClass", "{name: a, generateName: B}", "{}", ""),
        ("resource.k8s.io/v1", "DeviceClass", "{name: a, generateName: b/c}", "{}", "invalid-name"),
        ("scheduling.volcano.sh/v1beta1", "Queue", "{name: a, namespace: A_b}", "{weight: 1}", ""),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "{name: as.b.c}", CRD % VERSION % "{type: string}", ""),
        (
            *("apiextensions.k8s.io/v1", "CustomResourceDefinition", "{name: as.b.c}"),
            CRD % VERSION % "{type: object, additionalProperties: x}",
            "wrong-type",
        ),
        (
            *("apiextensions.k8s.io/v1", "CustomResourceDefinition", "{name: as.b.c}"),
            CRD % VERSION % "{type: integer, default: 1, maximum: 9223372036854775807}",
            "out-of-range",
        ),
        (
            *("apiextensions.k8s.io/v1", "CustomResourceDefinition", "{name: as.b.c}"),
            CRD % VERSION.replace("served", "subresources: {status: {a: b}}, served") % "{type: string}",
            "unknown-field",
        ),
        ("flow.volcano.sh/v1alpha1", "JobTemplate", "{name: a}", TASK % "{}", "missing-pod-field"),
        ("flow.volcano.sh/v1alpha1", "JobTemplate", "{name: a}", TASK % "null", "rejected-child"),
        ("kueue.x-k8s.io/v1beta2", "Workload", "{name: a}", f"{SETS}\nstatus: {ADMITTED}", ""),
        ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", "{name: a}", RUNTIME % ("node", PODS), ""),
        ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", "{name: a}", RUNTIME % ("no.de", PODS), "rejected-child"),
        ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", "{name: a}", RUNTIME % ("node", "{}"), "rejected-child"),
        ("apps/v1", "Deployment", "{name: a}", "{selector: {matchExpressions: null}, " + LABELED, "invalid-selector"),
        ("batch/v1", "Job", "{name: a}", "{successPolicy: {rules: null}, completionMode: Indexed}", "missing-field"),
        ("apps/v1", "StatefulSet", "{name: a}", CLAIMS % ("labels: {a: b}", CLAIM_SPEC) + LABELED, ""),
        ("apps/v1", "StatefulSet", "{name: a}", CLAIMS % ("labels: {a: b c}", CLAIM_SPEC) + LABELED, "invalid-label"),
    ],
)
def test_what_a_real_server_says(api_version: str, kind: str, metadata: str, spec: str, rule: str) -> None:
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {metadata}\n" + (f"spec: {spec}\n" if spec else "")

    found = {name for name, _ in find_errors(text)}
    assert rule in found if rule else found == set()


def test_a_review_may_have_any_metadata() -> None:
    text = "apiVersion: authentication.k8s.io/v1\nkind: TokenReview\nmetadata: {name: '*', labels: {-a: b}}\n"

    assert find_errors(f"{text}spec: {{token: a}}\n") == []


def test_an_object_without_a_name_that_needs_none() -> None:
    assert manifest_errors({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}) == []
    assert manifest_errors({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"labels": {}}}) == []
    assert len(manifest_errors({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": 5}})) == 1
    assert len(manifest_errors({"apiVersion": "v1", "kind": "ConfigMap"})) == 1


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x:1}]}}
"""


@pytest.mark.parametrize(
    ("base", "status", "rule"),
    [
        (JOB, "x", ""),
        (JOB, "null", ""),
        (JOB, "{conditions: 5, startTime: yesterday}", ""),
        (JOB, "{bogus: 1}", "unknown-field"),
        (JOB, "{conditions: [{type: a, bogus: 1}]}", "unknown-field"),
        (DEPLOYMENT, "{replicas: 1}", ""),
        (DEPLOYMENT, "{replicas: x}", "wrong-type"),
        (DEPLOYMENT, "x", "wrong-type"),
        (DEPLOYMENT, "{bogus: 1}", "unknown-field"),
    ],
)
def test_the_status_of_a_custom_resource_is_dropped_and_that_of_other_kinds_decoded(
    base: str, status: str, rule: str
) -> None:
    text = f"{base.format('') if base is JOB else base}status: {status}\n"

    assert find_errors(text) == ([(rule, text.count(chr(10)))] if rule else [])


def test_a_list_is_valid_where_a_schema_has_a_format() -> None:
    text = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {{name: a}}\nspec:\n"
    text += "  runtimeRef: {{name: torch}}\n  runtimePatches: [{{manager: a.b/c, time: {}}}]\n"

    assert find_errors(text.format("[x]")) == []
    assert find_errors(text.format("yesterday")) == [("invalid-value", 6)]
    assert find_errors(text.format("{a: b}")) == [("wrong-type", 6)]


POD_OF_JOB = """\
apiVersion: kubeflow.org/v1
kind: {kind}
metadata: {{name: demo}}
spec:
  {roles}:
    {role}:
      replicas: 2
      {restart}
      template:
        metadata: {metadata}
        spec:
          {spec}
          containers: [{{name: {container}, image: x:1, {fields}}}]
"""


def make_job(**parts: str) -> str:
    """A TFJob; its names say what they replace."""
    defaults = {"kind": "TFJob", "roles": "tfReplicaSpecs", "role": "Worker", "restart": "restartPolicy: Never",
                "metadata": "{}", "spec": "hostNetwork: false", "container": "tensorflow", "fields": ""}  # fmt: skip
    return POD_OF_JOB.format(**{**defaults, **parts})


EPHEMERAL = "{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}"  # noqa: E501
IQN = "iqn.2001-04.com.example:x"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"


@pytest.mark.parametrize(
    ("parts", "rule", "line"),
    [
        ({"role": "Wor_ker"}, "invalid-name", 6),
        ({"role": "worker"}, "", 0),
        ({"restart": "", "spec": "restartPolicy: x"}, "", 0),
        ({"restart": "restartPolicy: x"}, "unsupported-value", 8),
        ({"metadata": "{labels: {'app:a': , b: c}}"}, "", 0),
        ({"metadata": "{labels: {'app:a': b}}"}, "invalid-label", 10),
        ({"metadata": "{annotations: {'app:a': }}"}, "", 0),
        ({"spec": "nodeSelector: {'app:a': }"}, "", 0),
        ({"metadata": "{finalizers: [orphan, foregroundDeletion]}"}, "invalid-finalizer", 10),
        ({"metadata": f"{{annotations: {{{TOLERATIONS}: 'null'}}}}"}, "", 0),
        ({"metadata": f"""{{annotations: {{{TOLERATIONS}: '[{{"Key":"a"}}]'}}}}"""}, "", 0),
        ({"metadata": f"""{{annotations: {{{TOLERATIONS}: '[{{"KEY":"a","x":1}}]'}}}}"""}, "", 0),
        ({"metadata": f"""{{annotations: {{{TOLERATIONS}: '[{{"key":1}}]'}}}}"""}, "invalid-annotation", 10),
        ({"metadata": f"""{{annotations: {{{TOLERATIONS}: '[null]'}}}}"""}, "invalid-annotation", 10),
        ({"metadata": f"""{{annotations: {{{TOLERATIONS}: '{{}}'}}}}"""}, "invalid-annotation", 10),
        ({"spec": "initContainers: [{name: i, image: b, lifecycle: {stopSignal: SIGTERM}}]"}, "", 0),
        (
            {"spec": "initContainers: [{name: i, image: b, lifecycle: {preStop: {exec: {command: [a]}}}}]"},
            "probe-of-init-container",
            12,
        ),
        ({"fields": 'resources: {limits: {example.com/x: "1000000000000000000"}}'}, "fractional-device", 13),
        ({"fields": 'resources: {limits: {example.com/x: "1E"}}'}, "", 0),
        ({"fields": 'resources: {limits: {example.com/x: "1000000000000000"}}'}, "", 0),
        (
            {"spec": f"volumes: [{EPHEMERAL}, {{name: w, persistentVolumeClaim: {{claimName: demo-worker-1-v}}}}]"},
            "invalid-volume-source",
            12,
        ),
        (
            {"spec": f"volumes: [{EPHEMERAL}, {{name: w, persistentVolumeClaim: {{claimName: demo-worker-2-v}}}}]"},
            "",
            0,
        ),
        (
            {"spec": f"volumes: [{EPHEMERAL}, {{name: w, persistentVolumeClaim: {{claimName: demo-worker-0}}}}]"},
            "",
            0,
        ),
        ({"spec": "imagePullSecrets: [{}, {name: ''}]"}, "duplicate-item", 12),
        ({"spec": "imagePullSecrets: [{}, {name: a}]"}, "", 0),
        (
            {"spec": f"volumes: [{{name: v, iscsi: {{targetPortal: a, iqn: {IQN}, lun: 0, initiatorName: ''}}}}]"},
            "invalid-volume-source",
            12,
        ),
    ],
    ids=str,
)
def test_pods_of_jobs(parts: dict[str, str], rule: str, line: int) -> None:
    assert find_errors(make_job(**parts)) == ([(rule, line)] if rule else [])


def test_a_pod_requests_what_its_containers_request() -> None:
    text = make_job(
        kind="PyTorchJob",
        roles="pytorchReplicaSpecs",
        container="pytorch",
        spec="resources: {limits: {hugepages-2Mi: 2Mi}}",
        fields="resources: {limits: {hugepages-2Mi: 2Mi, cpu: 1}}",
    )
    template = read(text.encode(), "a.yaml").documents[0].data["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]

    assert validate_pod_template(template) == []
    assert [problem.rule for problem in validate_pod_template(template, is_template=True)] == ["invalid-hugepages"]


def test_fields_that_are_null_do_not_count() -> None:
    text = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainingRuntime\nmetadata: {name: a}\nspec:\n"

    assert find_errors(text + "  template: {spec: null}\n") == [("out-of-range", 5)]


RICH_JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: demo
  labels:
    team: nlp
spec:
  runPolicy:
    backoffLimit: 3
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        metadata:
          annotations:
            note: text
        spec:
          affinity:
            nodeAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
                nodeSelectorTerms:
                - matchExpressions:
                  - key: pool
                    operator: In
                    values:
                    - gpu
          tolerations:
          - key: gpu
            operator: Equal
            value: x
          containers:
          - name: pytorch
            image: x:1
            command:
            - python3
            env:
            - name: A
              valueFrom:
                secretKeyRef:
                  name: s
                  key: k
            ports:
            - name: http
              containerPort: 80
            livenessProbe:
              httpGet:
                path: /
                port: 80
            volumeMounts:
            - name: data
              mountPath: /data
          volumes:
          - name: data
            emptyDir:
              sizeLimit: 1Gi
"""


def mutate_lines(text: str) -> list[tuple[int, str]]:
    """Manifests with one line changed: its number, and the text. Lines below a changed one go with it."""
    lines, made = text.splitlines(), []
    for index, line in enumerate(lines):
        match = re.fullmatch(r"( *(?:- )?)([\w./-]+):(?: (.*))?", line)
        item = re.fullmatch(r"( *- ).*", line)
        indent = len(line) - len(line.lstrip(" "))
        starts = [(match[1] + match[2] + ": ", len(match[1]), not item)] if match else []
        starts += [(item[1], indent, False)] if item else []
        for start, column, has_list in starts:
            end = index + 1
            while end < len(lines) and (
                len(lines[end]) - len(lines[end].lstrip()) > column
                or (has_list and lines[end].startswith(f"{' ' * column}- "))
            ):
                end += 1
            for value in ("null", "", "{}", "[]", "-1", "'a b_'", "1.5"):
                made.append((index + 1, "\n".join([*lines[:index], (start + value).rstrip(), *lines[end:]]) + "\n"))
    return made


def test_findings_are_on_the_line_of_the_fault() -> None:
    assert find_errors(RICH_JOB) == []
    made = [(number, text, find_errors(text)) for number, text in mutate_lines(RICH_JOB)]
    faults = [(number, text.splitlines()[number - 1].strip(), found) for number, text, found in made if found]
    # The mount of a volume is at fault, and not the list that lacks it.
    elsewhere = [fault for fault in faults if fault[0] not in [line for _, line in fault[2]]]

    assert len(faults) > 250
    assert {line for _, line, _ in elsewhere} <= {"volumes: null", "volumes:", "volumes: []"}, elsewhere


def test_an_empty_mapping_has_a_location_in_yaml_and_json() -> None:
    for text in ("a:\n- {}\n", '{"a":\n[{}]}'):
        [document] = read(text.encode(), "a.yaml", traced=True).documents
        [item] = document.data["a"]

        assert item == {}
        assert location_of(item) is not None
        assert location_of(item).line == 2
        assert location_of(with_layer(document.data, "manifest")["a"][0]).line == 2


def test_an_exception_in_one_validation_hides_no_other_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(obj: object, place: object, run: object) -> None:
        raise KeyError("containerPort")

    monkeypatch.setattr(validation, "find_kind", lambda obj: Kind(check))
    text = DEPLOYMENT.replace("name: a}", "name: A_}").replace(
        "image: x:1", "image: x:1, ports: [{containerPort: 99999}]"
    )

    rules = [rule for rule, _ in find_errors(text + "bogus: 1\n")]
    assert sorted(rules) == ["internal-error", "invalid-name", "invalid-port", "unknown-field"]
