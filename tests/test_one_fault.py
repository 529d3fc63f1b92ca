"""One fault gives one finding: nothing is reported that only follows from it."""

from pathlib import Path

import pytest

import jobgen

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata:
  name: NAME
  labels: {team: research}
spec:
  framework: pytorch
  replicas: 3
  image: registry.example.com/research/a:1.0.0
  command: [torchrun, train.py]
  env:
    POD:
      fieldRef:
        fieldPath: metadata.name
    TOKEN: {secretKeyRef: {name: hub, key: token}}
  resources: {cpu: 4, memory: 16Gi, gpu: 1}
  shm: 4Gi
  volumes:
    cache: {emptyDir: {sizeLimit: 10Gi}, mountPath: /cache}
  initContainers:
    fetch:
      image: registry.example.com/fetch:1.2
      resources: {cpu: 1, memory: 1Gi}
      mounts: {cache: /cache}
  podTemplate:
    spec:
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions:
                  - key: zone
                    operator: In
                    values: [a, b]
  manifest:
    spec: {runPolicy: {schedulingPolicy: {minAvailable: 3}}}
  roles:
    master: {}
    worker: {replicas: 2}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: prod}
spec:
  namespace: ml
  cluster: {platform: kubeflow, gpuResource: nvidia.com/gpu}
"""
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: team-label}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pytorchjobs]}
  validations:
    - expression: "has(object.metadata.labels) && 'team' in object.metadata.labels"
      message: a job needs the label `team`
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: team-label}
spec: {policyName: team-label, validationActions: [Deny]}
"""
PATH = "fieldPath: metadata.name"
VOLUMES = "volumes:\n    cache: {emptyDir: {sizeLimit: 10Gi}, mountPath: /cache}"
FAULTS = [
    ("framework: pytorch", "farmework: pytorch"),
    *(("labels: {team: research}", f"labels{text}") for text in (": [a]", ":", ": text", " {team: a}", ":{team: a}")),
    ("labels: {team", "zqxw: {team"),
    *(("image: registry.example.com/research/a:1.0.0", f"image:{text}") for text in (" [1]", " {a: b}", "", " 7")),
    *(("worker: {replicas: 2}", f"worker: {{{text}}}") for text in ("replicas: [1, 2]", "replicas: -1", "zqxw: 2")),
    *(("worker: {replicas: 2}", text) for text in ("worker:", "worker: 7", "zqxw: {replicas: 2}", "Wroker: {}")),
    ("    master: {}", "    master:"),
    ("replicas: 3", "replicas: [1]"),
    *((VOLUMES, f"volumes:{text}") for text in (" [a]", "", " text", " {cache: 7}", " {cache: {zqxw: {}}}")),
    ("volumes:", "zqxw:"),
    ("    cache: {emptyDir: {sizeLimit: 10Gi}, mountPath: /cache}", "    cache:"),
    *((name, name[0] + name[2] + name[1] + name[3:]) for name in ("fieldRef:", "fieldPath:", "operator:", "values:")),
    ("nodeSelectorTerms:", "ndoeSelectorTerms:"),
    ("memory: 16Gi", "mmeory: 16Gi"),
    *(("resources: {cpu: 4, memory: 16Gi, gpu: 1}", f"resources:{text}") for text in (" [a]", " text", "")),
    ("resources: {cpu: 4", "zqxw: {cpu: 4"),
    ("fieldPath: metadata.name", "fieldPath:"),
    ("fieldRef:\n        fieldPath: metadata.name", "fieldRef:"),
    *((f"{name}:", "zqxw:") for name in ("kind", "metadata", "spec")),
    ("spec:", "  spec:"),
    *(("minAvailable: 3", f"minAvailable: {text}") for text in ("[1]",)),
]


def lint(root: Path, jobs: dict[str, str], overlay: str = OVERLAY) -> dict[str, set[tuple[int, str]]]:
    """Return the lines and rules of the findings of each file, by its name."""
    files = {"jobgen.yaml": "environments: [prod]\n", "overlays/prod/overlay.yaml": overlay}
    files |= {f"jobs/{name}.yaml": text.replace("NAME", name) for name, text in jobs.items()}
    for path, text in {**files, "policies/team-label.yaml": POLICY}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    found: dict[str, set[tuple[int, str]]] = {}
    for each in jobgen.lint(root).findings:
        found.setdefault(Path(each.location.file).stem, set()).add((each.location.line, each.rule))
    return found


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    jobs = {f"job-{number}": JOB.replace(*fault, 1) for number, fault in enumerate(FAULTS)}
    return lint(tmp_path_factory.mktemp("faults"), {**jobs, "valid": JOB})


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[f"{new!r} for {old!r}" for old, new in FAULTS])
def test_one_fault_gives_one_finding(found, number):
    old, _ = FAULTS[number]
    line = JOB[: JOB.index(old)].count("\n") + 1

    assert [where for where, _ in found[f"job-{number}"]] == [line]


def test_a_valid_job_has_no_finding(found):
    assert "valid" not in found


def test_a_fault_of_one_document_says_nothing_about_another(tmp_path):
    other = JOB.replace("worker: {replicas: 2}", "worker: {replicas: 1}").replace("NAME", "other")

    found = lint(tmp_path, {"a": JOB.replace("replicas: 2", "replicas: [1]") + "---\n" + other})

    assert {rule for _, rule in found["a"]} >= {"wrong-type", "replica-totals"}


def test_a_suppressed_fault_hides_nothing(tmp_path):
    fault = "worker:  # jobgen: ignore[deletes-nothing] -- a reason"

    found = lint(tmp_path, {"a": JOB.replace("worker: {replicas: 2}", fault)})

    assert "replica-totals" in {rule for _, rule in found["a"]}


@pytest.mark.parametrize(
    ("old", "new", "advice"),
    [
        ("resources: {cpu: 4, memory: 16Gi, gpu: 1}", "resources:", "write one, or remove the line"),
        ("image: registry.example.com/research/a:1.0.0", "image: {foo: bar}", "write `image: registry.example.com/"),
        ("memory: 16Gi", "memory: {foo: bar}", "write `memory: 64Gi`"),
        ("image: registry.example.com/research/a:1.0.0", "image: {name: a}", "write `image: a`"),
    ],
)
def test_advice_is_valid_for_the_field(tmp_path, old, new, advice):
    lint(tmp_path, {"a": JOB.replace(old, new, 1)})

    assert [advice in each.message for each in jobgen.lint(tmp_path).findings] == [True]


def test_the_first_item_of_a_long_example_is_shown(tmp_path):
    lint(tmp_path, {"a": JOB}, OVERLAY + "  locked:\n")

    assert [each.message.partition("write ")[2] for each in jobgen.lint(tmp_path).findings] == [
        "`locked: [nodeSelector]`"
    ]


@pytest.mark.parametrize(
    ("old", "new", "advice"),
    [
        ("      fieldRef:\n", "      fieldRef\n", "write `fieldRef:`"),
        *(
            (f"{PATH}\n", f"fieldPath{sign}metadata.name\n        apiVersion: v1\n", f"write `{PATH}`")
            for sign in (" ", ":")
        ),
        (" - key: zone", "- key: zone", "indent it by 1 more space"),
        ("  - key: zone", "\t- key: zone", "indent it by 18 spaces"),
        ("                    values: [a", "\tvalues: [a", "indent it by 20 spaces"),
        ("- matchExpressions:", "- matchExpressions", "write `- matchExpressions:`"),
        ("command: [torchrun, train.py]", 'command: curl -H "A: b" c', "write `command: 'curl -H \"A: b\" c'`"),
    ],
)
def test_a_slip_is_one_error_with_advice(tmp_path, old, new, advice):
    job = JOB.replace("    TOKEN: {secretKeyRef: {name: hub, key: token}}\n", "")
    lint(tmp_path, {"a": job.replace(old, new, 1)})

    found = [each for each in jobgen.lint(tmp_path).findings if each.severity == "error"]

    assert [(each.rule, each.location.line, advice in each.message) for each in found] == [
        ("yaml-syntax", job[: job.index(old)].count("\n") + 1, True)
    ]


@pytest.mark.parametrize("match", ["match: [b]", "match: -1", "match: {names: 7}", "match:", "zqxw: {names: [b]}"])
def test_a_patch_is_left_out_if_nobody_knows_which_jobs_it_matches(tmp_path, match):
    patch = f"  patches:\n    - {match}\n      merge: {{roles: {{worker: {{replicas: 5}}}}}}\n"

    found = lint(tmp_path, {"a": JOB}, OVERLAY + patch)

    assert [*found] == ["overlay"]
    assert [line for line, _ in found["overlay"]] == [8]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("namespace: ml", "namespace: -1"),
        ("namespace: ml", "namespace:"),
        ("namespace: ml", "namespace: [a]"),
        ("scratch: {emptyDir: {}", "scratch: 7 #"),
        ("{emptyDir: {}", "{emptyDir: text"),
        ("spec:", "sepc:"),
        ("kind: Overlay", "kind: Overlya"),
        ("kind: Overlay", "kind: 7"),
        ("jobgen.dev/v1", "v1"),
    ],
)
def test_a_fault_of_an_overlay_hides_no_other(tmp_path, old, new):
    text = OVERLAY.replace("{platform", "{gitops: argocd, platform")
    text += "  defaults:\n    runPolicy: {ttlSecondsAfterFinished: 60}\n"
    text += "    volumes:\n      scratch: {emptyDir: {}, mountPath: /scratch}\n"
    line = text[: text.index(old)].count("\n") + 1

    found = lint(tmp_path, {"a": JOB}, text.replace(old, new, 1))

    assert [*found] == ["overlay"]
    assert {where for where, _ in found["overlay"]} == {line, 8}
    assert (8, "ttl-reruns-job") in found["overlay"]
