"""Completion: what is offered at a position, and the text after it is accepted."""

from pathlib import Path
from random import Random

import pytest
from completioncases import MARK, ask, ask_at, load_known

from jobgen.check.rule_docs import all_docs
from jobgen.features.editor.completion.complete import complete
from jobgen.features.editor.completion.items import MAX_ITEMS, Rank
from jobgen.features.editor.completion.names import KnownCache
from jobgen.features.editor.hover import list_deprecated
from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.features.editor.server import diagnostics
from jobgen.features.editor.workspace import Workspace

ROOT = Path(__file__).parent.parent
HEAD = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: bert}\nspec:\n"
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n"
KUEUE = "kueue.x-k8s.io/v1beta2"
JSON = '{"kind": "Pod", "apiVersion": "v1", '
RULE = "      - {"
POLICY = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nspec:\n  matchConstraints:\n"
POLICY += "    resourceRules:\n" + RULE
PROD = "overlays/prod/overlay.yaml"
PATCH = OVERLAY + "  patches:\n    - "
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"

FILES = {
    "jobgen.yaml": "environments: [prod]\n",
    "overlays/base/overlay.yaml": OVERLAY + "  cluster: {platform: kubeflow, queues: {team-a: {gpus: 8}}}\n",
    "overlays/prod/overlay.yaml": OVERLAY + "  extends: [base]\n  namespace: ml-prod\n",
    "jobs/bert.yaml": HEAD.replace("bert}", "bert, labels: {team: nlp}}")
    + "  framework: pytorch\n  image: a.example.com/b:1\n  queue: team-b\n"
    + "  imagePullSecrets: [registry]\n  secrets: {hf-token: {env: true}}\n"
    + "  volumes: {data: {pvc: datasets, mountPath: /data}}\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture(scope="module")
def known(folder):
    workspace = Workspace(folder)
    workspace.take(WorkspaceLinter(folder).lint({}, lambda *_: None))
    return KnownCache().find(workspace)


# A marked text, a label to accept, and what the line and those after it become.
ACCEPTED = [
    ("  █", "framework", "  framework: "),
    ("  fra█", "framework", "  framework: "),
    ("  fra█mew: pytorch", "framework", "  framework: pytorch"),
    ('  "fra█": pytorch', "framework", '  "framework": pytorch'),
    ('  "fra█', "framework", '  "framework": '),
    ("  ro█", "roles", "  roles:\n    "),
    ("  comm█", "command", "  command:\n    - "),
    ("  resources: {█}", "cpu", "  resources: {cpu: }"),
    ("  resources: {cpu: 1, me█}", "memory", "  resources: {cpu: 1, memory: }"),
    ("  resources: {cpu: 1, █", "requests", "  resources: {cpu: 1, requests: {}"),
    ("  framework: █", "pytorch", "  framework: pytorch"),
    ("  framework:█", "pytorch", "  framework: pytorch"),
    ("  framework: ten█", "tensorflow", "  framework: tensorflow"),
    ('  framework: "ten█"', "tensorflow", '  framework: "tensorflow"'),
    ("  framework: 'ten█", "tensorflow", "  framework: 'tensorflow'"),
    ("  suspend: █", "true", "  suspend: true"),
    ("  framework: pytorch\n  roles:\n    █", "worker", "    worker:\n      "),
    ("  roles:\n    worker:\n      █", "replicas", "      replicas: "),
    ("  tolerations:\n    - █", "key", "    - key: "),
    ("  tolerations:\n    -█", "key", "    - key: "),
    ("  env:\n    -█", "valueFrom", "    - valueFrom:\n        "),
    ("  resources: {cpu: 1,█}", "memory", "  resources: {cpu: 1, memory: }"),
    ("  imagePullSecrets: [a,█]", "registry", "  imagePullSecrets: [a, registry]"),
    ("  tolerations:\n    - key: a\n      ef█", "effect", "      effect: "),
    ("  tolerations: [{effect: █}]", "NoSchedule", "  tolerations: [{effect: NoSchedule}]"),
    ("  podTemplate:\n    spec:\n      affi█", "affinity", "      affinity:\n        "),
    ("  podTemplate:\n    spec:\n      containers:\n        - █", "resources", "        - resources:\n            "),
    ("  framework: pytorch\n  manifest:\n    spec:\n      el█", "elasticPolicy", "      elasticPolicy:\n        "),
    ("  queue: █", "team-a", "  queue: team-a"),
    ("  queue: █", "team-b", "  queue: team-b"),
    ("  volumes:\n    data: {pvc: █}", "datasets", "    data: {pvc: datasets}"),
    ("  secrets:\n    █", "hf-token", "    hf-token:\n      "),
    ("  imagePullSecrets: [█]", "registry", "  imagePullSecrets: [registry]"),
    ("  labels: {team: █}", "nlp", "  labels: {team: nlp}"),
    ("  labels:\n    █", "team", "    team: "),
    ("  image: x # █", "jobgen: ignore", "  image: x # jobgen: ignore[rule] -- reason"),
    ("  image: x # jobgen: █", "ignore", "  image: x # jobgen: ignore[rule] -- reason"),
    ("  image: x # jobgen: ignore[mut█", "mutable-image-tag", "  image: x # jobgen: ignore[mutable-image-tag"),
]


@pytest.mark.parametrize(("marked", "label", "expected"), ACCEPTED)
def test_accepted_item(known, marked, label, expected):
    asked = ask(known, HEAD + marked)

    after = asked.accept(label)
    assert after == HEAD + "\n".join([*marked.split("\n")[:-1], expected])


OTHER_FILES = [
    (PROD, OVERLAY + "  extends: [█]\n", "base", "  extends: [base]"),
    (PROD, OVERLAY + "  namespace: █\n", "ml-prod", "  namespace: ml-prod"),
    (PROD, OVERLAY + "  patches:\n    -█\n", "patch",
     '    - match: {names: ["*"]}\n      merge:\n        env: {LOG_LEVEL: info}'),
    (PROD, OVERLAY + "  cluster:\n    kubernetes: █\n", "1.30", '    kubernetes: "1.30"'),
    (PROD, PATCH + "match: {names: [█]}\n", "bert", "    - match: {names: [bert]}"),
    (PROD, PATCH + "match: {kinds: [█]}\n", "MPIJob", "    - match: {kinds: [MPIJob]}"),
    (PROD, OVERLAY + "  cluster: {budgets: {teams: {█}}}\n", "nlp", "  cluster: {budgets: {teams: {nlp: {}}}}"),
    (PROD, PATCH + "merge: {framew█}\n", "framework", "    - merge: {framework: }"),
    (PROD, OVERLAY + "  locked: [█]\n", "image", "  locked: [image]"),
    ("jobgen.yaml", "environments: [█]\n", "prod", "environments: [prod]"),
    ("jobgen.yaml", "rules:\n  mut█\n", "mutable-image-tag", "  mutable-image-tag: "),
    ("jobgen.yaml", "rules: {mutable-image-tag: █}\n", "off", "rules: {mutable-image-tag: off}"),
    ("jobgen.yaml", "mandatory: [█]\n", "mutable-image-tag", "mandatory: [mutable-image-tag]"),
    ("schemas/example.com/a.yaml", "apiVersion: example.com/v1\nplat█\n", "platform", "platform: "),
    ("schemas/example.com/a.yaml", "roles: {worker: {replicas: 1}}\nsingle: █\n", "worker", "single: worker"),
    ("jobs/pod.yaml", POD + "  containers:\n    - █\n", "image", "    - image: "),
    ("jobs/pod.yaml", POD + "  restartPolicy: █\n", "OnFailure", "  restartPolicy: OnFailure"),
    ("jobs/pod.yaml", POD + "  volumes: [{secret: {secretName: █}}]\n", "hf-token",
     "  volumes: [{secret: {secretName: hf-token}}]"),
    ("jobs/pod.yaml", POD + "  imagePullSecrets: [{name: █}]\n", "registry", "  imagePullSecrets: [{name: registry}]"),
    ("jobs/q.yaml", "apiVersion: kueue.x-k8s.io/v1beta2\nkind: █\n", "LocalQueue", "kind: LocalQueue"),
    ("jobs/q.yaml", "kind: LocalQueue\napiVersion: █\n", KUEUE, f"apiVersion: {KUEUE}"),
    ("jobs/q.yaml", "a: 1\n---\nkind: LocalQueue\napiVersion: █\n", KUEUE, f"apiVersion: {KUEUE}"),
    ("jobs/a.json", JSON + "█}\n", "spec", JSON + '"spec": {}}'),
    ("jobs/a.json", JSON + '"sp█"}\n', "spec", JSON + '"spec": {}}'),
    ("jobs/a.json", '{"kind": █}\n', "Pod", '{"kind": "Pod"}'),
    ("jobs/a.json", '{"kind": "TrainingJob", "spec": {"suspend": █}}\n', "true",
     '{"kind": "TrainingJob", "spec": {"suspend": true}}'),
    ("policies/a.yaml", POLICY + "resources: [█]}\n", "pytorchjobs", RULE + "resources: [pytorchjobs]}"),
    ("policies/a.yaml", POLICY + "apiGroups: [█]}\n", "kubeflow.org", RULE + "apiGroups: [kubeflow.org]}"),
    ("jobs/a.yaml", HEAD + "  framework: pytorch\n  pytorch: {runtime: █}\n", "torch-distributed",
     "  pytorch: {runtime: torch-distributed}"),
    ("jobs/a.yaml", "api█\n", "apiVersion", "apiVersion: jobgen.dev/v1"),
    ("jobs/a.yaml", "apiVersion: █\n", "jobgen.dev/v1", "apiVersion: jobgen.dev/v1"),
    ("jobs/a.yaml", "apiVersion: jobg█\n", "jobgen.dev/v1", "apiVersion: jobgen.dev/v1"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "marked", "label", "expected"), OTHER_FILES)
def test_accepted_item_in_other_files(known, file, marked, label, expected):
    asked = ask(known, marked, file)

    line = marked[: marked.index(MARK)].count("\n")
    assert asked.accept(label).split("\n")[line:-1] == expected.split("\n")


NOTHING = [
    HEAD + "  image: █",
    HEAD + "  description: >-\n    the fra█\n",
    HEAD + "  description: |\n    █\n",
    HEAD + "  image: x # a plain comment, █",
    HEAD + "  command: [python, █]",
    HEAD + "  description: one\n    two █\n",
    HEAD + "  image: &anchor█ x",
]


@pytest.mark.parametrize("marked", NOTHING)
def test_nothing_is_offered(known, marked):
    assert ask(known, marked).labels == []


def test_keys_that_are_there_are_not_offered_again(known):
    labels = ask(known, HEAD + "  framework: pytorch\n  █\n  image: x\n").labels

    assert not {"framework", "image"} & set(labels)
    assert "resources" in labels
    assert len(labels) == len(set(labels))


def test_a_kind_brings_its_version(known):
    assert ask(known, "kind: █\n").accept("TrainingJob") == "apiVersion: jobgen.dev/v1\nkind: TrainingJob\n"
    assert (
        ask(known, "a: b\n---\nkind: Loc█\n")
        .accept("LocalQueue")
        .endswith(f"---\napiVersion: {KUEUE}\nkind: LocalQueue\n")
    )
    jobs = [offer.item for offer in ask(known, "kind: Jo█\n").completion.offers if offer.item.label == "Job"]
    assert {item.above for item in jobs} == {"apiVersion: batch/v1", "apiVersion: batch.volcano.sh/v1alpha1"}
    assert ask(known, "apiVersion: batch/v1\nkind: █\n").accept("Job") == "apiVersion: batch/v1\nkind: Job\n"
    assert ask(known, "{kind: █}\n").accept("Pod") == "{kind: Pod}\n"


def test_roles_are_those_of_the_framework(known):
    text = HEAD + "  framework: mpi\n  roles:\n    worker: {}\n    █\n"

    assert ask(known, text).labels == ["launcher"]


BLOCKS = {"pytorch", "tensorflow", "mpi", "paddle", "jax", "xgboost", "ray", "volcano", "jobset", "kubernetes"}


def list_blocks(folder, spec: str) -> set[str]:
    """The blocks of frameworks and platforms that are offered in a spec."""
    text = f"apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {{name: a}}\nspec:\n{spec}  {MARK}"
    return BLOCKS & set(ask(load_known(folder), text).labels)


def test_blocks_are_those_of_the_framework(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobgen.yaml").write_text("cluster: {platform: kubeflow}\n")
    everything = list_blocks(tmp_path, "  image: a:1\n")
    assert {"pytorch", "mpi", "ray"} <= everything
    assert list_blocks(tmp_path, "  framework: pytorch\n") == {"pytorch"}
    assert list_blocks(tmp_path, "  framework: mpi\n") == {"mpi"}
    assert list_blocks(tmp_path, "  framework: pyt\n") == everything, "it is not known yet"
    (tmp_path / "jobgen.yaml").write_text("cluster: {platforms: [kubeflow, ray, volcano]}\n")
    assert list_blocks(tmp_path, "  framework: pytorch\n") == {"pytorch", "ray", "volcano"}
    assert list_blocks(tmp_path, "  framework: pytorch\n  platform: ray\n") == {"pytorch", "ray"}


def test_resource_rules_offer_what_fits_their_group_and_version(known):
    versions = ask(known, POLICY + "apiGroups: [kubeflow.org], apiVersions: [█]}\n", "policies/a.yaml").labels
    assert versions == ["v1", "v2beta1"]
    asked = POLICY + "apiGroups: [kubeflow.org], apiVersions: [v1], resources: [█]}\n"
    resources = ask(known, asked, "policies/a.yaml").labels
    assert {"pytorchjobs", "tfjobs"} <= set(resources)
    assert "pods" not in resources
    assert "pods" in ask(known, POLICY + 'apiGroups: ["*"], resources: [█]}\n', "policies/a.yaml").labels


def test_bindings_name_policies(known):
    binding = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nspec:\n"
    labels = ask(known, binding + "  policyName: █\n", "policies/a.yaml").labels
    assert "replica-totals" in labels
    assert not {"invalid-policy", "policy-without-binding"} & set(labels)


def test_what_the_clusters_support_comes_first(known):
    labels = ask(known, HEAD + "  framework: █\n").labels
    assert labels.index("pytorch") < labels.index("xgboost") < labels.index("colossalai") < labels.index("mxnet")
    kinds = [name for name in ask(known, "apiVersion: kubeflow.org/v1\nkind: █\n").labels if name != "MXJob"]
    assert kinds == sorted(kinds)


def test_required_fields_come_first(known):
    asked = ask(known, "apiVersion: jobgen.dev/v1\nkind: TrainingJob\n█\n")

    assert asked.labels == ["metadata", "spec"]
    pod = ask(known, POD + "  █\n")
    assert pod.labels[0] == "containers"
    assert [offer.item.rank for offer in pod.completion.offers] == sorted(
        offer.item.rank for offer in pod.completion.offers
    )


def test_fields_of_a_job_are_in_a_useful_order(known):
    labels = ask(known, HEAD + "  █\n").labels
    first = ["framework", "replicas", "roles", "queue", "image", "command", "args", "env", "ports", "resources"]
    assert labels[: len(first)] == first
    assert labels.index("platform") > labels.index("shm")
    assert labels.index("manifest") > labels.index("shm")
    assert ask(known, PATCH + "█\n", PROD).labels[:4] == ["patch", "match", "merge", "manifest"]


def test_rules_are_in_order_first_those_that_were_found(known):
    labels = ask(known, HEAD + "  image: x # jobgen: ignore[█", found=["untagged-image"]).labels
    former = [offer.item.label for offer in ask(known, "# jobgen: ignore[█").completion.offers if offer.item.deprecated]
    rest = [label for label in labels[1:] if label not in former]
    assert labels[0] == "untagged-image"
    assert rest == sorted(rest)


def test_server_managed_fields_are_not_offered(known):
    labels = ask(known, "apiVersion: v1\nkind: Pod\nmetadata:\n  █\n").labels

    assert {"name", "labels"} <= set(labels)
    assert not {"uid", "resourceVersion", "creationTimestamp"} & set(labels)
    assert "status" not in ask(known, "apiVersion: v1\nkind: Pod\n█\n").labels


DEPRECATED = [
    (HEAD + "  framework: █", "mxnet", "removed in training-operator 1.9.0"),
    ("apiVersion: kubeflow.org/v1\nkind: █\n", "MXJob", "removed in training-operator 1.9.0"),
    ("kind: HorizontalPodAutoscaler\napiVersion: █\n", "autoscaling/v2beta2",
     "removed in Kubernetes 1.26; use `autoscaling/v2`"),
    ("kind: RayJob\napiVersion: █\n", "ray.io/v1alpha1", "there is a newer version; use `ray.io/v1`"),
    (HEAD + "  image: x # jobgen: ignore[█", "moving-tag", "the former name of `mutable-image-tag`; use that"),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "label", "reason"), DEPRECATED)
def test_deprecated_things_say_what_to_use(known, marked, label, reason):
    item = ask(known, marked).find(label)

    assert item.deprecated == reason
    assert item.rank is Rank.DEPRECATED


def test_current_things_are_not_deprecated(known):
    assert ask(known, "kind: HorizontalPodAutoscaler\napiVersion: █\n").find("autoscaling/v2").deprecated == ""
    assert ask(known, HEAD + "  framework: █").find("pytorch").deprecated == ""


def test_rules_with_findings_come_first_in_a_suppression(known):
    asked = ask(known, HEAD + "  image: x # jobgen: ignore[█", found=["wrong-type"])

    assert asked.labels[0] == "wrong-type"
    assert "moving-tag" in asked.labels


def test_fields_have_documentation(known):
    item = ask(known, HEAD + "  █").find("framework")

    assert item.detail == "string"
    assert item.documentation


def test_a_folder_without_settings_completes_manifests(tmp_path):
    (tmp_path / "pod.yaml").write_text(POD)
    known = load_known(tmp_path)

    assert "containers" in ask(known, POD + "  █\n", "pod.yaml").labels
    assert "Pod" in ask(known, "kind: █\n", "pod.yaml").labels


def test_settings_with_errors_do_not_stop_completion(tmp_path):
    (tmp_path / "jobgen.yaml").write_text("environments: {")
    known = load_known(tmp_path)

    assert "framework" in ask(known, HEAD + "  █").labels


def test_settings_with_errors_keep_what_was_known_before(tmp_path):
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    workspace, cache = Workspace(tmp_path), KnownCache()
    before = cache.find(workspace)

    workspace.open(tmp_path / "jobgen.yaml", "environments: {")
    assert cache.find(workspace) is before
    workspace.take(WorkspaceLinter(tmp_path).lint({}, lambda *_: None))
    after = cache.find(workspace)

    assert (after.kinds, after.clusters) == (before.kinds, before.clusters)
    assert "datasets" in ask(after, HEAD + "  volumes: {a: {pvc: █}}").labels
    workspace.close(tmp_path / "jobgen.yaml")
    workspace.open(tmp_path / PROD, OVERLAY + "  namespace: ml-new\n")
    assert "ml-new" in cache.find(workspace).find_names("Namespace")


def test_many_names_are_filtered_by_what_is_typed(known):
    names = tuple(f"name-{number:05}" for number in range(3 * MAX_ITEMS))
    many = known._replace(names={"LocalQueue": names})

    asked = ask(many, HEAD + "  queue: name-01█")

    assert asked.completion.is_incomplete
    assert asked.labels == [name for name in names if "name-01" in name]


def test_a_schema_of_the_repository_is_used(tmp_path):
    schema = '{"properties": {"spec": {"properties": {"size": {"type": "integer"}, "loop": {"$ref": "#/$defs/a"}}}},'
    schema += ' "$defs": {"a": {"$ref": "#/$defs/a"}}}'
    for path, text in {"jobgen.yaml": "", "schemas/example.com/toy_v1.json": schema}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    known = load_known(tmp_path)
    text = "apiVersion: example.com/v1\nkind: Toy\nspec:\n  █\n"

    assert ask(known, text).labels == ["loop", "size"] or ask(known, text).labels == ["size", "loop"]
    assert ask(known, text.replace("  █", "  loop: {█}")).labels == []


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"properties": 3}', '{"properties": {"spec": {"type": 3, "enum": 5}}}']
)
def test_a_broken_schema_of_the_repository_is_ignored(tmp_path, content):
    for path, text in {"jobgen.yaml": "", "schemas/example.com/toy_v1.json": content}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    known = load_known(tmp_path)

    assert ask(known, "apiVersion: example.com/v1\nkind: Toy\nspec:\n  █\n").labels == []


@pytest.mark.stress
def test_every_position_of_any_text_has_an_answer(known):
    texts = list(FILES.items())
    texts += [(f"jobs/{path.name}", path.read_text()) for path in sorted((ROOT / "jobs/kubeflow").glob("*.yaml"))[:1]]
    texts += [("policies/a.yaml", (ROOT / "jobgen/data/starter/policies/team-label.yaml").read_text())]
    count = 0
    for file, text in texts:
        for at in range(len(text) + 1):
            for shown in (text, text[:at]) if at % 4 == 0 else (text,):
                asked = ask_at(known, shown, at, file)
                count += len(asked.completion.offers)
    assert count > 1000


OLD = """\
apiVersion: {0}
kind: {1}
metadata: {{name: a}}
"""


@pytest.mark.parametrize(
    ("api_version", "kind", "line", "hint"),
    [
        ("kubeflow.org/v1", "MXJob", 2, "removed in training-operator 1.9.0"),
        ("batch/v1beta1", "CronJob", 1, "removed in Kubernetes 1.25; use `batch/v1`"),
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", 1, "removed in Kubernetes 1.26; use `autoscaling/v2`"),
        ("kueue.x-k8s.io/v1beta1", "LocalQueue", 1, "there is a newer version; use `kueue.x-k8s.io/v1beta2`"),
    ],
)
def test_deprecated_kinds_and_versions_have_a_hint(known, api_version, kind, line, hint):
    text = "apiVersion: v1\nkind: Pod\n---\n" + OLD.format(api_version, kind)

    [found] = list_deprecated(text, "jobs/a.yaml", known)

    assert (found.hint, found.location.line) == (hint, line + 3)


@pytest.mark.parametrize(
    "text",
    [
        OLD.format("batch/v1", "Job"),
        OLD.format("example.com/v1", "Toy"),
        HEAD + "  framework: pytorch\n",
        "- 1\n",
        "a: [\n",
    ],
)
def test_other_documents_have_no_hint(known, text):
    assert list(list_deprecated(text, "jobs/a.yaml", known)) == []


def test_deprecated_framework_has_a_hint(known):
    [found] = list_deprecated(HEAD + "  framework: mxnet\n", "jobs/a.yaml", known)

    assert (found.hint, found.location.line) == ("removed in training-operator 1.9.0", 5)


def test_deprecated_rules_exist():
    assert set(all_docs(None)) >= diagnostics.DEPRECATED


PIECES = [
    "\t",
    "\r\n",
    "  ",
    "- ",
    ": ",
    "{",
    "[",
    "]",
    "}",
    '"',
    "'",
    "#",
    "|",
    ">-\n",
    "&a ",
    "*a",
    "!!str ",
    "---\n",
    "\x00",
]
PIECES += [
    "\U0001f642",
    "\u2028",
    "? ",
    "<<: ",
    "$patch",
    "{{ x }}",
    "# jobgen: ignore[",
    "kind: ",
    "spec:\n",
    ",",
    "\ud800",
]


def test_random_texts_have_an_answer_and_edit_one_line(known):
    random = Random(11)
    offered = 0
    for _ in range(400):
        file, text = random.choice(list(FILES.items()))
        for _ in range(random.randrange(1, 5)):
            at = random.randrange(len(text) + 1)
            text = text[:at] + random.choice(PIECES) + text[at + random.randrange(3) :]
        at = random.randrange(len(text) + 1)
        shown = text.replace("\r\n", "\n")
        asked = ask_at(known, shown, min(at, len(shown)), random.choice((file, "policies/a.yaml", "x.json", "a.yaml")))
        for label in asked.labels[:3]:
            asked.accept(label)
            offered += 1
        line, column = random.randrange(-2, 30), random.randrange(-2, 60)
        assert complete(text, line, column, file, known) is not None
    assert offered > 100
