"""An edit that writes out what the API server or a webhook fills in, or deletes it, changes nothing.

The defaults are those of Kubernetes' `SetDefaults_…` functions and of the CRDs, not those that jobgen knows.
"""

import json

from hypothesis import given
from hypothesis import strategies as st
from sampling import laws

from jobgen.cli.commands.diff import diff_states
from jobgen.compare.immutable_fields import IMMUTABLE_FIELDS
from jobgen.yamlio.read import read

PROBE = {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1}
POD_SPEC = """
containers:
- name: a
  image: a:1
  ports: [{containerPort: 80}]
  env:
  - {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  livenessProbe: {httpGet: {port: 80}}
  readinessProbe: {grpc: {port: 80}}
- {name: b, image: 'b:latest'}
initContainers: [{name: c, image: c}]
volumes:
- {name: configs, configMap: {name: a}}
- {name: secrets, secret: {secretName: a}}
- {name: files, hostPath: {path: /a}}
- {name: facts, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}
- {name: many, projected: {sources: [{serviceAccountToken: {path: a}}]}}
- {name: empty}
- {name: block, iscsi: {targetPortal: a, iqn: iqn.a, lun: 0}}
- {name: rados, rbd: {monitors: [a], image: a}}
- {name: disk, azureDisk: {diskName: a, diskURI: a}}
- {name: model, image: {reference: 'a:1'}}
- {name: nfs, nfs: {server: a, path: /}}
"""
POD_DEFAULTS = {
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
    "nodeSelector": {},
    "tolerations": [],
    "hostNetwork": False,
    "hostPID": False,
    "hostIPC": False,
    "nodeName": "",
    "hostname": "",
    "priorityClassName": "",
    "containers.0.imagePullPolicy": "IfNotPresent",
    "containers.0.terminationMessagePath": "/dev/termination-log",
    "containers.0.terminationMessagePolicy": "File",
    "containers.0.resources": {},
    "containers.0.command": [],
    "containers.0.workingDir": "",
    "containers.0.stdin": False,
    "containers.0.tty": False,
    "containers.0.ports.0.protocol": "TCP",
    "containers.0.ports.0.hostPort": 0,
    "containers.0.env.0.valueFrom.fieldRef.apiVersion": "v1",
    **{f"containers.0.livenessProbe.{name}": value for name, value in PROBE.items()},
    **{f"containers.0.readinessProbe.{name}": value for name, value in PROBE.items()},
    "containers.0.livenessProbe.initialDelaySeconds": 0,
    "containers.0.livenessProbe.httpGet.path": "/",
    "containers.0.livenessProbe.httpGet.scheme": "HTTP",
    "containers.0.readinessProbe.grpc.service": "",
    "containers.1.imagePullPolicy": "Always",
    "initContainers.0.imagePullPolicy": "Always",
    "volumes.0.configMap.defaultMode": 420,
    "volumes.1.secret.defaultMode": 420,
    "volumes.2.hostPath.type": "",
    "volumes.3.downwardAPI.defaultMode": 420,
    "volumes.3.downwardAPI.items.0.fieldRef.apiVersion": "v1",
    "volumes.4.projected.defaultMode": 420,
    "volumes.4.projected.sources.0.serviceAccountToken.expirationSeconds": 3600,
    "volumes.5.emptyDir": {},
    "volumes.6.iscsi.iscsiInterface": "default",
    "volumes.6.iscsi.readOnly": False,
    "volumes.7.rbd.pool": "rbd",
    "volumes.7.rbd.user": "admin",
    "volumes.7.rbd.keyring": "/etc/ceph/keyring",
    "volumes.8.azureDisk.cachingMode": "ReadWrite",
    "volumes.8.azureDisk.fsType": "ext4",
    "volumes.8.azureDisk.kind": "Shared",
    "volumes.8.azureDisk.readOnly": False,
    "volumes.9.image.pullPolicy": "IfNotPresent",
    "volumes.10.nfs.readOnly": False,
}
RBAC, DRA = "rbac.authorization.k8s.io/v1", "resource.k8s.io"
REQUEST = {"allocationMode": "ExactCount", "count": 1, "adminAccess": None, "selectors": []}
DEVICES = {
    **{f"requests.0.exactly.{name}": value for name, value in REQUEST.items()},
    "requests.1.firstAvailable.0.allocationMode": "ExactCount",
    "requests.1.firstAvailable.0.count": 1,
    "constraints": [],
    "config": [],
}
EXACTLY, CHOICE = "exactly: {deviceClassName: a}", "firstAvailable: [{name: c, deviceClassName: a}]"
CLAIM = f"devices: {{requests: [{{name: a, {EXACTLY}}}, {{name: b, {CHOICE}}}]}}"
OLD_CLAIM = "devices: {requests: [{name: a, deviceClassName: a}]}"


def below(path, defaults):
    return {f"{path}.{name}": value for name, value in defaults.items()}


def indent(text, by=2):
    return "".join(" " * by + line + "\n" for line in text.strip().splitlines())


WORKLOAD = """
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: 'a:1'}]}}
"""
CLAIMS = """  volumeClaimTemplates:
  - metadata: {name: a}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
JOB_SET = (
    "spec: {replicatedJobs: [{name: a, template: {spec: {template: {spec: {containers: [{name: a, image: a}]}}}}}]}"
)
JOB = "spec:\n  template:\n    spec:\n      restartPolicy: Never\n      serviceAccountName: a\n"
OBJECTS = {
    "Pod": (
        "v1",
        f"spec:\n{indent(POD_SPEC)}",
        {
            **below("spec", POD_DEFAULTS),
            "spec.restartPolicy": "Always",
            "spec.enableServiceLinks": True,
            "spec.preemptionPolicy": None,
        },
    ),
    "Job": (
        "batch/v1",
        JOB + indent(POD_SPEC, 6),
        {
            **below("spec.template.spec", POD_DEFAULTS),
            "spec.template.metadata": {},
            "spec.template.spec.serviceAccount": "a",
            "spec.completionMode": "NonIndexed",
            "spec.completions": 1,
            "spec.parallelism": 1,
            "spec.suspend": False,
            "spec.backoffLimit": 6,
        },
    ),
    "StatefulSet": (
        "apps/v1",
        WORKLOAD + CLAIMS,
        {
            "spec.serviceName": "",
            "spec.podManagementPolicy": "OrderedReady",
            "spec.updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "spec.selector.matchExpressions": [],
            "spec.volumeClaimTemplates.0.apiVersion": "v1",
            "spec.volumeClaimTemplates.0.kind": "PersistentVolumeClaim",
            "spec.volumeClaimTemplates.0.spec.volumeMode": "Filesystem",
            "spec.volumeClaimTemplates.0.status": {"phase": "Pending"},
        },
    ),
    "PersistentVolume": (
        "v1",
        "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], nfs: {server: a, path: /}}",
        {
            "spec.volumeMode": "Filesystem",
            "spec.persistentVolumeReclaimPolicy": "Retain",
            "spec.nfs.readOnly": False,
            "spec.storageClassName": "",
        },
    ),
    "PersistentVolumeClaim": (
        "v1",
        "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
        {"spec.volumeMode": "Filesystem", "spec.volumeName": "", "spec.resources.limits": {}},
    ),
    "Secret": ("v1", "data: {a: eA==}\nimmutable: true", {"type": "Opaque", "stringData": {}}),
    "ConfigMap": ("v1", "data: {a: x}\nimmutable: true", {"binaryData": {}}),
    "ResourceQuota": ("v1", "spec: {hard: {pods: 1}}", {"spec.scopes": []}),
    "Service": (
        "v1",
        "spec: {ports: [{port: 80}]}",
        {
            "spec.type": "ClusterIP",
            "spec.sessionAffinity": "None",
            "spec.internalTrafficPolicy": "Cluster",
            "spec.clusterIP": "",
            "spec.ports.0.protocol": "TCP",
            "spec.ports.0.targetPort": 80,
        },
    ),
    "Deployment": (
        "apps/v1",
        WORKLOAD,
        {
            "spec.replicas": 1,
            "spec.selector.matchExpressions": [],
            "spec.strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "spec.progressDeadlineSeconds": 600,
        },
    ),
    "DaemonSet": (
        "apps/v1",
        WORKLOAD,
        {"spec.updateStrategy.type": "RollingUpdate", "spec.revisionHistoryLimit": 10},
    ),
    "RoleBinding": (RBAC, "roleRef: {kind: Role, name: a}", {"roleRef.apiGroup": "rbac.authorization.k8s.io"}),
    "ClusterRoleBinding": (
        RBAC,
        "roleRef: {kind: ClusterRole, name: a}",
        {"roleRef.apiGroup": "rbac.authorization.k8s.io"},
    ),
    "PriorityClass": (
        "scheduling.k8s.io/v1",
        "description: a",
        {"value": 0, "globalDefault": False, "preemptionPolicy": "PreemptLowerPriority"},
    ),
    "StorageClass": (
        "storage.k8s.io/v1",
        "provisioner: a",
        {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", "parameters": {}},
    ),
    "CSIDriver": (
        "storage.k8s.io/v1",
        "spec: {tokenRequests: []}",
        {"spec.attachRequired": True, "spec.volumeLifecycleModes": ["Persistent"], "spec.podInfoOnMount": False},
    ),
    "VolumeAttributesClass": ("storage.k8s.io/v1", "driverName: a", {"parameters": {}}),
    "ResourceClaim": (f"{DRA}/v1", f"spec: {{{CLAIM}}}", below("spec.devices", DEVICES)),
    "ResourceClaimTemplate": (
        f"{DRA}/v1beta2",
        f"spec: {{spec: {{{CLAIM}}}}}",
        below("spec.spec.devices", DEVICES) | {"spec.metadata": {}},
    ),
    "ResourceClaim of v1beta1": (
        f"{DRA}/v1beta1",
        f"spec: {{{OLD_CLAIM}}}",
        {"spec.devices.requests.0.count": 1, "spec.devices.requests.0.allocationMode": "ExactCount"},
    ),
    "IngressClass": (
        "networking.k8s.io/v1",
        "spec: {controller: a/b, parameters: {kind: A, name: a}}",
        {"spec.parameters.scope": "Cluster"},
    ),
    "TrainJob": (
        "trainer.kubeflow.org/v1alpha1",
        "spec: {runtimeRef: {name: a}}",
        {
            "spec.managedBy": "trainer.kubeflow.org/trainjob-controller",
            "spec.suspend": False,
            "spec.runtimeRef.apiGroup": "trainer.kubeflow.org",
            "spec.runtimeRef.kind": "ClusterTrainingRuntime",
        },
    ),
    "JobSet": (
        "jobset.x-k8s.io/v1alpha2",
        JOB_SET,
        {
            "spec.replicatedJobs.0.replicas": 1,
            "spec.replicatedJobs.0.groupName": "default",
            "spec.replicatedJobs.0.template.spec.completionMode": "Indexed",
            "spec.replicatedJobs.0.template.spec.template.spec.restartPolicy": "OnFailure",
            "spec.network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "spec.successPolicy": {"operator": "All"},
            "spec.startupPolicy": {"startupPolicyOrder": "AnyOrder"},
        },
    ),
    "Job of Volcano": (
        "batch.volcano.sh/v1alpha1",
        "spec: {tasks: [{name: a, replicas: 1, template: {spec: {containers: [{name: a, image: a}]}}}]}",
        {"spec.queue": "default", "spec.schedulerName": "volcano", "spec.maxRetry": 3, "spec.tasks.0.maxRetry": 3},
    ),
}
CASES = [(name, path) for name, (_, _, defaults) in OBJECTS.items() for path in defaults if defaults[path] is not None]


def make(name):
    """The object without its defaults."""
    api_version, body, _ = OBJECTS[name]
    text = f"apiVersion: {api_version}\nkind: {name.split()[0]}\nmetadata: {{name: case, namespace: ml}}\n{body}\n"
    return json.loads(json.dumps(read(text.encode(), "a.yaml").documents[0].data))


def write_out(obj, path, value):
    """Write a value at a path, unless it is written."""
    *steps, last = path.split(".")
    for step in steps:
        obj = obj[int(step)] if isinstance(obj, list) else obj.setdefault(step, {})
    obj.setdefault(last, value)


def diff_all(folder, pairs):
    """The reported effects of changed objects, by the number of the pair."""
    for side in (0, 1):
        for number, pair in enumerate(pairs):
            path = folder / ("old", "new")[side] / f"{number}.json"
            path.parent.mkdir(exist_ok=True, parents=True)
            obj = pair[side]
            path.write_text(json.dumps({**obj, "metadata": {**obj["metadata"], "name": f"case-{number}"}}))
    report = diff_states(folder, "", (), folders=("old", "new"), format_="json", exit_code=False)
    assert report.err == ""
    return {int(one["object"]["name"][5:]): one for one in json.loads(report.out)["objects"]}


def test_a_default_that_is_written_or_deleted_is_no_change(tmp_path):
    pairs = []
    for name, path in CASES:
        written = make(name)
        write_out(written, path, OBJECTS[name][2][path])
        assert written != make(name), (name, path)
        pairs += [(make(name), written), (written, make(name))]

    found = diff_all(tmp_path, pairs)

    assert {CASES[number // 2]: one["fields"] for number, one in found.items()} == {}


@laws(15)
@given(st.data())
def test_any_defaults_together_are_no_change(tmp_path_factory, data):
    pairs = []
    for name in OBJECTS:
        written = make(name)
        paths = [path for path, value in OBJECTS[name][2].items() if value is not None]
        for path in data.draw(st.permutations(paths).map(lambda some: some[: max(1, len(some) // 2)])):
            write_out(written, path, OBJECTS[name][2][path])
        pairs.append((make(name), written))

    assert diff_all(tmp_path_factory.mktemp("some"), pairs) == {}


WITHOUT_DEFAULTS = frozenset(
    """AppWrapper CSINode CSIStorageCapacity ClusterTrustBundle ControllerRevision CustomResourceDefinition
    EndpointSlice GatewayClass IPAddress LeaderWorkerSet LeaseCandidate PodCertificateRequest PodGroup ReplicaSet
    ResourceSlice RuntimeClass ServiceCIDR StorageVersionMigration VolumeAttachment Workload""".split()
)
"""Kinds whose immutable fields have no defaults."""


def test_every_kind_with_immutable_fields_has_cases():
    kinds = {kind for entry in IMMUTABLE_FIELDS for kind in entry.kinds.split()}

    assert kinds - WITHOUT_DEFAULTS <= {name.split()[0] for name in OBJECTS}
    assert kinds >= WITHOUT_DEFAULTS
