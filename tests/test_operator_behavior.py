"""The table of operator behavior, and the CEL transition rules of CRDs."""

import json

import pytest

from jobgen.cli.commands.diff import diff_states
from jobgen.compare.impact import find_rejections
from jobgen.compare.operator_behavior import BEHAVIORS, Effect, JobState, predict_outcome

PRIORITY = "metadata/labels/kueue.x-k8s.io~1priority-class"


def state_of(behavior):
    """A job that the behavior applies to."""
    operator = behavior.operators.split()[0] if behavior.operators else "other-operator"
    kind = behavior.kinds.split()[0] if behavior.kinds else "Thing"
    return JobState(
        operator,
        kind,
        behavior.span.since,
        behavior.kueue.since,
        suspended=bool(behavior.suspended),
        queued=bool(behavior.queued),
        elastic=bool(behavior.elastic),
        on_both_sides=behavior.on_both_sides is not False,
        partial=bool(behavior.partial),
        upgrade=behavior.upgrade or "",
    )


@pytest.mark.parametrize(
    "behavior",
    BEHAVIORS,
    ids=lambda behavior: f"{behavior.operators or 'any'}:{behavior.paths.split()[0]}:{behavior.effect.value}",
)
def test_every_behavior_can_apply(behavior):
    outcomes = [predict_outcome(path, state_of(behavior)) for path in behavior.paths.split()]

    assert (behavior.effect, behavior.reason) in {(outcome.effect, outcome.reason) for outcome in outcomes}


@pytest.mark.parametrize(
    ("path", "state", "effect"),
    [
        ("spec/runPolicy/schedulingPolicy/queue", JobState("training-operator", "TFJob", "1.7.0"), Effect.IN_PLACE),
        ("spec/runPolicy/schedulingPolicy/queue", JobState("training-operator", "TFJob", "1.8.0"), Effect.REJECTED),
        (
            "spec/runPolicy/schedulingPolicy/queue",
            JobState("training-operator", on_both_sides=False),
            Effect.IN_PLACE,
        ),
        ("spec/runPolicy/managedBy", JobState("training-operator", "PyTorchJob", "1.9.0"), Effect.IN_PLACE),
        ("spec/runPolicy/managedBy", JobState("training-operator", "TFJob", "1.9.0"), Effect.REJECTED),
        ("spec/runPolicy/backoffLimit", JobState("training-operator", "TFJob"), Effect.IN_PLACE),
        ("spec/runPolicy/backoffLimit", JobState("mpi-operator", "MPIJob"), Effect.NO_EFFECT),
        ("role/template/spec/volumes", JobState("training-operator", "TFJob", queued=True), Effect.NO_EFFECT),
        ("role/template/spec/volumes", JobState("training-operator", "TFJob", suspended=True), Effect.IN_PLACE),
        ("spec/resources/requests/storage", JobState("-", "PersistentVolumeClaim"), Effect.IN_PLACE),
        ("spec/template", JobState("-", "Deployment"), Effect.RESTART),
        ("data/x", JobState("-", "ConfigMap"), Effect.IN_PLACE),
        ("spec/parallelism", JobState("kubernetes", "Job"), Effect.IN_PLACE),
        ("spec/parallelism", JobState("kubernetes", "Job", queued=True), Effect.RESTART),
        ("spec/parallelism", JobState("kubernetes", "Job", queued=True, elastic=True), Effect.IN_PLACE),
        ("spec/parallelism", JobState("kubernetes", "Job", queued=True, partial=True), Effect.REJECTED),
        ("metadata/labels/kueue.x-k8s.io~1queue-name", JobState("kubernetes", "Job", queued=True), Effect.REJECTED),
        ("metadata/labels/kueue.x-k8s.io~1queue-name", JobState("kubernetes", "Job"), Effect.IN_PLACE),
        (PRIORITY, JobState("training-operator", "TFJob", "", "0.14.8", queued=True), Effect.REJECTED),
        (PRIORITY, JobState("training-operator", "TFJob", "", "0.15", queued=True), Effect.IN_PLACE),
        (PRIORITY, JobState("training-operator", "TFJob", queued=True), Effect.IN_PLACE),
        (PRIORITY, JobState("training-operator", "TFJob", queued=True, on_both_sides=False), Effect.REJECTED),
        ("role/template/spec", JobState("other-operator", "OtherJob"), Effect.NO_EFFECT),
    ],
)
def test_predicted_effect(path, state, effect):
    assert predict_outcome(path, state).effect is effect


@pytest.mark.parametrize(("declared", "who"), [("0.8", "Kueue 0.8"), ("0.19.2", "Kueue 0.19.2"), ("", "Kueue")])
def test_every_version_of_kueue_compares_whole_containers(declared, who):
    state = JobState("training-operator", "PyTorchJob", kueue=declared, queued=True)
    outcome = predict_outcome("role/template/spec/containers/*/env/*/value", state)

    assert outcome.effect is Effect.RESTART
    assert outcome.reason.startswith(f"{who} stops the job and queues it again, because the number of pods and every ")


JOB = "spec: {{{}template: {{spec: {{{}containers: [{{name: a, image: i, {}resources: {{limits: {{cpu: {}}}}}}}]}}}}}}"
TASKS = "spec: {{queue: {}, tasks: [{{name: {}, replicas: {}}}]}}"
POD = "spec: {{nodeName: {}, tolerations: [{}], containers: [{{name: a, image: {}}}]}}"
CRD = "spec: {{group: example.com, scope: {}, names: {{plural: as, kind: {}, shortNames: [{}]}}}}"
TRAIN = "spec: {{runtimeRef: {{name: a}}{}}}"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
ON_DELETE = "spec: {updateStrategy: {type: OnDelete}}"
VERSIONS = "spec: {versions: [{name: v1alpha1, storage: true}, {name: v1}]}"
# The kind, the old and the new fields, and whether the change is rejected.
DRIVERS = "spec: {{drivers: [{{name: a, nodeID: {}, allocatable: {{count: {}}}}}, {{name: b, nodeID: z}}]}}"
HEALTH = "spec: {{type: LoadBalancer, healthCheckNodePort: {}, externalTrafficPolicy: {}}}"
EDITS = [
    ("v1 ConfigMap", "data: {a: x}", "data: {a: y}", False),
    ("v1 ConfigMap", "data: {a: x}", "data: {a: x}\nimmutable: true", False),
    ("v1 ConfigMap", "data: {a: x}\nimmutable: true", "data: {a: y}\nimmutable: true", True),
    ("v1 ConfigMap", "binaryData: {a: eA==}\nimmutable: true", "binaryData: {}\nimmutable: true", True),
    ("v1 ConfigMap", "data: {a: x}\nimmutable: true", "data: {a: x}", True),
    ("v1 Secret", "data: {a: eA==}", "data: {a: eQ==}", False),
    ("v1 Secret", "data: {a: eA==}\nimmutable: true", "data: {a: eQ==}\nimmutable: true", True),
    ("v1 Secret", "stringData: {a: x}\nimmutable: true", "stringData: {a: z}\nimmutable: true", True),
    ("v1 Secret", "stringData: {a: x}\nimmutable: true", "data: {a: eA==}\nimmutable: true", False),
    ("v1 Secret", "data: {a: eA==}\nimmutable: true", "data: {a: eA==}\nimmutable: false", True),
    ("v1 Secret", "type: Opaque", "type: a/b", True),
    ("v1 Secret", "data: {}", "type: Opaque", False),
    ("v1 PersistentVolume", "spec: {nfs: {server: a, path: /}}", "spec: {nfs: {server: b, path: /}}", True),
    ("v1 PersistentVolume", "spec: {capacity: {storage: 1Gi}}", "spec: {capacity: {storage: 2Gi}}", False),
    ("v1 PersistentVolume", "spec: {csi: {driver: a}}", "spec: {csi: {driver: a, fsType: ext4}}", True),
    (
        "v1 PersistentVolume",
        "spec: {csi: {driver: a}}",
        "spec: {csi: {driver: a, controllerExpandSecretRef: {name: a}}}",
        False,
    ),
    ("v1 PersistentVolumeClaim", "spec: {accessModes: [ReadWriteOnce]}", "spec: {accessModes: [ReadWriteMany]}", True),
    (
        "v1 PersistentVolumeClaim",
        "spec: {resources: {requests: {storage: 1Gi}}}",
        "spec: {resources: {requests: {storage: 2Gi}}}",
        False,
    ),
    (
        "v1 PersistentVolumeClaim",
        "spec: {resources: {requests: {storage: 2Gi}}}",
        "spec: {resources: {requests: {storage: 1Gi}}}",
        True,
    ),
    ("v1 PersistentVolumeClaim", "spec: {storageClassName: a}", "spec: {storageClassName: b}", True),
    ("v1 PersistentVolumeClaim", "spec: {}", "spec: {volumeMode: Filesystem}", False),
    ("v1 Service", "spec: {clusterIP: 10.0.0.1}", "spec: {clusterIP: 10.0.0.2}", True),
    ("v1 Service", "spec: {clusterIP: 10.0.0.1}", "spec: {ports: []}", False),
    ("v1 Service", "spec: {ports: []}", "spec: {clusterIP: None}", True),
    ("v1 Service", "spec: {type: ExternalName}", "spec: {clusterIP: None}", False),
    ("v1 Service", "spec: {ipFamilies: [IPv4]}", "spec: {ipFamilies: [IPv6]}", True),
    ("v1 Service", "spec: {ipFamilies: [IPv4]}", "spec: {ipFamilies: [IPv4, IPv6]}", False),
    ("v1 Service", "spec: {selector: {a: b}}", "spec: {selector: {a: c}}", False),
    ("v1 Pod", POD.format("a", "", "i"), POD.format("a", "", "j"), False),
    ("v1 Pod", POD.format("a", "", "i"), POD.format("b", "", "i"), True),
    ("v1 Pod", POD.format("a", "", "i"), POD.format("a", "{key: a}", "i"), False),
    ("v1 Pod", POD.format("a", "{key: a}", "i"), POD.format("a", "", "i"), True),
    ("v1 Pod", "spec: {activeDeadlineSeconds: 5}", "spec: {activeDeadlineSeconds: 4}", False),
    ("v1 Pod", "spec: {activeDeadlineSeconds: 5}", "spec: {activeDeadlineSeconds: 6}", True),
    ("v1 Pod", "spec: {schedulingGates: [{name: a}]}", "spec: {restartPolicy: Always}", False),
    ("v1 Pod", "spec: {restartPolicy: Always}", "spec: {schedulingGates: [{name: a}]}", True),
    ("v1 LimitRange", "spec: {limits: []}", "spec: {limits: [{type: Pod}]}", False),
    ("v1 ResourceQuota", "spec: {hard: {pods: 1}}", "spec: {hard: {pods: 2}}", False),
    ("apps/v1 StatefulSet", "spec: {serviceName: a}", "spec: {serviceName: b}", True),
    ("apps/v1 StatefulSet", "spec: {replicas: 1}", "spec: {replicas: 2, podManagementPolicy: OrderedReady}", False),
    ("apps/v1 StatefulSet", "spec: {minReadySeconds: 1}", "spec: {ordinals: {start: 1}}", False),
    ("apps/v1 ReplicaSet", "spec: {selector: {matchLabels: {a: b}}}", "spec: {selector: {matchLabels: {a: c}}}", True),
    ("apps/v1 DaemonSet", "spec: {selector: {matchLabels: {a: b}}}", "spec: {selector: {matchLabels: {a: c}}}", True),
    ("batch/v1 Job", JOB.format("", "", "", 1), JOB.format("", "", "", 2), True),
    ("batch/v1 Job", JOB.format("suspend: true, ", "", "", 1), JOB.format("suspend: true, ", "", "", 2), False),
    ("batch/v1 Job", JOB.format("suspend: true, ", "", "", 1), JOB.format("", "nodeSelector: {a: b}, ", "", 1), False),
    ("batch/v1 Job", JOB.format("", "", "", 1), JOB.format("suspend: true, ", "nodeSelector: {a: b}, ", "", 1), True),
    ("batch/v1 Job", JOB.format("suspend: true, ", "", "", 1), JOB.format("", "", "command: [a], ", 1), True),
    ("batch/v1 Job", "spec: {backoffLimit: 1}", "spec: {backoffLimit: 2}", False),
    ("batch/v1 Job", "spec: {podFailurePolicy: {rules: []}}", "spec: {podFailurePolicy: {rules: [{}]}}", True),
    ("batch/v1 Job", "spec: {managedBy: a/b}", "spec: {managedBy: a/c}", True),
    ("batch/v1 Job", "spec: {completions: 1}", "spec: {completions: 2}", True),
    ("batch/v1 Job", "spec: {completionMode: NonIndexed}", "spec: {ttlSecondsAfterFinished: 1}", False),
    (
        "batch/v1 Job",
        "spec: {completionMode: Indexed, completions: 1, parallelism: 1}",
        "spec: {completionMode: Indexed, completions: 2, parallelism: 2}",
        False,
    ),
    ("rbac.authorization.k8s.io/v1 RoleBinding", "roleRef: {kind: Role, name: a}", "roleRef: {name: b}", True),
    (
        "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
        "roleRef: {kind: ClusterRole, name: a}",
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}",
        False,
    ),
    ("rbac.authorization.k8s.io/v1 RoleBinding", "subjects: []", "subjects: [{kind: User, name: a}]", False),
    ("scheduling.k8s.io/v1 PriorityClass", "value: 1", "value: 2", True),
    ("scheduling.k8s.io/v1 PriorityClass", "preemptionPolicy: PreemptLowerPriority", "globalDefault: true", False),
    ("storage.k8s.io/v1 StorageClass", "parameters: {a: b}", "parameters: {a: c}", True),
    ("storage.k8s.io/v1 StorageClass", "reclaimPolicy: Delete", "allowVolumeExpansion: true", False),
    ("storage.k8s.io/v1 VolumeAttributesClass", "parameters: {a: b}", "parameters: {a: c}", True),
    ("storage.k8s.io/v1 CSIDriver", "spec: {attachRequired: true}", "spec: {attachRequired: false}", True),
    ("storage.k8s.io/v1 CSIDriver", "spec: {podInfoOnMount: true}", "spec: {podInfoOnMount: false}", False),
    ("resource.k8s.io/v1 ResourceClaim", "spec: {devices: {requests: [{name: a}]}}", "spec: {devices: {}}", True),
    ("resource.k8s.io/v1 ResourceClaimTemplate", "spec: {spec: {devices: {}}}", "spec: {spec: {}}", False),
    (
        "resource.k8s.io/v1 ResourceClaimTemplate",
        "spec: {spec: {devices: {}}}",
        "spec: {spec: {devices: {requests: [{name: a}]}}}",
        True,
    ),
    ("networking.k8s.io/v1 IngressClass", "spec: {controller: a/b}", "spec: {controller: a/c}", True),
    ("networking.k8s.io/v1 IPAddress", "spec: {parentRef: {name: a}}", "spec: {parentRef: {name: b}}", True),
    ("networking.k8s.io/v1 ServiceCIDR", "spec: {cidrs: [10.0.0.0/8]}", "spec: {cidrs: [10.0.0.0/8, fd::/64]}", False),
    ("networking.k8s.io/v1 ServiceCIDR", "spec: {cidrs: [10.0.0.0/8]}", "spec: {cidrs: [fd::/64, 10.0.0.0/8]}", True),
    ("networking.k8s.io/v1 ServiceCIDR", "spec: {cidrs: [10.0.0.0/8, fd::/64]}", "spec: {cidrs: [fd::/64]}", True),
    ("apps/v1 ControllerRevision", "data: {a: b}", "data: {a: c}", True),
    ("apps/v1 ControllerRevision", "revision: 1", "revision: 2", False),
    ("storage.k8s.io/v1 VolumeAttachment", "spec: {nodeName: a}", "spec: {nodeName: b}", True),
    ("storage.k8s.io/v1 CSINode", "spec: {drivers: [{name: a, nodeID: x}]}", DRIVERS.format("y", 1), True),
    ("storage.k8s.io/v1 CSINode", "spec: {drivers: [{name: a, nodeID: x}]}", DRIVERS.format("x", 2), False),
    ("v1 Service", HEALTH.format(31000, "Local"), HEALTH.format(31001, "Local"), True),
    ("v1 Service", HEALTH.format(31000, "Local"), HEALTH.format("null", "Local"), False),
    ("v1 Service", HEALTH.format(31000, "Local"), HEALTH.format(31001, "Cluster"), False),
    ("node.k8s.io/v1 RuntimeClass", "handler: a", "handler: b", True),
    ("node.k8s.io/v1 RuntimeClass", "overhead: {podFixed: {cpu: 1}}", "overhead: {podFixed: {cpu: 2}}", False),
    ("discovery.k8s.io/v1 EndpointSlice", "addressType: IPv4", "addressType: IPv6", True),
    (
        "apiextensions.k8s.io/v1 CustomResourceDefinition",
        CRD.format("Cluster", "A", "a"),
        CRD.format("Namespaced", "A", "a"),
        True,
    ),
    (
        "apiextensions.k8s.io/v1 CustomResourceDefinition",
        CRD.format("Cluster", "A", "a"),
        CRD.format("Cluster", "A", "b"),
        False,
    ),
    ("batch.volcano.sh/v1alpha1 Job", TASKS.format("a", "a", 1), TASKS.format("b", "a", 1), True),
    ("batch.volcano.sh/v1alpha1 Job", TASKS.format("a", "a", 1), TASKS.format("a", "a", 2), False),
    ("batch.volcano.sh/v1alpha1 Job", TASKS.format("a", "a", 1), TASKS.format("a", "b", 1), True),
    ("batch.volcano.sh/v1alpha1 Job", "spec: {minAvailable: 1}", "spec: {minAvailable: 2}", False),
    ("jobset.x-k8s.io/v1alpha2 JobSet", "spec: {managedBy: a/b}", "spec: {managedBy: a/c}", True),
    (
        "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet",
        "spec: {leaderWorkerTemplate: {subGroupPolicy: {subGroupSize: 2}}}",
        "spec: {leaderWorkerTemplate: {subGroupPolicy: {subGroupSize: 4}}}",
        True,
    ),
    ("leaderworkerset.x-k8s.io/v1 LeaderWorkerSet", "spec: {replicas: 1}", "spec: {replicas: 2}", False),
    ("example.com/v1 Secret", "type: a", "type: b", False),
    ("v1 ResourceQuota", "spec: {scopes: [BestEffort]}", "spec: {scopes: [NotBestEffort]}", True),
    ("v1 ResourceQuota", "spec: {hard: {pods: 1}}", "spec: {hard: {pods: 1}, scopes: [BestEffort]}", True),
    ("v1 ResourceQuota", "spec: {scopes: [BestEffort]}", "spec: {hard: {pods: 1}}", True),
    (
        "v1 ResourceQuota",
        "spec: {scopes: [BestEffort, NotTerminating]}",
        "spec: {scopes: [NotTerminating, BestEffort]}",
        False,
    ),
    ("trainer.kubeflow.org/v1alpha1 TrainJob", TRAIN.format(""), TRAIN.format(f", managedBy: {MULTIKUEUE}"), True),
    ("trainer.kubeflow.org/v1alpha1 TrainJob", TRAIN.format(f", managedBy: {MULTIKUEUE}"), TRAIN.format(""), True),
    ("apps/v1 StatefulSet", "spec: {replicas: 1}", "spec: {updateStrategy: {type: OnDelete}}", True),
    ("apps/v1 StatefulSet", "spec: {updateStrategy: {}}", "spec: {updateStrategy: {type: OnDelete}}", True),
    # A strategy that is written gets no default, and what was written is deleted.
    ("apps/v1 StatefulSet", "spec: {updateStrategy: {type: RollingUpdate}}", ON_DELETE, False),
    ("apps/v1 StatefulSet", "spec: {updateStrategy: {rollingUpdate: {partition: 1}}}", ON_DELETE, False),
    ("apps/v1 StatefulSet", ON_DELETE, "spec: {replicas: 1}", False),
    ("apiextensions.k8s.io/v1 CustomResourceDefinition", VERSIONS, VERSIONS.replace("v1alpha1", "v1beta1"), True),
    ("apiextensions.k8s.io/v1 CustomResourceDefinition", VERSIONS, VERSIONS.replace(", {name: v1}", ""), False),
    ("scheduling.k8s.io/v1alpha1 Workload", "spec: {podGroups: [{name: a}]}", "spec: {podGroups: [{name: b}]}", True),
    ("certificates.k8s.io/v1beta1 PodCertificateRequest", "spec: {podName: a}", "spec: {podName: b}", True),
]


def diff_effects(folder, edits):
    """The effects of all edits, by the name of the object."""
    for side in (0, 1):
        path = folder / ("old", "new")[side] / "objects.yaml"
        path.parent.mkdir()
        path.write_text(
            "---\n".join(
                "apiVersion: {}\nkind: {}\n".format(*edit[0].split())
                + f"metadata: {{name: edit-{n}}}\n{edit[1 + side]}\n"
                for n, edit in enumerate(edits)
            )
        )
    report = diff_states(folder, "", (), folders=("old", "new"), format_="json", exit_code=False)
    return {one["object"]["name"]: one["effect"] for one in json.loads(report.out)["objects"]}


@pytest.fixture(scope="module")
def effects(tmp_path_factory):
    return diff_effects(tmp_path_factory.mktemp("edits"), EDITS)


@pytest.mark.parametrize(
    ("number", "edit"),
    list(enumerate(EDITS)),
    ids=lambda value: value[0].split()[-1] if isinstance(value, tuple) else str(value),
)
def test_immutable_fields(number, edit, effects):
    assert (effects.get(f"edit-{number}") == "rejected") is edit[3], edit


def test_suspended_and_resumed_jobs(tmp_path):
    running, suspended = "spec: {backoffLimit: 1}", "spec: {backoffLimit: 1, suspend: true}"
    edits = [
        (kind, *sides)
        for kind in ("batch/v1 Job", "jobset.x-k8s.io/v1alpha2 JobSet", "batch/v1 CronJob")
        for sides in ((running, suspended), (suspended, running))
    ]

    assert list(diff_effects(tmp_path, edits).items()) == [
        ("edit-0", "stops-running"),
        ("edit-2", "stops-running"),
        ("edit-1", "new-run"),
        ("edit-3", "new-run"),
        ("edit-4", "in-place"),
        ("edit-5", "in-place"),
    ]


def crd(**properties):
    return json.dumps({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}).encode()


def rule(text, message=""):
    return {"x-kubernetes-validations": [{"rule": text, **({"message": message} if message else {})}]}


def test_transition_rules_need_both_sides():
    schema = crd(a={"type": "integer", **rule("self == oldSelf", "no")})

    assert find_rejections(schema, {"spec": {"a": 1}}, {"spec": {"a": 1}}) == []
    assert find_rejections(schema, {"spec": {}}, {"spec": {"a": 1}}) == []
    assert find_rejections(schema, {"spec": {"a": 1}}, {"spec": {}}) == []
    assert find_rejections(schema, {"spec": {"a": 1}}, {"spec": {"a": 2}}) == [(("spec", "a"), "no")]


def test_rules_are_evaluated_as_cel():
    schema = crd(a={"type": "integer", **rule("self >= oldSelf")})

    assert find_rejections(schema, {"spec": {"a": 1}}, {"spec": {"a": 2}}) == []
    assert find_rejections(schema, {"spec": {"a": 2}}, {"spec": {"a": 1}}) == [
        (("spec", "a"), "failed rule: `self >= oldSelf`")
    ]


def test_defaulted_values_are_no_change():
    schema = crd(
        ref={
            "type": "object",
            "properties": {"kind": {"type": "string", "default": "Runtime"}, "name": {"type": "string"}},
            **rule("self == oldSelf"),
        }
    )
    old, new = {"spec": {"ref": {"name": "x"}}}, {"spec": {"ref": {"name": "x", "kind": "Runtime"}}}

    assert find_rejections(schema, old, new) == []


def test_list_items_are_compared_by_key():
    item = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "v": {"type": "integer", **rule("self == oldSelf")}},
    }
    keyed = crd(a={"type": "array", "x-kubernetes-list-map-keys": ["name"], "items": item})
    loose = crd(a={"type": "array", "items": item})
    old = {"spec": {"a": [{"name": "x", "v": 1}, {"name": "y", "v": 2}]}}
    new = {"spec": {"a": [{"name": "y", "v": 3}, {"name": "x", "v": 1}]}}

    assert [str(refusal.path[2]) for refusal in find_rejections(keyed, old, new)] == ["[name=y]"]
    assert find_rejections(loose, old, new) == []


def test_schema_without_transition_rules_is_skipped():
    assert find_rejections(b"{}", {"a": 1}, {"a": 2}) == []
    assert find_rejections(b"", {"a": 1}, {"a": 2}) == []
