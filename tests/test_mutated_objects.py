"""Objects as mutating policies change them: lint, totals and `explain`, with the locations of the policies."""

import json
import re
from base64 import b64decode
from pathlib import Path
from textwrap import dedent

import pytest
from jobgenprocess import run_here

from jobgen.api.explain import explain
from jobgen.api.lint import lint
from jobgen.api.render import render
from jobgen.cli.commands.explain import explain_name
from jobgen.cli.commands.policy import list_policies, write_page
from jobgen.features.editor.symbols import list_policies as find_definitions
from jobgen.features.kueue.queue import queue
from jobgen.features.teams.teams import teams

ROOT = Path(__file__).parent.parent
HEAD = "apiVersion: admissionregistration.k8s.io/v1\n"
JOB = """
    apiVersion: batch/v1
    kind: Job
    metadata:
      name: NAME
    spec:
      ttlSecondsAfterFinished: 300
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: a
              image: x:1
              resources:
                requests: {cpu: 1, memory: 1Gi}
                limits: {memory: 1Gi}
    """
SPEC = """
    apiVersion: jobgen.dev/v1
    kind: TrainingJob
    metadata:
      name: s
    spec:
      framework: pytorch
      image: x:1
      command: [python, train.py]
      roles:
        worker: {replicas: 2}
    """


def policy(name, *expressions, failure="Fail", **more):
    """The text of a mutating policy with its binding; the first expression is on line 13, the next on line 16."""
    lines = [
        f"{HEAD}kind: MutatingAdmissionPolicy\nmetadata: {{name: {name}}}\nspec:\n  reinvocationPolicy: Never",
        f"  failurePolicy: {failure}\n  matchConstraints:\n    resourceRules:",
        "    - {apiGroups: ['*'], apiVersions: ['*'], operations: [CREATE], resources: ['*']}\n  mutations:",
    ]
    for text in expressions:
        kind, field = (
            ("JSONPatch", "jsonPatch") if text.startswith("[") else ("ApplyConfiguration", "applyConfiguration")
        )
        lines.append(f"  - patchType: {kind}\n    {field}:\n      expression: {json.dumps(text)}")
    lines += [f"  {field}: {json.dumps(value)}" for field, value in more.items()]
    binding = f"{HEAD}kind: MutatingAdmissionPolicyBinding\nmetadata: {{name: {name}}}\nspec: {{policyName: {name}}}\n"
    return "\n".join(lines) + f"\n---\n{binding}"


def write(root, **files):
    """A repository with these files."""
    for name, text in {"jobgen.yaml": "{}\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip().replace("NAME", path.stem))
    return root


def found(root, rule=""):
    findings = lint(root).findings
    return [(each.rule, each.location.file, each.location.line) for each in findings if not rule or each.rule == rule]


IMAGE = "/spec/template/spec/containers/0/image"


def test_a_finding_about_a_value_that_a_policy_sets_is_located_in_the_policy(tmp_path):
    patch = f'[JSONPatch{{op: "replace", path: "{IMAGE}", value: "x:latest"}}]'
    root = write(tmp_path, **{"jobs/j.yaml": JOB, "policies/m.yaml": policy("move-tag", patch)})

    [finding] = [each for each in lint(root).findings if each.rule == "mutable-image-tag"]

    assert (finding.location.file, finding.location.line) == ("policies/m.yaml", 13)
    assert finding.pointer == IMAGE
    assert finding.object.name == "j"
    notes = [(note.location.file, note.message) for note in finding.related]
    assert notes == [
        ("policies/m.yaml", "policy `move-tag` sets it when the object is created"),
        ("jobs/j.yaml", "policy move-tag overrides `x:1` of manifest"),
    ]


def test_a_finding_about_a_value_that_somebody_wrote_stays_there(tmp_path):
    sidecar = 'Object.spec.template.spec.containers{name: "log", image: "y:1"}'
    patch = f'[JSONPatch{{op: "add", path: "/spec/template/spec/containers/0", value: {sidecar}}}]'
    job = JOB.replace("x:1", "x:latest")
    root = write(tmp_path, **{"jobs/j.yaml": job, "policies/m.yaml": policy("sidecar", patch)})

    [finding] = [each for each in lint(root).findings if each.rule == "mutable-image-tag"]

    assert (finding.location.file, finding.location.line) == ("jobs/j.yaml", 12)
    assert finding.pointer == "/spec/template/spec/containers/1/image"


def test_a_policy_may_repair_what_is_wrong_and_the_rendered_object_stays(tmp_path):
    patch = f'[JSONPatch{{op: "replace", path: "{IMAGE}", value: "x:2"}}]'
    root = write(tmp_path, **{"jobs/j.yaml": JOB.replace("x:1", "x:latest")})
    before, rendered = found(root, "mutable-image-tag"), render(root).objects
    write(root, **{"policies/m.yaml": policy("pin", patch)})

    assert (len(before), found(root, "mutable-image-tag")) == (1, [])
    assert render(root).objects == rendered


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('[JSONPatch{op: "add", path: "/spec/bakoffLimit", value: 3}]', "unknown-field"),
        ('[JSONPatch{op: "add", path: "/spec/backoffLimit", value: "3"}]', "wrong-type"),
        ("Object{spec: Object.spec{backoffLimit: -1}}", "out-of-range"),
        ('[JSONPatch{op: "remove", path: "/spec/template/spec/containers/0/image"}]', "missing-pod-field"),
    ],
)
def test_the_schema_checks_the_object_that_policies_made(text, rule, tmp_path):
    root = write(tmp_path, **{"jobs/j.yaml": JOB, "policies/m.yaml": policy("m", text)})

    rules = {(rule, file) for rule, file, _ in found(root)}

    place = "jobs/j.yaml" if "remove" in text else "policies/m.yaml"
    assert (rule, place) in rules, rules


def test_a_mutation_that_fails_is_reported_in_the_policy_for_each_object_and_the_run_goes_on(tmp_path):
    patches = '[JSONPatch{op: "remove", path: "/spec/none"}]', "Object{spec: Object.spec{suspend: true}}"
    jobs = {"jobs/j.yaml": JOB, "jobs/k.yaml": JOB.replace("x:1", "x:latest")}
    root = write(tmp_path, **jobs, **{"policies/m.yaml": policy("m", *patches)})

    findings = lint(root).findings

    failed = [each for each in findings if each.rule == "m"]
    assert [(each.object.name, each.location.file, each.location.line) for each in failed] == [
        ("j", "policies/m.yaml", 13),
        ("k", "policies/m.yaml", 13),
    ]
    assert {each.message for each in failed} == {"policy `m` could not be applied: there is no `/spec/none`"}
    assert [each.location.file for each in findings if each.rule == "mutable-image-tag"] == ["jobs/k.yaml"]
    write(root, **{"policies/m.yaml": policy("m", *patches, failure="Ignore")})
    assert found(root, "m") == []


def test_a_mutation_that_fails_because_of_a_wrong_type_is_not_reported(tmp_path):
    patch = '[JSONPatch{op: "add", path: "/spec/backoffLimit", value: object.spec.backoffLimit + 1}]'
    job = JOB.replace("spec:\n      ttl", "spec:\n      backoffLimit: [1]\n      ttl")
    root = write(tmp_path, **{"jobs/j.yaml": job, "policies/m.yaml": policy("m", patch)})

    assert {rule for rule, _, _ in found(root)} & {"wrong-type", "m"} == {"wrong-type"}


def test_a_finding_about_a_field_that_a_policy_removes_names_the_policy(tmp_path):
    patch = '[JSONPatch{op: "remove", path: "/spec/template/spec/containers/0/image"}]'
    root = write(tmp_path, **{"jobs/j.yaml": JOB, "policies/m.yaml": policy("m", patch)})

    [finding] = [each for each in lint(root).findings if each.rule == "missing-pod-field"]

    assert (finding.location.file, finding.location.line) == ("jobs/j.yaml", 11)
    notes = [(note.location.file, note.location.line, note.message) for note in finding.related]
    assert notes == [("policies/m.yaml", 13, "policy `m` removes `image` when the object is created")]


def test_quotas_count_what_policies_request(tmp_path):
    patch = '[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/resources/requests/cpu", value: "9"}]'
    quota = """
        apiVersion: v1
        kind: ResourceQuota
        metadata: {name: q, namespace: default}
        spec: {hard: {requests.cpu: 4}}
        """
    namespaced = JOB.replace("name: NAME", "name: NAME\n      namespace: default")
    files = {"jobs/j.yaml": namespaced, "jobs/q.yaml": quota}
    root = write(tmp_path, **files)
    before = found(root, "exceeds-quota")
    only_jobs = [{"name": "c", "expression": "object.kind == 'Job'"}]
    write(root, **{"policies/m.yaml": policy("m", patch, matchConditions=only_jobs)})

    assert before == []
    assert found(root, "exceeds-quota") == [("exceeds-quota", "policies/m.yaml", 13)]


TEAM = """
    apiVersion: jobgen.dev/v1
    kind: Team
    metadata: {name: t}
    spec: {folders: [jobs/t], budget: {gpus: 4}}
    """
GPUS = '[JSONPatch{op: "add", path: "/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu", value: "8"}]'


def test_budgets_of_teams_count_what_policies_request(tmp_path):
    root = write(tmp_path, **{"jobs/t/j.yaml": JOB, "teams/t.yaml": TEAM})
    before = found(root, "team-budget-exceeded")
    write(root, **{"policies/m.yaml": policy("m", GPUS)})

    assert before == []
    assert found(root, "team-budget-exceeded") == [("team-budget-exceeded", "jobs/t/j.yaml", 4)]
    [team] = teams(root).teams
    assert [(line.name, line.used) for line in team.environments[0].budget if line.name == "gpus"] == [("gpus", 8)]


def kueue(kind, name, **spec):
    metadata = {"name": name, **({"namespace": "ml"} if kind == "LocalQueue" else {})}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def test_kueue_sees_the_queue_that_a_policy_sets(tmp_path):
    quotas = {"cpu": 10, "memory": "10Gi", "nvidia.com/gpu": 1}
    listed = [{"name": name, "nominalQuota": amount} for name, amount in quotas.items()]
    group = {"coveredResources": [*quotas], "flavors": [{"name": "gpu", "resources": listed}]}
    state = [
        kueue("ResourceFlavor", "gpu"),
        kueue("ClusterQueue", "all", namespaceSelector={}, resourceGroups=[group]),
        kueue("LocalQueue", "a", clusterQueue="all"),
    ]
    overlay = {"namespace": "ml", "cluster": {"state": "cluster", "kueue": {"frameworks": ["batch/job"]}}}
    files = {
        "overlays/prod/overlay.yaml": json.dumps({"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": overlay}),
        "cluster/state.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": state}),
    }
    label = '[JSONPatch{op: "add", path: "/metadata/labels", value: {"kueue.x-k8s.io/queue-name": "a"}}]'
    root = write(tmp_path, **files, **{"jobs/j.yaml": JOB, "policies/m.yaml": policy("m", label, GPUS)})

    [workload] = queue(root).workloads

    assert (workload.queue, workload.decision) == ("a", "never")
    assert ("policies/m.yaml", 16) in {(file, line) for _, file, line in found(root)}


def test_no_fix_is_offered_in_an_expression(tmp_path):
    patch = '[JSONPatch{op: "add", path: "/spec/backoffLimit", value: "3"}]'
    files = {"jobs/j.yaml": JOB, "jobs/k.yaml": JOB.replace("ttlSeconds", "backoffLimit: '3'\n      ttlSeconds")}
    never = [{"name": "c", "expression": "object.metadata.name == 'j'"}]
    root = write(tmp_path, **files, **{"policies/m.yaml": policy("m", patch, matchConditions=never)})

    fixes = {each.location.file: each.fix for each in lint(root).findings if each.rule == "wrong-type"}

    assert fixes.keys() == {"jobs/k.yaml", "policies/m.yaml"}
    assert fixes["policies/m.yaml"] is None
    assert fixes["jobs/k.yaml"] is not None


def test_objects_inside_an_app_wrapper_are_changed_when_they_are_created(tmp_path):
    indented = dedent(JOB).strip().replace("\n", "\n          ").replace("NAME", "inner")
    wrapper = f"""
    apiVersion: workload.codeflare.dev/v1beta2
    kind: AppWrapper
    metadata: {{name: NAME, namespace: ml}}
    spec:
      components:
      - template:
          {indented}
    """
    patch = f'[JSONPatch{{op: "replace", path: "{IMAGE}", value: "x:latest"}}]'
    only_jobs = [{"name": "c", "expression": "object.kind == 'Job'"}]
    root = write(tmp_path, **{"jobs/w.yaml": wrapper, "policies/m.yaml": policy("m", patch, matchConditions=only_jobs)})

    assert found(root, "mutable-image-tag") == [("mutable-image-tag", "policies/m.yaml", 13)]


def test_a_suppression_in_the_policy_counts(tmp_path):
    patch = f'[JSONPatch{{op: "replace", path: "{IMAGE}", value: "x:latest"}}]'
    text = policy("m", patch).replace('latest\\"}]"\n', 'latest\\"}]" # jobgen: ignore[mutable-image-tag] -- known\n')
    root = write(tmp_path, **{"jobs/j.yaml": JOB, "policies/m.yaml": text})

    assert "# jobgen" in text
    assert found(root, "mutable-image-tag") == []


def test_caches_depend_on_the_policies(tmp_path):
    patch = f'[JSONPatch{{op: "replace", path: "{IMAGE}", value: "x:latest"}}]'
    root = write(tmp_path, **{"jobs/j.yaml": JOB, "policies/m.yaml": policy("m", patch)})

    first, second = found(root, "mutable-image-tag"), found(root, "mutable-image-tag")
    write(root, **{"policies/m.yaml": policy("m", patch.replace("latest", "2"))})

    assert first == second == [("mutable-image-tag", "policies/m.yaml", 13)]
    assert found(root, "mutable-image-tag") == []


def test_a_policy_that_matches_nothing_changes_no_finding(tmp_path):
    root = write(tmp_path, **{"jobs/j.yaml": JOB.replace("x:1", "x:latest"), "jobs/s.yaml": SPEC})
    before = lint(root).findings
    never = [{"name": "c", "expression": "object.metadata.name == 'none'"}]
    write(root, **{"policies/m.yaml": policy("m", "Object{spec: Object.spec{suspend: true}}", matchConditions=never)})

    assert lint(root).findings == before


def test_explain_shows_the_mutation_as_the_last_layer(tmp_path):
    operations = (
        f'JSONPatch{{op: "replace", path: "{IMAGE}", value: "x:2"}}',
        'JSONPatch{op: "remove", path: "/spec/ttlSecondsAfterFinished"}',
    )
    patches = "Object{spec: Object.spec{suspend: true}}", f"[{', '.join(operations)}]"
    root = write(tmp_path, **{"jobs/j.yaml": JOB, "policies/m.yaml": policy("m", *patches)})

    assert explain_name(root, "j", "spec.suspend", (), "text").out.startswith(
        "spec.suspend = true\n  policies/m.yaml:13:19  policy m: true\n"
    )
    assert explain_name(root, "j", IMAGE, (), "text").out.startswith(
        'spec.template.spec.containers[0].image = "x:2"\n'
        '  policies/m.yaml:16:19  policy m: "x:1" → "x:2"\n'
        '  jobs/j.yaml:12:18      manifest: "x:1"\n'
    )
    assert explain_name(root, "j", "spec.ttlSecondsAfterFinished", (), "text").out.startswith(
        "spec.ttlSecondsAfterFinished = (removed)\n"
        "  policies/m.yaml:16:19  policy m: 300 → (removed)\n"
        "  jobs/j.yaml:6:28       manifest: 300\n"
    )
    whole = {each.field: each for each in explain(root, "j").fields}
    assert whole["spec.suspend"].sources[0].layer == "policy m"
    assert whole["spec.ttlSecondsAfterFinished"].sources[0].removed
    assert whole["metadata.name"].sources[0].layer == "manifest"


def test_explain_adds_the_mutation_to_json(tmp_path):
    patch = '[JSONPatch{op: "remove", path: "/spec/ttlSecondsAfterFinished"}]'
    root = write(tmp_path, **{"jobs/j.yaml": JOB, "policies/m.yaml": policy("m", patch)})

    document = json.loads(explain_name(root, "j", "spec.ttlSecondsAfterFinished", (), "json").out)

    place = {"file": "policies/m.yaml", "line": 13, "column": 19}
    [field] = document["fields"]
    assert field["value"] is None
    assert field["chain"][0] == {"value": None, "removed": True, "layer": "policy m", **place}
    assert field["chain"][1]["value"] == 300
    change = {"environment": "", "policy": "m", "field": "/spec/ttlSecondsAfterFinished", "action": "removes", **place}
    assert document["changes"] == [change]


def test_explain_shows_what_becomes_of_a_field_of_the_spec(tmp_path):
    path = "/spec/pytorchReplicaSpecs/Worker/template/spec/containers/0/image"
    patch = f'[JSONPatch{{op: "replace", path: "{path}", value: "x:2"}}]'
    root = write(tmp_path, **{"jobs/s.yaml": SPEC, "policies/m.yaml": policy("m", patch)})

    text = explain_name(root, "s", "image", (), "text").out
    document = json.loads(explain_name(root, "s", "image", (), "json").out)

    place = "spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].image"
    assert f'  in the cluster {place} = "x:2"\n    policies/m.yaml:13:19  policy m\n' in text
    assert document["fields"][0]["value"] == "x:1"
    assert document["fields"][0]["mutated"] == [
        {"field": place, "value": "x:2", "layer": "policy m", "file": "policies/m.yaml", "line": 13, "column": 19}
    ]


def test_secrets_that_policies_set_are_not_shown(tmp_path):
    secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
    env = f'[{{"name": "TOKEN", "value": "{secret}"}}]'
    patch = f'[JSONPatch{{op: "add", path: "/spec/template/spec/containers/0/env", value: {env}}}]'
    root = write(tmp_path, **{"jobs/j.yaml": JOB, "policies/m.yaml": policy("m", patch)})

    findings = lint(root).findings

    assert secret not in repr(findings)
    assert any(each.location.file == "policies/m.yaml" for each in findings)
    assert secret not in explain_name(root, "j", "", (), "text").out
    assert secret not in explain_name(root, "j", "", (), "json").out


def test_the_documented_example(tmp_path):
    section = (ROOT / "docs/policies.md").read_text().partition("## Change objects")[2].partition("\n## ")[0]
    [text] = re.findall(r"^```yml\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    [shown] = re.findall(r"^```text\n\$ jobgen explain (.*?)^```$", section, re.MULTILINE | re.DOTALL)
    (job, field), output = shown.partition("\n")[0].split(), shown.partition("\n")[2]
    spec = SPEC.replace("name: s", f"name: {job}")
    root = write(tmp_path, **{"jobs/s.yaml": spec, "policies/default-queue.yaml": text})

    assert explain_name(root, job, field, (), "text").out == output
    # The job requests nothing, which matters only in the queue that the policy sets.
    assert ("missing-requests", "policies/default-queue.yaml", 17) in found(root)


def test_a_mutating_policy_can_be_listed_explained_and_turned_off(tmp_path):
    patch = '[JSONPatch{op: "remove", path: "/spec/none"}]'
    root = write(tmp_path, **{"jobs/j.yaml": JOB, "policies/m.yaml": policy("drop-it", patch)})

    assert "drop-it                    Mutate      policies/m.yaml" in list_policies(root).out
    assert ("drop-it", "policies/m.yaml") in {(name, location.file) for name, location in find_definitions(root)}
    page = write_page(root).out
    assert "| [drop-it](#drop-it) | Mutate | * | policies/m.yaml |" in page
    assert f"- JSONPatch `{patch}`" in page
    assert explain(root, "drop-it").rule.summary == "Changes objects when they are created."
    for severity, expected in (("off", []), ("warning", ["warning"])):
        (root / "jobgen.yaml").write_text(f"rules: {{drop-it: {severity}}}\n")
        assert [each.severity.value for each in lint(root).findings if each.rule == "drop-it"] == expected


def test_policy_tests_expect_what_mutating_policies_cause_at_the_name(tmp_path):
    patch = '[JSONPatch{op: "add", path: "/metadata/labels", value: {"team": "x"}}]'
    check = (
        f"{HEAD}kind: ValidatingAdmissionPolicy\nmetadata: {{name: v}}\nspec:\n  matchConstraints:\n"
        "    resourceRules:\n"
        "    - {apiGroups: ['*'], apiVersions: ['*'], operations: [CREATE], resources: ['*']}\n"
        "  validations: [{expression: \"object.metadata.labels.team == 'y'\"}]\n---\n"
        f"{HEAD}kind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: v}}\n"
        "spec: {policyName: v, validationActions: [Deny]}\n"
    )
    case = JOB.replace("name: NAME", "name: NAME # expect: v")
    files = {"policies/m.yaml": policy("m", patch), "policies/v.yaml": check, "policies/tests/v/case.yaml": case}
    root = write(tmp_path, **files)

    code, printed, _ = run_here(["-C", str(root), "policy", "test"])

    assert (code, b64decode(printed).decode()) == (0, "policies/tests/v/case.yaml: ok\n")
