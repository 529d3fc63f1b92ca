"""Policies about pods are evaluated on the pods that operators and controllers create, as in the cluster."""

import pytest

from jobgen import lint

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: images}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: GROUPS, apiVersions: [v1], operations: [CREATE], resources: RESOURCES}
  validations:
  - expression: VALIDATION
    message: denied
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: images}
spec: {policyName: images, validationActions: [Deny]}
"""
IMAGES = "\"object.spec.containers.all(c, c.image.startsWith('good/'))\""
LABELS = "\"has(object.metadata.labels) && 'owner' in object.metadata.labels\""
CONTAINERS = "containers: [{name: a, image: 'bad/a:1'}]"
POD = f"template: {{spec: {{restartPolicy: Never, {CONTAINERS}}}}}"
OBJECTS = {
    "PyTorchJob": ("kubeflow.org/v1", f"{{pytorchReplicaSpecs: {{Worker: {{{POD}}}}}}}"),
    "Job": ("batch/v1", f"{{{POD}}}"),
    "CronJob": ("batch/v1", f"{{schedule: '@daily', jobTemplate: {{spec: {{{POD}}}}}}}"),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", f"{{replicatedJobs: [{{name: a, template: {{spec: {{{POD}}}}}}}]}}"),
    "RayCluster": ("ray.io/v1", f"{{headGroupSpec: {{rayStartParams: {{}}, {POD}}}}}"),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io/v1", f"{{leaderWorkerTemplate: {{workerT{POD[1:]}}}}}"),
    "AppWrapper": (
        "workload.codeflare.dev/v1beta2",
        f"{{components: [{{template: {{apiVersion: batch/v1, kind: Job, metadata: {{name: b}}, spec: {{{POD}}}}}}}]}}",
    ),
}


def lint_objects(folder, objects, expression=IMAGES, resources="[pods]", groups="['']", policies=""):
    """The findings of policies, as their lines and messages."""
    for path in ("jobs", "policies"):
        (folder / path).mkdir(exist_ok=True)
    (folder / "jobgen.yaml").write_text("{}\n")
    policy = POLICY.replace("VALIDATION", expression).replace("RESOURCES", resources).replace("GROUPS", groups)
    (folder / "policies/images.yaml").write_text(policy + policies)
    (folder / "jobs/a.yaml").write_text(objects)
    rules = ("images", "policy-matches-nothing")
    return [(one.rule, one.location.line, one.message) for one in lint(folder).findings if one.rule in rules]


def write(kind, spec=""):
    api_version, known = OBJECTS[kind]
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a, namespace: ml}}\nspec: {spec or known}\n"


@pytest.mark.parametrize("kind", OBJECTS)
def test_pods_that_operators_create_are_denied_at_their_value(tmp_path, kind):
    owner = "Job" if kind == "AppWrapper" else kind

    assert lint_objects(tmp_path, write(kind)) == [("images", 4, f"denied (in a pod that the {owner} creates)")]
    assert lint_objects(tmp_path, write(kind).replace("bad/", "good/")) == []


def test_what_a_template_does_not_have_is_reported_at_the_template(tmp_path):
    job = write("Job", f"\n  backoffLimit: 1\n  template:\n    spec:\n      restartPolicy: Never\n      {CONTAINERS}")
    labeled = job.replace("    spec:\n", "    metadata: {labels: {owner: a}}\n    spec:\n")

    assert [line for _, line, _ in lint_objects(tmp_path, job, LABELS)] == [7]
    assert lint_objects(tmp_path, labeled, LABELS) == []


def test_a_fault_that_a_policy_finds_in_the_object_is_not_found_again_in_its_pods(tmp_path):
    expression = "\"object.kind == 'Pod' || object.spec.template.spec.containers.all(c, c.image.startsWith('good/'))\""
    both = expression.replace("object.kind == 'Pod' ||", "object.kind == 'Pod' ? false :")

    assert len(lint_objects(tmp_path, write("Job"), expression, "[pods, jobs]", "['', batch]")) == 1
    assert len(lint_objects(tmp_path, write("Job"), both, "[pods, jobs]", "['', batch]")) == 1


def test_pods_have_defaults_and_the_restart_policy_of_their_role(tmp_path):
    spec = (
        OBJECTS["PyTorchJob"][1].replace("Worker: {", "Worker: {restartPolicy: ExitCode, ").replace("Never", "Always")
    )
    checks = "object.spec.restartPolicy == 'Never' && object.spec.terminationGracePeriodSeconds == 30"
    owned = "object.metadata.ownerReferences.exists(o, o.controller && o.kind == 'PyTorchJob')"

    assert lint_objects(tmp_path, write("PyTorchJob", spec), f'"{checks} && {owned}"') == []


def test_mutating_policies_change_the_pods_first(tmp_path):
    mutation = """---
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicy
metadata: {name: owners}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'owner': 'a'}}}"}
---
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicyBinding
metadata: {name: owners}
spec: {policyName: owners}
"""
    assert lint_objects(tmp_path, write("Job"), LABELS, policies=mutation) == []


def test_nobody_creates_pods_of_a_pod_template(tmp_path):
    template = f"apiVersion: v1\nkind: PodTemplate\nmetadata: {{name: a, namespace: ml}}\n{POD}\n"

    assert lint_objects(tmp_path, template) == []


def test_a_policy_about_pods_matches_something(tmp_path):
    assert lint_objects(tmp_path, write("Job").replace("bad/", "good/")) == []
    assert [rule for rule, *_ in lint_objects(tmp_path, write("Job"), groups="[example.com]")] == [
        "policy-matches-nothing"
    ]


@pytest.mark.parametrize(
    ("resources", "groups", "advice"),
    [
        ("[pod]", "['']", "no kind of its groups has the resource `pod`; did you mean `pods`?"),
        ("[podz]", "['']", "no kind of its groups has the resource `podz`; did you mean `pods`?"),
        ("[deployments]", "['']", "has the resource `deployments`; did you mean `deployments` of `apps`?"),
        ("[deploy, sts]", "[apps]", "has the resource `deploy`; did you mean `deployments`?"),
        ("[pod, services]", "['']", ""),
        ("[pods/ephemeralcontainers]", "['']", ""),
        ("['*']", "['']", ""),
        ("[deployments]", "['', apps]", ""),
    ],
)
def test_a_policy_about_a_resource_that_its_group_lacks_matches_nothing(tmp_path, resources, groups, advice):
    found = lint_objects(tmp_path, write("Job").replace("bad/", "good/"), resources=resources, groups=groups)

    said = [message for rule, _, message in found if rule == "policy-matches-nothing"]
    assert [message.endswith(advice) for message in said] == [True] * bool(advice)
