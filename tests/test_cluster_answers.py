"""What the rules about clusters found is kept between runs, and is what a fresh lint finds."""

import itertools
from random import Random
from types import SimpleNamespace

import pytest
from editorfiles import JOB
from overlayfiles import Overlay
from sampling import sample
from test_editor_lint import lint_saved, write

from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.model.origins import Origins
from jobgen.pipeline.cluster_rules import KnownState, StateSources

QUEUES = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: gpus}}
spec:
  namespaceSelector: {{}}
  resourceGroups:
    - coveredResources: [cpu, memory, nvidia.com/gpu]
      flavors:
        - name: h100
          resources:
            - {{name: cpu, nominalQuota: 100}}
            - {{name: memory, nominalQuota: 400Gi}}
            - {{name: nvidia.com/gpu, nominalQuota: {gpus}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {name}, namespace: ml}}
spec: {{clusterQueue: gpus}}
"""
FLAVOR = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {{name: ml, labels: {{{label}}}}}\n"
QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {{name: gpus, namespace: ml}}
spec: {{hard: {{requests.nvidia.com/gpu: "{gpus}"}}}}
"""
CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}, namespace: ml}}
spec: {{accessModes: [ReadWriteMany], resources: {{requests: {{storage: 1Ti}}}}, storageClassName: nfs}}
"""
QUEUE_LABEL = "manifest: {metadata: {labels: {kueue.x-k8s.io/queue-name: train}}}"
MORE_GPUS = "match: {names: [bert]}, merge: {resources: {gpu: 16}}"
COMPLETE = "complete: [PersistentVolumeClaim, ConfigMap]"
LABELS = ("", "pod-security.kubernetes.io/enforce: restricted")
STATE = "clusters/prod/objects.yaml"


def make_job(random, name):
    text = JOB.format(
        name=name,
        team="nlp",
        framework=random.choice(("pytorch", "pytorch", "pytorch", "pytorhc")),
        tag="1.2",
        gpus=random.choice((1, 2, 8)),
        seed=1,
        replicas=random.choice((1, 4)),
    )
    return text + f"  volumes: {{data: {{pvc: {random.choice(('data', 'date'))}, mountPath: /data}}}}\n"


def make_overlay(random, env):
    cluster = [
        "operators: {training-operator: 1.9.4, kueue: 0.13.4}",
        *random.sample((COMPLETE, "state: clusters/prod"), random.randrange(3)),
    ]
    patches = random.sample((QUEUE_LABEL, MORE_GPUS), random.randrange(3))
    rest = (f"cluster: {{{', '.join(cluster)}}}", "namespace: ml")
    return Overlay("", random.randrange(3), rest, tuple(patches)).write()


MAKERS = {
    "jobs/queues.yaml": lambda random: QUEUES.format(
        gpus=random.choice((4, 64)), name=random.choice(("train", "other"))
    ),
    "jobs/namespace.yaml": lambda random: NAMESPACE.format(label=random.choice(LABELS)),
    "jobs/quota.yaml": lambda random: QUOTA.format(gpus=random.choice((2, 16))),
    "jobs/claim.yaml": lambda random: CLAIM.format(name=random.choice(("data", "datum"))),
    STATE: lambda random: random.choice((FLAVOR, QUEUES.format(gpus=2, name="train"), QUOTA.format(gpus=4), "[\n")),
    "policies/namespace.yaml": lambda random: NAMESPACE.format(label=random.choice(LABELS)),
    **{f"overlays/{env}/overlay.yaml": lambda random, env=env: make_overlay(random, env) for env in ("dev", "prod")},
    **{f"jobs/{name}.yaml": lambda random, name=name: make_job(random, name) for name in ("bert", "gpt", "t5")},
}


@pytest.mark.parametrize("seed", sample(range(3), 3))
def test_findings_are_those_of_lint_after_random_edits(tmp_path, seed):
    random = Random(seed)
    files = {path: make(random) for path, make in MAKERS.items()} | {"jobgen.yaml": "{}\n"}
    linter = WorkspaceLinter(write(tmp_path, files))
    rules = set()
    for _ in range(12):
        path = random.choice(sorted(MAKERS))
        text = MAKERS[path](random)
        files[path] = random.choice((text, text, "# A comment.\n" + files[path]))
        if random.randrange(6):
            write(tmp_path, {path: files[path]})
        else:
            (tmp_path / path).unlink(missing_ok=True)

        found = linter.lint({}, lambda *_: None).findings

        expected = lint_saved(tmp_path, {})
        assert {file: sorted(each.all, key=str) for file, each in found.items()} == expected
        rules |= {finding.rule for several in expected.values() for finding in several}
    assert rules & {"inadmissible-job", "exceeds-quota", "unknown-reference", "violates-pod-security"}


@pytest.mark.parametrize(
    ("path", "cluster", "text"),
    [
        ("jobs/namespace.yaml", "{}", NAMESPACE.format(label=LABELS[1])),
        ("policies/namespace.yaml", "{}", NAMESPACE.format(label=LABELS[1])),
        (STATE, "{state: clusters/prod}", NAMESPACE.format(label=LABELS[1])),
        # The text names no folder.
        (STATE, '{state: "clusters\\x2fprod"}', NAMESPACE.format(label=LABELS[1])),
        ("overlays/dev/overlay.yaml", f"{{{COMPLETE}}}", ""),
    ],
)
def test_findings_move_with_the_lines_that_they_refer_to(tmp_path, path, cluster, text):
    change = "merge: {volumes: {data: {pvc: lost}}}"
    overlay = Overlay("", 0, (f"cluster: {cluster}", "namespace: ml"), (change,)).write()
    files = {"jobgen.yaml": "{}\n", "jobs/bert.yaml": make_job(Random(1), "bert"), "overlays/dev/overlay.yaml": overlay}
    files[path] = text or overlay
    linter = WorkspaceLinter(write(tmp_path, files))
    before = linter.lint({}, lambda *_: None).findings
    write(tmp_path, {path: "# A comment.\n" + files[path]})

    moved = linter.lint({}, lambda *_: None).findings

    found = {file: sorted(each.all, key=str) for file, each in moved.items()}
    assert found == lint_saved(tmp_path, {})
    assert found != {file: sorted(each.all, key=str) for file, each in before.items()}


RAW = """\
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: ml}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - {{name: main, image: "train:1", resources: {{limits: {{nvidia.com/gpu: 8}}}}}}
"""


def test_files_without_a_repository_are_decided_by_their_own_objects(tmp_path):
    quota, job = QUOTA.format(gpus=4), RAW.format(name="bert")
    files = {"one.yaml": f"{quota}---\n{job}", "two.yaml": QUOTA.format(gpus=16), "three.yaml": job}
    linter = WorkspaceLinter(write(tmp_path, files))
    rules = []
    for path, text in (
        ("three.yaml", job),
        ("three.yaml", "# A comment.\n" + job),
        ("one.yaml", job),
        ("two.yaml", files["one.yaml"]),
    ):
        write(tmp_path, {path: text})
        found = linter.lint({}, lambda *_: None).findings
        expected = lint_saved(tmp_path, {})
        assert {file: sorted(each.all, key=str) for file, each in found.items()} == expected
        rules.append(sorted(file for file in expected for each in expected[file] if each.rule == "exceeds-quota"))
    assert rules == [["one.yaml"], ["one.yaml"], [], ["two.yaml"]]


class EndedError(Exception):
    """A newer edit ends a lint."""


def test_a_lint_that_a_newer_one_ended_leaves_correct_results(tmp_path):
    random = Random(2)
    files = {path: make(random) for path, make in MAKERS.items()} | {"jobgen.yaml": "{}\n"}
    linter = WorkspaceLinter(write(tmp_path, files))
    linter.lint({}, lambda *_: None)
    for most in range(3):
        calls = []

        def end_later(*_, calls=calls, most=most):
            calls.append(1)
            if len(calls) > most:
                raise EndedError

        namespace = NAMESPACE.format(label=LABELS[most % 2])
        write(tmp_path, {"jobs/namespace.yaml": namespace, "jobs/bert.yaml": make_job(random, "bart")})
        with pytest.raises(EndedError):
            linter.lint({}, end_later)
        write(tmp_path, {"jobs/bert.yaml": files["jobs/bert.yaml"]})
        found = linter.lint({}, lambda *_: None).findings
        assert {file: sorted(each.all, key=str) for file, each in found.items()} == lint_saved(tmp_path, {})


def make_state(*own, exported=(), names=(), rules=()):
    origins = Origins([*exported, *itertools.chain.from_iterable(own)])
    return KnownState(
        StateSources(exported, own, names, rules, {}), SimpleNamespace(cluster="kueue 0.13", origins=origins)
    )


@pytest.mark.parametrize(
    ("state", "is_same"),
    [
        (make_state([{"replicas": 1}]), True),
        (make_state([{"replicas": True}]), False),
        (make_state([{"replicas": 1}], exported=[{}]), False),
        (make_state([{"replicas": 1}], names=(("Secret", "ml", "key"),)), False),
        (make_state([{"replicas": 1}], rules=("exceeds-quota",)), False),
        (make_state(), False),
    ],
)
def test_states_are_compared_by_content_and_types(state, is_same):
    assert (make_state([{"replicas": 1}]).digest == state.digest) is is_same
