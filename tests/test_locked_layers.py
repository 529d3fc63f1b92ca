"""What a finding about a locked field says, and forms of fields that are easy to miss."""

from __future__ import annotations

import pytest

import jobgen

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: bert{metadata}}}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  resources: {{memory: 1Gi}}
{rest}"""
OWNER = "owner: platform@example.com"
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n"


def make_job(rest="", metadata=""):
    return JOB.format(rest="".join(f"  {line}\n" for line in rest.splitlines()), metadata=metadata)


def lint(root, files):
    """The locked fields that lint finds: location and message."""
    for path, text in {"jobgen.yaml": "{}\n", "jobs/nlp/bert.yaml": make_job(), **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    found = [each for each in jobgen.lint(root).findings if each.rule == "locked-field"]
    assert all(each.related[0].message == "locked here" for each in found)
    return [(f"{each.location.file}:{each.location.line}", each.message) for each in found]


def lock(*fields, rest=""):
    return f"{OVERLAY}  locked: [{', '.join(fields)}]\n{rest}"


def find_lines(root, field, job, **files):
    """The lines of a job that set a locked field."""
    found = lint(root, {"overlays/prod/overlay.yaml": lock(field), "jobs/nlp/bert.yaml": job, **files})
    return [int(place.partition(":")[2]) for place, _ in found if place.startswith("jobs/nlp/bert.yaml")]


def test_the_message_names_the_owner_and_the_reason(tmp_path):
    overlay = lock("{field: nodeSelector.pool, reason: queues have nodes., owner: platform@example.com}")
    job = make_job("podTemplate:\n  spec:\n    nodeSelector: {pool: mine}")
    assert lint(tmp_path, {"overlays/prod/overlay.yaml": overlay, "jobs/nlp/bert.yaml": job}) == [
        (
            "jobs/nlp/bert.yaml:10",
            f"`nodeSelector.pool` is locked by overlay `prod` ({OWNER}): queues have nodes; remove it from the job",
        )
    ]


def test_the_reason_is_no_part_of_the_fingerprint(tmp_path):
    job, prints = make_job("queue: mine"), []
    for entry in ("queue", "{field: queue, reason: a}", "{field: queue, reason: b `c`, owner: d}"):
        files = {"overlays/prod/overlay.yaml": lock(entry), "jobs/nlp/bert.yaml": job}
        assert len(lint(tmp_path, files)) == 1
        [finding] = jobgen.lint(tmp_path).findings[:1]
        prints.append(finding.values)
    assert prints == [("queue", "prod")] * 3


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{field: imgae}", "`imgae` is not a field of a job; did you mean `image`?"),
        ("{reason: why}", "`field`"),
        ("{field: image, because: why}", "`because`"),
    ],
)
def test_a_wrong_entry_is_an_error(tmp_path, entry, message):
    lint(tmp_path, {"overlays/prod/overlay.yaml": lock(entry)})
    assert [each.message for each in jobgen.lint(tmp_path).findings if message in each.message]


LAYERS = {
    "overlays/base/overlay.yaml": lock("image", "nodeSelector", rest="  defaults: {image: 'ours:1'}\n"),
    "overlays/side/overlay.yaml": f"{OVERLAY}  defaults: {{nodeSelector: {{pool: side}}}}\n",
    "overlays/prod/overlay.yaml": f"""\
{OVERLAY}  extends: [base, side]
  patches:
    - merge:
        podTemplate: {{spec: {{containers: [{{name: pytorch, image: 'other:1'}}]}}}}
    - manifest:
        spec: {{pytorchReplicaSpecs: {{Master: {{template: {{spec: {{nodeSelector: {{a: b}}}}}}}}}}}}
    - jsonPatch:
        - {{op: test, path: /spec/pytorchReplicaSpecs/Master/template/spec/nodeSelector/pool, value: nlp}}
        - op: add
          path: /spec/pytorchReplicaSpecs/Master/template/spec/containers/-
          value:
            name: pytorch
            image: other:2
        - {{op: remove, path: /spec/pytorchReplicaSpecs/Master/template/spec/nodeSelector}}
""",
    "teams/nlp.yaml": """\
apiVersion: jobgen.dev/v1
kind: Team
metadata: {name: nlp}
spec:
  folders: [jobs/nlp]
  defaults:
    nodeSelector: {pool: nlp}
""",
    "jobs/nlp/bert.yaml": make_job().replace("  image: registry.example.com/bert:1.4.2\n", ""),
}


def test_layers_above_and_beside_the_lock_are_refused_on_their_lines(tmp_path):
    image, selector = (
        f"`{field}` is locked by overlay `base`; remove it from the " for field in ("image", "nodeSelector")
    )
    assert sorted(lint(tmp_path, LAYERS)) == [
        ("overlays/prod/overlay.yaml:16", f"{image}patch of overlay `prod`"),
        ("overlays/prod/overlay.yaml:17", f"{selector}patch of overlay `prod`"),
        ("overlays/prod/overlay.yaml:7", f"{image}patch of overlay `prod`"),
        ("overlays/prod/overlay.yaml:9", f"{selector}patch of overlay `prod`"),
        ("overlays/side/overlay.yaml:4", f"{selector}defaults of overlay `side`"),
        ("teams/nlp.yaml:7", f"{selector}defaults of team `nlp`"),
    ]


GPU = "{nvidia.com/gpu: 1}"
CONTAINER = "podTemplate:\n  spec:\n    containers:\n"
FORMS = {
    "env as a list": ("env.X", "env:\n  - {name: Z, value: a}\n  - {name: X, value: a}", [10]),
    "env of a container": ("env.X", f"{CONTAINER}      - name: pytorch\n        env: [{{name: X}}]", [12]),
    "env from a secret": ("env.X", "secrets: {hub: {env: {X: token}}}", [8]),
    "envFrom of a container": ("envFrom", f"{CONTAINER}      - name: pytorch\n        envFrom: [{{}}]", [12]),
    "envFrom by a config": ("envFrom", "configs: {nccl: {env: true}}", [8]),
    "gpu by its resource": ("resources.gpu", "roles:\n  worker: {resources: {limits: {nvidia.com/gpu: 1}}}", [9]),
    "limits by an amount": ("resources.limits.cpu", "roles: {worker: {resources: {cpu: 1}}}", [8]),
    "resource of a container": (
        "resources.gpu",
        f"{CONTAINER}      - name: pytorch\n        resources:\n          limits: {GPU}\n          requests: {GPU}",
        [13],
    ),
    "resources deleted": ("resources.memory", "roles: {worker: {resources: null}}", [7, 8]),
    "container replaced": ("env.X", f"{CONTAINER}      - {{name: pytorch, $patch: replace}}", [11]),
    "pod replaced": ("nodeSelector", "podTemplate:\n  spec: {$patch: replace, containers: []}", [9]),
    "keys retained": ("nodeSelector", "podTemplate:\n  spec: {$retainKeys: [containers]}", [9]),
    "another container": ("env.X", f"{CONTAINER}      - {{name: other, env: [{{name: X}}]}}", []),
    "renamed container": ("image", f"containerName: x\n{CONTAINER}      - {{name: x, image: a}}", [6, 12]),
    "sidecar as a list": ("sidecars.logs.image", "sidecars:\n  - {name: logs, image: a}", [9]),
    "another sidecar": ("sidecars.logs.image", "sidecars:\n  - {name: metrics, image: a}", []),
    "sidecar in the template": (
        "sidecars.logs.image",
        "podTemplate:\n  spec:\n    initContainers:\n      - {name: logs, image: a}",
        [11],
    ),
    "alias of a field": ("suspend", "runPolicy: {suspend: true}", [8]),
    "field for all roles": ("roles.worker.nodeSelector", "nodeSelector: {a: b}\nroles: {worker: {}}", [8]),
    "field of another role": ("roles.worker.nodeSelector", "roles: {master: {nodeSelector: {a: b}}}", []),
    "account by its old name": ("serviceAccount", "podTemplate: {spec: {serviceAccount: a}}", [8]),
    "account as a text": ("serviceAccount.name", "serviceAccount: a", [8]),
    "namespace in manifest": ("namespace", "manifest: {metadata: {namespace: a}}", [8]),
    "replicas of a role": (
        "roles.worker.replicas",
        "roles: {worker: {}}\nmanifest: {spec: {pytorchReplicaSpecs: {Worker: {replicas: 9}}}}",
        [9],
    ),
    "role deleted": ("image", "roles: {worker: null}", [6]),
    "path in a template": ("podTemplate.spec.hostIPC", "roles: {worker: {podTemplate: {spec: {hostIPC: true}}}}", [8]),
    "path in a manifest": ("manifest.spec.elasticPolicy", "pytorch: {elasticPolicy: {minReplicas: 1}}", []),
    "same path in a manifest": ("manifest.spec.elasticPolicy", "manifest: {spec: {elasticPolicy: {}}}", [8]),
}


@pytest.mark.parametrize("name", FORMS)
def test_form_of_a_locked_field(tmp_path, name):
    field, rest, lines = FORMS[name]
    assert find_lines(tmp_path, field, make_job(rest)) == lines


@pytest.mark.parametrize(
    ("rest", "line"),
    [
        ("podTemplate: null", 8),
        ("roles: {worker: {podTemplate: {$patch: delete}}}", 8),
        ("podTemplate: {spec: {hostIPC: true}}", 0),
        ("manifest: null", 0),
    ],
)
def test_a_block_that_sets_a_locked_field_cannot_be_deleted(tmp_path, rest, line):
    block = "  defaults: {podTemplate: {spec: {nodeSelector: {pool: gpu}}}}\n"
    files = {"overlays/prod/overlay.yaml": lock("nodeSelector", rest=block), "jobs/nlp/bert.yaml": make_job(rest)}
    assert [place for place, _ in lint(tmp_path, files)] == ([f"jobs/nlp/bert.yaml:{line}"] if line else [])


def test_namespace_and_queue_in_metadata(tmp_path):
    job = make_job(metadata=", namespace: a, labels: {kueue.x-k8s.io/queue-name: b}")
    assert find_lines(tmp_path, "namespace", job) == [3]
    assert find_lines(tmp_path, "queue", job) == [3]


RAW = """\
apiVersion: {api}
kind: {kind}
metadata: {{name: raw, namespace: a}}
spec:
  {path}:
    spec:
      nodeSelector: {{pool: mine}}
      containers:
        - {{name: any, image: 'a:1'}}
        - {{name: other, image: 'a:1'}}
"""
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: raw, namespace: a}
spec:
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            spec:
              template:
                spec:
                  restartPolicy: Never
                  nodeSelector: {pool: mine}
                  containers: [{name: node, image: 'a:1'}]
"""
WRAPPED = """\
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: raw, namespace: a}
spec:
  components:
    - template:
        apiVersion: batch/v1
        kind: Job
        metadata: {name: raw}
        spec: {template: {spec: {nodeSelector: {pool: mine}, containers: [{name: a, image: 'a:1'}]}}}
"""


@pytest.mark.parametrize(
    ("document", "field", "line"),
    [
        (RAW.format(api="batch/v1", kind="Job", path="template"), "nodeSelector.pool", 7),
        (RAW.format(api="batch/v1", kind="Job", path="template"), "image", 9),
        (RAW.format(api="apps/v1", kind="Deployment", path="template"), "image", 9),
        (RAW.format(api="apps/v1", kind="Deployment", path="template"), "namespace", 3),
        (RAW.format(api="apps/v1", kind="Deployment", path="template"), "tolerations", 0),
        (RAW.format(api="example.com/v1", kind="Unknown", path="template"), "image", 9),
        (RAW.format(api="example.com/v1", kind="Unknown", path="anyTemplate"), "nodeSelector.pool", 7),
        (RAW.format(api="example.com/v1", kind="Unknown", path="anyTemplate"), "tolerations", 0),
        (RUNTIME, "nodeSelector", 14),
        (RUNTIME, "image", 15),
        (WRAPPED, "nodeSelector", 10),
        (WRAPPED, "image", 10),
    ],
)
def test_raw_manifest(tmp_path, document, field, line):
    found = lint(tmp_path, {"overlays/prod/overlay.yaml": lock(field), "jobs/nlp/bert.yaml": document})
    message = f"`{field}` is locked by overlay `prod`; remove it from the manifest"
    assert found == ([(f"jobs/nlp/bert.yaml:{line}", message)] if line else [])


def test_a_layer_that_deletes_something_is_recorded_for_defaults_of_some_jobs(tmp_path):
    """Blocks of defaults and their owners were counted once for each overlay."""
    some = "{match: {names: [bert]}, merge: {env: {A: b}}}"
    overlay = f"{OVERLAY}  defaults:\n    - {some}\n    - merge: {{env: {{B: null}}}}\n"
    lint(tmp_path, {"overlays/prod/overlay.yaml": overlay})
    assert [each.rule for each in jobgen.lint(tmp_path).findings if each.location.file.startswith("overlays")] == [
        "deletes-nothing"
    ]


POD = "containers: [{name: a, image: 'registry.example.com/a:1'}], nodeSelector: {pool: mine}"


@pytest.mark.parametrize(
    "spec",
    [
        f"{{template: {{spec: {{{POD}}}}}}}",
        f"{{groups: [{{count: 1}}, {{deep: {{pod: {{spec: {{{POD}}}}}}}}}]}}",
        f"{{{POD}}}",
    ],
)
@pytest.mark.parametrize("api_version", ["example.com/v1", "kubeflow.org/v9"])
def test_pods_of_unknown_kinds_are_locked(tmp_path, api_version, spec):
    head = f"apiVersion: {api_version}\nkind: Run\nmetadata: {{name: bert, namespace: ml}}\n"

    assert find_lines(tmp_path, "nodeSelector", f"{head}spec: {spec}\n") == [4]


@pytest.mark.parametrize("kind", ["v1\nkind: Pod", "example.com/v1\nkind: Run"])
def test_the_queue_of_any_object_is_locked(tmp_path, kind):
    labels = "labels: {kueue.x-k8s.io/queue-name: mine}"
    job = f"apiVersion: {kind}\nmetadata: {{name: bert, namespace: ml, {labels}}}\nspec: {{{POD}}}\n"

    assert find_lines(tmp_path, "queue", job) == [3]


def test_a_long_value_that_is_overridden_is_shortened(tmp_path):
    overlay = f'{OVERLAY}  patches: [{{merge: {{image: "registry.example.com/{"b" * 300}:latest"}}}}]\n'
    job = make_job().replace("bert:1.4.2", "a" * 5000)
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    for path, text in {"overlays/prod/overlay.yaml": overlay, "jobs/bert.yaml": job}.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)

    shown = [related.message for each in jobgen.lint(tmp_path).findings for related in each.related]

    assert any("overrides `registry.example.com/aaa" in text for text in shown)
    assert max(map(len, shown)) < 400
