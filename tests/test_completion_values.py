"""The values that completion lists for fields of Kubernetes are those that its validation accepts."""

import jobgen
from jobgen.features.editor.completion.candidates import BY_FIELD, BY_PARENT, ITEMS

SPEC = "apiVersion: {}\nkind: {}\nmetadata: {{name: a, namespace: b}}\nspec:\n"
POD = SPEC.format("v1", "Pod")
ONE = "  containers:\n    - {name: a, image: a.example.com/b:1}\n"
CONTAINER = (
    POD + "  volumes: [{name: v, emptyDir: {}}]\n  containers:\n    - name: a\n      image: a.example.com/b:1\n      "
)
JOB = SPEC.format("batch/v1", "Job")
TEMPLATE = "template: {spec: {restartPolicy: Never, containers: [{name: a, image: a.example.com/b:1}]}}"
POLICY = SPEC.format("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy").replace(", namespace: b", "")
CHECK = "  validations: [{expression: 'true'}]\n"
RULE = "{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}"
BINDING = POLICY.replace("Policy\n", "PolicyBinding\n") + "  policyName: a\n"
CLAIM = SPEC.format("v1", "PersistentVolumeClaim") + "  resources: {requests: {storage: 1Gi}}\n"
SELECTOR = "{topologyKey: z, labelSelector: {matchExpressions: [{key: a, operator: VALUE}]}}"
TEXTS = {
    "accessModes": CLAIM + "  accessModes: [VALUE]\n",
    "completionMode": JOB + f"  completionMode: VALUE\n  completions: 1\n  {TEMPLATE}\n",
    "concurrencyPolicy": SPEC.format("batch/v1", "CronJob")
    + f"  schedule: '@daily'\n  concurrencyPolicy: VALUE\n  jobTemplate: {{spec: {{{TEMPLATE}}}}}\n",
    "dnsPolicy": POD + ONE + "  dnsPolicy: VALUE\n  dnsConfig: {nameservers: [10.0.0.1]}\n",
    "effect": POD + ONE + "  tolerations: [{key: a, operator: Exists, effect: VALUE}]\n",
    "failurePolicy": POLICY + f"  failurePolicy: VALUE\n  matchConstraints: {{resourceRules: [{RULE}]}}\n" + CHECK,
    "imagePullPolicy": CONTAINER + "imagePullPolicy: VALUE\n",
    "matchPolicy": POLICY + f"  matchConstraints: {{matchPolicy: VALUE, resourceRules: [{RULE}]}}\n" + CHECK,
    "mountPropagation": CONTAINER
    + "securityContext: {privileged: true}\n      volumeMounts: [{name: v, mountPath: /v, mountPropagation: VALUE}]\n",
    "operations": POLICY + f"  matchConstraints: {{resourceRules: [{RULE.replace('CREATE', 'VALUE')}]}}\n" + CHECK,
    "parameterNotFoundAction": BINDING
    + "  validationActions: [Deny]\n  paramRef: {name: p, parameterNotFoundAction: VALUE}\n",
    "podReplacementPolicy": JOB + f"  podReplacementPolicy: VALUE\n  {TEMPLATE}\n",
    "policyTypes": SPEC.format("networking.k8s.io/v1", "NetworkPolicy") + "  podSelector: {}\n  policyTypes: [VALUE]\n",
    "preemptionPolicy": POD + ONE + "  preemptionPolicy: VALUE\n",
    "protocol": CONTAINER + "ports: [{containerPort: 80, protocol: VALUE}]\n",
    "pullPolicy": POD + ONE + "  volumes: [{name: v, image: {reference: a.example.com/b:1, pullPolicy: VALUE}}]\n",
    "restartPolicy": POD + ONE + "  restartPolicy: VALUE\n",
    "scheme": CONTAINER + "livenessProbe: {httpGet: {port: 80, scheme: VALUE}}\n",
    "terminationMessagePolicy": CONTAINER + "terminationMessagePolicy: VALUE\n",
    "validationActions": BINDING + "  validationActions: [VALUE]\n",
    "volumeMode": CLAIM + "  accessModes: [ReadWriteOnce]\n  volumeMode: VALUE\n",
    "whenUnsatisfiable": POD
    + ONE
    + "  topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: VALUE}]\n",
    ("appArmorProfile", "type"): CONTAINER
    + "securityContext: {appArmorProfile: {type: VALUE, localhostProfile: LOCAL}}\n",
    ("emptyDir", "medium"): POD + ONE + "  volumes: [{name: v, emptyDir: {medium: VALUE}}]\n",
    ("hostPath", "type"): POD + ONE + "  volumes: [{name: v, hostPath: {path: /v, type: VALUE}}]\n",
    ("matchExpressions", "operator"): POD
    + ONE
    + f"  affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{SELECTOR}]}}}}\n",
    ("seccompProfile", "type"): CONTAINER
    + "securityContext: {seccompProfile: {type: VALUE, localhostProfile: LOCAL}}\n",
    ("tolerations", "operator"): POD + ONE + "  tolerations: [{key: a, operator: VALUE}]\n",
}
REJECTED = {
    "unsupported-value",
    "invalid-value",
    "invalid-policy",
    "invalid-toleration",
    "invalid-probe",
    "invalid-selector",
}


def make_text(field, value):
    text = TEXTS[field].replace("VALUE", value)
    if value != "Localhost":
        text = text.replace(", localhostProfile: LOCAL", "")
    return (
        text.replace("LOCAL", "profile")
        .replace("key: a, operator: In}", "key: a, operator: In, values: [b]}")
        .replace("operator: NotIn}", "operator: NotIn, values: [b]}")
    )


def test_each_value_is_accepted_and_another_is_not(tmp_path):
    values = {**BY_FIELD, **BY_PARENT, **ITEMS}
    assert set(TEXTS) == set(values)
    names = {}
    for field, listed in values.items():
        for value in (*listed.split(), "Zzz"):
            name = f"{'-'.join(field) if isinstance(field, tuple) else field}-{value}.yaml"
            names[name] = field, value
            (tmp_path / name).write_text(make_text(field, value))

    found = {(each.location.file, each.rule) for each in jobgen.lint(tmp_path).findings}

    rejected = {names[file] for file, rule in found if rule in REJECTED}
    # The API server accepts any medium.
    assert rejected == {(field, "Zzz") for field in values if field != ("emptyDir", "medium")}
