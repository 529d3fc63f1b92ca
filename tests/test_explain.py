"""Origins of values: files, lines and layers; changing a reported line changes the reported value."""

import json
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import examples, sample
from transcripts import find_transcripts, read_transcript

from jobgen.api.explain import list_fields
from jobgen.cli.commands.explain import explain_name
from jobgen.model.data import Location, untraced
from jobgen.model.path import format_dotted
from jobgen.rendering import config
from jobgen.rendering.build import build_object, is_spec, job_attributes
from jobgen.rendering.expand import Expander
from jobgen.rendering.provenance import NoSuchFieldError, build_marked, explain_path
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.spec_provenance import explain_spec_path
from jobgen.rendering.trace import Tracer
from jobgen.repo import layout
from jobgen.spec.merge import LIST_KEYS

HERE = Path(__file__).parent
ROOT = HERE.parent
# A run's name is made of all that its pods see, and a member's of its values: there no line sets one thing alone.
RENDER_TRANSCRIPTS = [path for path in find_transcripts("render") if not path.name.startswith(("runs-", "sweeps"))]

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata:
  name: bert
spec:
  framework: pytorch
  image: train:1
  command: [train, fast]
  env:
    LEVEL: info
    TOKEN: none
  resources: {memory: 4Gi}
  shm: 1Gi
  volumes:
    data: {emptyDir: {}, mountPath: /data}
  roles:
    master: {}
    worker:
      replicas: 2
"""
BASE = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: ml
  defaults:
    restartPolicy: Never
    env: {LEVEL: debug, HOME: /home, TOKEN: {secretKeyRef: {name: keys, key: k}}}
    resources: {cpu: 1, memory: 2Gi}
  patches:
  - merge:
      resources: {memory: 8Gi}
  cluster: {gitops: flux}
"""
PROD = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  extends: [base]
  defaults: {restartPolicy: Always}
  patches:
  - match: {names: ["bert*"]}
    merge:
      command: [train, slowly, "1"]
      roles: {worker: {replicas: 8}}
    manifest:
      spec: {runPolicy: {backoffLimit: 3}}
  - jsonPatch:
    - op: replace
      path: /spec/pytorchReplicaSpecs/Worker/template/spec/containers/[name=pytorch]/image
      value: train:2
    - {op: add, path: /spec/nprocPerNode, value: auto}
  - manifest: {spec: {runPolicy: {backoffLimit: 4}}}
  - {manifest: {spec: {pytorchReplicaSpecs: {Worker: {template: {spec: {nodeSelector: {pool: gpu}, containers: [
      {name: pytorch, env: [{name: ADDED, value: "yes"}]}]}}}}}}}
"""
WORKER = "spec.pytorchReplicaSpecs.Worker"
MAIN = f"{WORKER}.template.spec.containers[0]"


@pytest.fixture
def example(tmp_path):
    write(tmp_path, {"jobs/bert.yaml": JOB, "overlays/base/overlay.yaml": BASE, "overlays/prod/overlay.yaml": PROD})
    return tmp_path


def write(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")


def place_in_kind(line, before):
    """The line of a text in the kind description, and the column after the text."""
    path = "schemas/kubeflow.org/pytorchjob_v1.yaml"
    lines = (ROOT / path).read_text("utf-8").splitlines()
    number = next(number for number, text in enumerate(lines, start=1) if text.startswith(line))
    return f"built-in:{path}:{number}:{lines[number - 1].index(before) + len(before) + 1}"


PLACES = {
    "KIND": place_in_kind("kind: ", "kind: "),
    "RESTART": place_in_kind("  restartPolicy: ", "restartPolicy: "),
    "REPLICAS": place_in_kind("  worker: ", "replicas: "),
}
STORIES = {
    "by the kind": (
        "kind",
        """\
kind = "PyTorchJob"
  KIND  kind PyTorchJob: "PyTorchJob"
""",
    ),
    "by the kind, as a default that others replace": (
        f"{WORKER}.restartPolicy",
        f"""\
{WORKER}.restartPolicy = "Always"
  overlays/prod/overlay.yaml:5:29  defaults of prod: "Never" → "Always"
  overlays/base/overlay.yaml:6:20  defaults of base: "OnFailure" → "Never"
  RESTART  kind PyTorchJob: "OnFailure"
""",
    ),
    "by the job": (
        "metadata.name",
        """\
metadata.name = "bert"
  jobs/bert.yaml:4:9  job: "bert"
""",
    ),
    "by the job, over a default": (
        f"{MAIN}.env[0].value",
        f"""\
{MAIN}.env[0].value = "info"
  jobs/bert.yaml:10:12  job: "debug" → "info"
  overlays/base/overlay.yaml:7:18  defaults of base: "debug"
""",
    ),
    "by the job, over a default that is a map": (
        f"{MAIN}.env[2].value",
        f"""\
{MAIN}.env[2].value = "none"
  jobs/bert.yaml:11:12  job: {{"valueFrom": {{"secretKeyRef": {{"name": "keys", "key": "k"}}}}}} → "none"
  overlays/base/overlay.yaml:7:46  defaults of base: {{"valueFrom": {{"secretKeyRef": {{"name": "keys", "key": "k"}}}}}}
""",
    ),
    "by an overlay's defaults": (
        f"{MAIN}.env.[name=HOME]",
        f"""\
{MAIN}.env[1].name = "HOME"
  overlays/base/overlay.yaml:7:25  defaults of base: "HOME"
{MAIN}.env[1].value = "/home"
  overlays/base/overlay.yaml:7:31  defaults of base: "/home"
""",
    ),
    "by a patch, over job and default, for both sides at once": (
        f"{MAIN}.resources.limits.memory",
        f"""\
{MAIN}.resources.limits.memory = "8Gi"
  overlays/base/overlay.yaml:11:27  patch of base: "4Gi" → "8Gi"
  jobs/bert.yaml:12:23  job: "2Gi" → "4Gi"
  overlays/base/overlay.yaml:8:33  defaults of base: "2Gi"
""",
    ),
    "by a patch that replaces a list": (
        f"{MAIN}.command",
        f"""\
{MAIN}.command[0] = "train"
  overlays/prod/overlay.yaml:9:17  patch of prod: ["train", "fast"] → "train"
  jobs/bert.yaml:8:12  job: ["train", "fast"]
{MAIN}.command[1] = "slowly"
  overlays/prod/overlay.yaml:9:24  patch of prod: ["train", "fast"] → "slowly"
  jobs/bert.yaml:8:12  job: ["train", "fast"]
{MAIN}.command[2] = "1"
  overlays/prod/overlay.yaml:9:32  patch of prod: ["train", "fast"] → "1"
  jobs/bert.yaml:8:12  job: ["train", "fast"]
""",
    ),
    "by a patch for one role": (
        f"{WORKER}.replicas",
        f"""\
{WORKER}.replicas = 8
  overlays/prod/overlay.yaml:10:34  patch of prod: 2 → 8
  jobs/bert.yaml:19:17  job: 1 → 2
  REPLICAS  kind PyTorchJob: 1
""",
    ),
    "by patches of the manifest, the last over the first": (
        "/spec/runPolicy",
        """\
spec.runPolicy.backoffLimit = 4
  overlays/prod/overlay.yaml:18:49  patch of prod: 3 → 4
  overlays/prod/overlay.yaml:12:40  patch of prod: 3
""",
    ),
    "by a JSON patch, over the job": (
        f"{MAIN}.image",
        f"""\
{MAIN}.image = "train:2"
  overlays/prod/overlay.yaml:16:14  patch of prod: "train:1" → "train:2"
  jobs/bert.yaml:7:10  job: "train:1"
""",
    ),
    "by a JSON patch, where nothing was": (
        "spec.nprocPerNode",
        """\
spec.nprocPerNode = "auto"
  overlays/prod/overlay.yaml:17:50  patch of prod: "auto"
""",
    ),
    "by the namespace of the environment": (
        "metadata.namespace",
        """\
metadata.namespace = "ml"
  overlays/base/overlay.yaml:4:14  namespace of base: "ml"
""",
    ),
    "by nobody, as it is the path of the file": (
        "metadata.annotations['jobgen.dev/source']",
        """\
metadata.annotations["jobgen.dev/source"] = "jobs/bert.yaml"
  jobs/bert.yaml:1:1  path of the file: "jobs/bert.yaml"
""",
    ),
    "by the key, where the value is empty": (
        f"{WORKER}.template.spec.volumes[0]",
        f"""\
{WORKER}.template.spec.volumes[0].name = "data"
  jobs/bert.yaml:15:5  job: "data"
{WORKER}.template.spec.volumes[0].emptyDir = {{}}
  jobs/bert.yaml:15:12  job: {{}}
""",
    ),
    "by the key, where the value is all that was asked about": (
        f"{WORKER}.template.spec.volumes.[name=data].emptyDir",
        f"""\
{WORKER}.template.spec.volumes[0].emptyDir = {{}}
  jobs/bert.yaml:15:12  job: {{}}
""",
    ),
    "by one word for several fields": (
        f"{WORKER}.template.spec.volumes[1]",
        f"""\
{WORKER}.template.spec.volumes[1].name = "shm"
  jobs/bert.yaml:13:8  job: "shm"
{WORKER}.template.spec.volumes[1].emptyDir.medium = "Memory"
  jobs/bert.yaml:13:8  job: "Memory"
{WORKER}.template.spec.volumes[1].emptyDir.sizeLimit = "1Gi"
  jobs/bert.yaml:13:8  job: "1Gi"
""",
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_origins_of_values(story, example):
    field, told = STORIES[story]

    result = explain_name(example, "bert", field, ["prod"], "text")

    expected = re.sub("KIND|RESTART|REPLICAS", lambda match: PLACES[match[0]], told)
    assert squeezed(result.out) == squeezed(expected)
    assert result.code == 0


MASTER = "spec.pytorchReplicaSpecs.Master"
SPEC_STORIES = {
    "a role's replicas": (
        "roles.worker.replicas",
        f"""\
roles.worker.replicas = 8
  overlays/prod/overlay.yaml:10:34  patch of prod: 2 → 8
  jobs/bert.yaml:19:17  job: 1 → 2
  REPLICAS  kind PyTorchJob: 1
  rendered as {WORKER}.replicas
""",
    ),
    "a field of all roles, which a JSON patch changes in one": (
        "image",
        f"""\
roles.master.image = "train:1"
  jobs/bert.yaml:7:10  job: "train:1"
  rendered as {MASTER}.template.spec.containers[0].image
roles.worker.image = "train:2"
  overlays/prod/overlay.yaml:16:14  patch of prod: "train:1" → "train:2"
  jobs/bert.yaml:7:10  job: "train:1"
  rendered as {MAIN}.image
""",
    ),
    "a JSON pointer": (
        "/roles/worker/image",
        f"""\
roles.worker.image = "train:2"
  overlays/prod/overlay.yaml:16:14  patch of prod: "train:1" → "train:2"
  jobs/bert.yaml:7:10  job: "train:1"
  rendered as {MAIN}.image
""",
    ),
    "a variable": (
        "env.LEVEL",
        f"""\
env.LEVEL = "info"
  jobs/bert.yaml:10:12  job: "debug" → "info"
  overlays/base/overlay.yaml:7:18  defaults of base: "debug"
  rendered as {MASTER}.template.spec.containers[0].env[0].value
  rendered as {MAIN}.env[0].value
""",
    ),
    "an amount, for requests and limits": (
        "roles.worker.resources.memory",
        f"""\
roles.worker.resources.memory = "8Gi"
  overlays/base/overlay.yaml:11:27  patch of base: "4Gi" → "8Gi"
  jobs/bert.yaml:12:23  job: "2Gi" → "4Gi"
  overlays/base/overlay.yaml:8:33  defaults of base: "2Gi"
  rendered as {MAIN}.resources.limits.memory
  rendered as {MAIN}.resources.requests.memory
""",
    ),
    "an amount that is rendered as another type": (
        "roles.worker.resources.limits.cpu",
        f"""\
roles.worker.resources.limits.cpu = 1
  overlays/base/overlay.yaml:8:22  defaults of base: 1
  rendered as {MAIN}.resources.limits.cpu = "1"
""",
    ),
    "a mount path": (
        "roles.worker.volumes.data.mountPath",
        f"""\
roles.worker.volumes.data.mountPath = "/data"
  jobs/bert.yaml:15:37  job: "/data"
  rendered as {MAIN}.volumeMounts[0].mountPath
""",
    ),
    "one word for several fields": (
        "roles.master.shm",
        f"""\
roles.master.shm = "1Gi"
  jobs/bert.yaml:13:8  job: "1Gi"
  rendered as {MASTER}.template.spec.containers[0].volumeMounts[1].name = "shm"
  rendered as {MASTER}.template.spec.containers[0].volumeMounts[1].mountPath = "/dev/shm"
  rendered as {MASTER}.template.spec.volumes[1].name = "shm"
  rendered as {MASTER}.template.spec.volumes[1].emptyDir.medium = "Memory"
  rendered as {MASTER}.template.spec.volumes[1].emptyDir.sizeLimit
""",
    ),
    "a list that replaces another": (
        "roles.worker.command[2]",
        f"""\
roles.worker.command[2] = "1"
  overlays/prod/overlay.yaml:9:32  patch of prod: ["train", "fast"] → "1"
  jobs/bert.yaml:8:12  job: ["train", "fast"]
  rendered as {MAIN}.command[2]
""",
    ),
    "a field that only a patch of the manifest sets": (
        "runPolicy.backoffLimit",
        """\
runPolicy.backoffLimit = 4
  overlays/prod/overlay.yaml:18:49  patch of prod: 3 → 4
  overlays/prod/overlay.yaml:12:40  patch of prod: 3
  rendered as spec.runPolicy.backoffLimit
""",
    ),
    "a field of a role that only a patch of the manifest sets": (
        "nodeSelector",
        f"""\
roles.worker.nodeSelector.pool = "gpu"
  overlays/prod/overlay.yaml:19:94  patch of prod: "gpu"
  rendered as {WORKER}.template.spec.nodeSelector.pool
""",
    ),
    "a variable that only a patch of the manifest sets": (
        "roles.worker.env.ADDED",
        f"""\
roles.worker.env.ADDED = "yes"
  overlays/prod/overlay.yaml:20:50  patch of prod: "yes"
  rendered as {MAIN}.env[3].value
""",
    ),
    "the framework, which selects the kind": (
        "framework",
        """\
framework = "pytorch"
  jobs/bert.yaml:6:14  job: "pytorch"
  rendered as apiVersion = "kubeflow.org/v1"
  rendered as kind = "PyTorchJob"
""",
    ),
    "a default of the kind": (
        "restartPolicy",
        f"""\
restartPolicy = "Always"
  overlays/prod/overlay.yaml:5:29  defaults of prod: "Never" → "Always"
  overlays/base/overlay.yaml:6:20  defaults of base: "OnFailure" → "Never"
  RESTART  kind PyTorchJob: "OnFailure"
  rendered as {MASTER}.restartPolicy
  rendered as {WORKER}.restartPolicy
""",
    ),
}


@pytest.mark.parametrize("story", SPEC_STORIES)
def test_origins_of_values_by_their_path_in_the_spec(story, example):
    field, expected = SPEC_STORIES[story]

    result = explain_name(example, "bert", field, ["prod"], "text")

    assert (result.code, result.err) == (0, "")
    assert squeezed(result.out) == squeezed(re.sub("RESTART|REPLICAS", lambda match: PLACES[match[0]], expected))


def test_value_that_is_not_rendered(tmp_path):
    write(tmp_path, {"jobs/bert.yaml": JOB.replace("  image", "  replicas: 3\n  image")})

    result = explain_name(tmp_path, "bert", "replicas", [], "text")

    assert squeezed(result.out) == "replicas = 3\n  jobs/bert.yaml:7:13 job: 3\n  not in the rendered object\n"


@pytest.mark.parametrize("platform", ["kubernetes", "jobset"])
@pytest.mark.parametrize("field", ["image", "roles.worker.image"])
def test_roles_with_one_template_have_the_value_of_the_object(platform, field, tmp_path):
    overlay = f"spec: {{cluster: {{platform: {platform}}}, images: [{{name: a, newTag: '2'}}]}}\n"
    job = "metadata: {name: a}\nspec: {framework: pytorch, image: 'a:1', roles: {master: {}, worker: {replicas: 2}}}\n"
    files = {"jobs/a.yaml": f"kind: TrainingJob\n{job}", "overlays/prod/o.yaml": f"kind: Overlay\n{overlay}"}
    write(tmp_path, {path: f"apiVersion: jobgen.dev/v1\n{text}" for path, text in files.items()})

    [found] = json.loads(explain_name(tmp_path, "a", field, [], "json").out)["fields"]

    assert (found["field"], found["value"], len(found["rendered"])) == (field, "a:2", 1)


def test_value_that_says_how_its_key_is_rendered(tmp_path):
    write(tmp_path, {"jobs/bert.yaml": JOB.replace("  image", "  secrets: {s3: {env: true}}\n  image")})

    [field] = json.loads(explain_name(tmp_path, "bert", "roles.worker.secrets", [], "json").out)["fields"]

    assert (field["field"], field["value"]) == ("roles.worker.secrets.s3.env", True)
    assert field["rendered"] == [{"field": f"{MAIN}.envFrom[0].secretRef.name", "value": "s3"}]


def test_secrets_are_redacted_by_their_path_in_the_spec(tmp_path):
    token = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
    write(tmp_path, {"jobs/bert.yaml": JOB.replace("TOKEN: none", f"TOKEN: {token}")})

    result = explain_name(tmp_path, "bert", "env", [], "json")

    assert token not in result.out
    assert {field["field"] for field in json.loads(result.out)["fields"]} == {"env.LEVEL", "env.TOKEN"}


def test_json_of_a_path_in_the_spec_lists_where_it_is_rendered(example):
    [field] = json.loads(explain_name(example, "bert", "roles.worker.env.LEVEL", ["prod"], "json").out)["fields"]
    [same] = json.loads(explain_name(example, "bert", f"{MAIN}.env[0].value", ["prod"], "json").out)["fields"]

    assert field["rendered"] == [{"field": f"{MAIN}.env[0].value", "value": "info"}]
    assert field["chain"] == same["chain"]
    assert "rendered" not in same


MISSING = {
    "imag": "neither the job nor its object has `imag`; did you mean `image`?",
    "roles.workr.image": "no layer sets `roles.workr.image`; did you mean `roles.worker.image`?",
    "env.LEVL": "no layer sets `env.LEVL`; did you mean `env.LEVEL`?",
    "queue": "no layer sets `queue`; `jobgen explain bert` lists what has a value",
    "resource.gpu": "neither the job nor its object has `resource.gpu`; did you mean `resources.gpu`?",
    "resources.gpus": "no layer sets `resources.gpus`; did you mean `resources.gpu`?",
    "spec.image": "the rendered object has no `spec.image`; did you mean `image`?",
    "spec.roles.worker.replicas": "the rendered object has no `spec.roles.worker.replicas`; did you mean "
    "`roles.worker.replicas`?",
    "pytorchReplicaSpecs.Worker": "neither the job nor its object has `pytorchReplicaSpecs.Worker`; did you mean "
    "`spec.pytorchReplicaSpecs.Worker`?",
    "metadat.name": "neither the job nor its object has `metadat.name`; did you mean `metadata.name`?",
}


@pytest.mark.parametrize("field", MISSING)
def test_missing_field_of_a_spec(field, example):
    result = explain_name(example, "bert", field, ["prod"], "text")

    assert (result.code, result.out) == (3, "")
    assert result.err == f"jobgen: {MISSING[field]}\n"


def test_completion_lists_fields_of_the_spec_and_of_the_object(example):
    fields = list_fields(example, "bert", ["prod"])

    assert {"env.LEVEL", "roles.master.image", "roles.worker.replicas", f"{WORKER}.replicas"} <= set(fields)
    for field in fields:
        assert explain_name(example, "bert", field, ["prod"], "text").code == 0, field


@pytest.mark.parametrize("side", ["limits", "requests"])
def test_amount_of_one_side_is_explained_by_its_short_path(side, example):
    """The list has the short path also for an amount that is set for limits or requests alone."""
    resources = f"resources: {{memory: 4Gi, {side}: {{nvidia.com/gpu: 2}}}}"
    write(example, {"jobs/bert.yaml": JOB.replace("resources: {memory: 4Gi}", resources)})
    fields = list_fields(example, "bert", ["prod"])

    assert "roles.worker.resources.gpu" in fields
    result = explain_name(example, "bert", "roles.worker.resources.gpu", ["prod"], "text")
    assert result.code == 0, result.err
    assert result.out.startswith("roles.worker.resources.gpu = 2\n")
    assert f'resources.{side}["nvidia.com/gpu"]\n' in result.out
    missing = explain_name(example, "bert", "roles.worker.resources.nothing", ["prod"], "text")
    assert (missing.code, missing.out) == (3, "")


def written_leaves(node, path=()):
    """Every scalar of a spec as its author wrote it."""
    if isinstance(node, (dict, list)):
        for step, child in node.items() if isinstance(node, dict) else enumerate(node):
            yield from written_leaves(child, (*path, step if isinstance(step, int) else str(step)))
    elif node.value is not None:
        yield path, node


def find_unexplained(root):
    """The leaves of all specs whose value, line or place in the object cannot be found by their path."""
    project = config.load_own(root)
    tracer = Tracer(project)
    for env, job, _ in walks(root, project, tracer.expander):
        marked = build_marked(job, env, tracer) if is_spec(job.document.data) else None
        for path, leaf in written_leaves(marked.written) if marked else ():
            try:
                values = list(explain_spec_path(marked, path))
            except NoSuchFieldError:
                values = []
            found = [
                value
                for value in values
                if any(
                    (each.location, untraced(each.value)) == (leaf.location, leaf.value) for each in value.assignments
                )
            ]
            if not found or not (found[0].rendered or path[0] in ("replicas", "run")):
                yield env, job.file.path, format_dotted(path)


def test_every_leaf_of_a_spec_is_explained_by_its_path():
    assert list(find_unexplained(ROOT)) == []


# Names of variables and sidecars in a list become keys, the name of a container only refers to it, and an overlay
# deletes a mount.
NOT_EXPLAINED = re.compile(r".*(env\[\d\]|containers\[0\]|sidecars\[0\])\.name|initContainers\.fetch\.mounts\.keys\..*")


@pytest.mark.parametrize(
    "case",
    ["env-forms", "fields-of-a-role", "init-containers", "kind-trainjob", "pod-template-and-manifest-fields"],
)
def test_every_leaf_of_a_transcript_is_explained_by_its_path(case, tmp_path):
    read_transcript(HERE / "render" / f"{case}.txt").write_repository(tmp_path)

    assert [found for found in find_unexplained(tmp_path) if not NOT_EXPLAINED.fullmatch(found[-1])] == []


def test_origin_of_what_jobgen_adds_is_jobgen(tmp_path):
    job = JOB.replace("  image", "  platform: kubernetes\n  image").replace("master: {}", "node: {}")
    write(tmp_path, {"jobs/bert.yaml": job})

    result = explain_name(tmp_path, "bert", "spec.template.spec.containers[0].env.[name=RANK].name", [], "text")

    assert result.out.partition(" = ")[2] == '"RANK"\n  -  jobgen: "RANK"\n'


def test_origin_of_an_empty_value_is_the_nearest_key(tmp_path):
    write(tmp_path, {"jobs/bert.yaml": JOB.replace("{memory: 4Gi}", "{limits: {}}")})

    result = explain_name(tmp_path, "bert", f"{MAIN}.resources", [], "text")

    assert squeezed(result.out) == f"{MAIN}.resources.limits = {{}}\n  jobs/bert.yaml:12:3 job: {{}}\n"


@pytest.mark.parametrize("field", ["spec.nope", f"{MAIN}.command.[name=x]", f"{MAIN}.command[9]", "kind.deeper"])
def test_missing_field_has_no_origin(field, example):
    result = explain_name(example, "bert", field, ["prod"], "text")

    assert (result.code, result.out) == (3, "")


def squeezed(text):
    """Split a table into cells; the alignment of its columns does not matter."""
    return re.sub(r"(?<=\S) +", " ", text)


# A value can be changed at its reported origin. For every origin, the scalar there is changed in the file, everything
# is rendered again, and only the values with that origin may change. An origin without an end is not a scalar: then
# the file itself is moved.

# Leaves that no file spells: the path to the pods of a runtime names their job.
PLACELESS = re.compile(r"spec/runtimePatches/0/trainingRuntimeSpec/template/spec/replicatedJobs/0/name")
# `shm: 1Gi` makes a volume and mounts it: the line sets the size; these values are added with it.
COME_ALONG = {"shm", "Memory", "/dev/shm"}
# A sidecar is an init container that restarts always.
ADDED = re.compile(r".*/initContainers/\d+/restartPolicy")
HASHED = re.compile(r".*-[0-9a-f]{8}")
# What a match may ask about: a change there can take a job out of an environment, or out of a patch.
ASKED_ABOUT = re.compile(r"apiVersion|kind|metadata/(?:name|namespace|labels/.*)")
# Fields with a fixed set of values.
OTHER_WORDS = {
    "Always": "Never",
    "Never": "Always",
    "OnFailure": "Never",
    "ExitCode": "Never",
    "IfNotPresent": "Always",
    "None": "All",
    "Running": "All",
    "All": "Running",
    "TCP": "UDP",
    "UDP": "TCP",
}


def told(root):
    """Every leaf of every object in every environment, with its origins."""
    project = config.load_own(root)
    tracer = Tracer(project)
    return {
        (env, job.file.path, job.position, job.item, entry.path): entry.assignments
        for env, job, expander in walks(root, project, tracer.expander)
        for entry in explain_path(tracer.trace(job, env).object or {}, ())
    }


def rendered(root):
    """Every leaf of every object in every environment, as it is."""
    project = config.load_own(root)
    expanders = {}
    leaves = {}
    for env, job, expander in walks(
        root,
        project,
        lambda env: expanders.setdefault(env, Expander(project.environment(env, []), list(project.kinds))),
    ):
        patches = expander.environment.patches_for(job_attributes(job.document, expander))
        made = build_object(job.document, expander, patches, [], [])
        for path, leaf in list_leaves(made or {}):
            leaves[env, job.file.path, job.position, job.item, path] = json.dumps(untraced(leaf))
    return leaves


def list_leaves(node, path=()):
    """Every value in a tree that has no parts, with its path."""
    if not node or not isinstance(node, (dict, list)):
        yield path, node
    elif isinstance(node, dict):
        for name, part in node.items():
            yield from list_leaves(part, (*path, str(name)))
    else:
        for index, part in enumerate(node):
            yield from list_leaves(part, (*path, index))


def walks(root, project, expander_of):
    for job in read_jobs(layout.find_jobs(root), project.kinds, []):
        for env in project.overlays or [""]:
            expander = expander_of(env)
            if expander.environment.matches(job_attributes(job.document, expander)):
                yield env, job, expander


def shown(leaf):
    return "/".join(map(str, leaf[-1]))


def prove(root, *, is_derived=False):
    """Change every origin, one at a time; return those that changed other values.

    Where values are derived from several lines, each origin must still be a cause of some value that it is said to set.
    """
    before, words = rendered(root), told(root)
    texts = {path: path.read_text("utf-8") for path in root.rglob("*.yaml")}
    assert set(words) == set(before), "both walks make the same object"
    setting, losing = {}, {}
    for leaf, [last, *others] in words.items():
        is_added = is_derived and not last.layer
        assert last.location or is_added or PLACELESS.fullmatch(shown(leaf)), f"{shown(leaf)} has no place"
        # Of a list or a map only what is in it can be changed.
        if last.value not in ({}, []):
            whole_file = last.location and not last.location.end_line
            setting.setdefault(Location(last.location.file) if whole_file else last.location, set()).add(leaf)
        losing.update((word.location, set()) for word in others if not isinstance(word.value, (dict, list)))
    broken = []
    for location, leaves in {**losing, **setting}.items():
        if location is None or location.file.startswith("built-in:"):
            continue
        if not location.end_line:
            after = rendered_elsewhere(root, location.file)
            changed = {leaf for leaf in before.keys() | after.keys() if before.get(leaf) != after.get(leaf)}
            broken += [(str(location), sorted(map(shown, changed ^ leaves)))] if changed != leaves else []
            continue
        path = root / location.file
        start, end = span_of(location, texts[path])
        text = texts[path][start:end]
        path.write_text(texts[path][:start] + another(text) + texts[path][end:], "utf-8")
        after = rendered(root)
        path.write_text(texts[path], "utf-8")
        changed = {leaf for leaf in before.keys() | after.keys() if before.get(leaf) != after.get(leaf)}
        expected = {
            leaf
            for leaf in leaves
            if words[leaf][0].value not in COME_ALONG - {text} and not ADDED.fullmatch(shown(leaf))
        }
        if is_derived:
            broken += [(str(location), sorted(map(shown, leaves)))] if leaves and not changed & leaves else []
            continue
        repeated = sum(other.count(text) for other in texts.values()) > 1
        surplus = {
            leaf
            for leaf in changed - expected
            if not is_excused(leaf, expected, words, before, after, repeated=repeated)
        }
        if surplus or expected - changed:
            broken.append((str(location), sorted(map(shown, surplus)), sorted(map(shown, expected - changed))))
    return broken


def rendered_elsewhere(root, file):
    """Every leaf with a file moved, each under the path that it had before."""
    there = f"{file.rpartition('.')[0]}-moved.yaml"
    (root / file).rename(root / there)
    leaves = rendered(root)
    (root / there).rename(root / file)
    return {(env, file if path == there else path, *leaf): value for (env, path, *leaf), value in leaves.items()}


def span_of(location, text):
    """Where the scalar at a place begins and ends."""
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[: location.line - 1])) + location.column - 1
    return start, sum(map(len, lines[: location.end_line - 1])) + location.end_column - 1


def is_excused(leaf, expected, words, before, after, *, repeated):
    """Return True if a leaf may change with others: patches or other layers depend on their value."""
    # An entry of `images` changes a part of a name, so the name below it counts, too. The name of a job's ConfigMap has
    # a hash of its content.
    if leaf in words and (words[leaf][0].layer.startswith("images of ") or HASHED.fullmatch(str(words[leaf][0].value))):
        return True
    asked = any(ASKED_ABOUT.fullmatch(shown(other)) for other in expected)
    lists = [(*other[:-1], other[-1][:-2]) for other in expected if is_name(other[-1], repeated=repeated)]
    if asked and len({leaf[:-1] in {other[:-1] for other in walk} for walk in (before, after)}) == 2:
        return True
    if (asked or lists) and (leaf not in words or any(word.layer.startswith("patch of ") for word in words[leaf])):
        return True
    return any(leaf[:-1] == other[:-1] and leaf[-1][: len(other[-1])] == other[-1] for other in lists)


def is_name(path, *, repeated):
    """Return True if a leaf is what its item goes by in a list that is merged by key, and others go by it too."""
    if len(path) < 3 or path[-3] not in LIST_KEYS:
        return False
    return path[-1] == "protocol" or (repeated and path[-1] in ("name", *LIST_KEYS[path[-3]]))


def another(text):
    """A different scalar of the same type that is valid in the same place."""
    value = yaml.safe_load(text)
    if isinstance(value, bool):
        return json.dumps(not value)
    if isinstance(value, (int, float)):
        return str(value + 100)
    quantity = re.fullmatch(r"([0-9]+)([a-zA-Z]*)", value)
    other = f"{int(quantity[1]) + 100}{quantity[2]}" if quantity else f"{value}x"
    return json.dumps(OTHER_WORDS.get(value, other))


@pytest.mark.stress
def test_origins_of_this_repository_are_causes(tmp_path):
    for name in ("jobs", "overlays"):
        shutil.copytree(ROOT / name, tmp_path / name)
    copy_kinds(tmp_path)

    assert prove(tmp_path) == []


@pytest.mark.parametrize("path", sample(RENDER_TRANSCRIPTS, 4), ids=lambda path: path.stem)
def test_origins_of_render_transcripts_are_causes(path, tmp_path):
    read_transcript(path).write_repository(tmp_path)
    # The other transcripts use the same kinds.
    if path.stem.startswith("kind-"):
        copy_kinds(tmp_path)

    is_derived = DERIVED.fullmatch(path.stem) is not None
    broken = prove(tmp_path, is_derived=is_derived)
    # Some fields have fewer values than the words that are tried.
    known = [each for each in broken if is_derived and CONVERTED.search(each[-1][0])]
    assert [each for each in broken if (path.stem, each[0]) not in TESTED and each not in known] == []


# Kinds for which jobgen adds what no operator does: variables with the number of nodes, texts made of a command.
DERIVED = re.compile(
    r"kind-(?:colossalaijob|deepspeedjob|genericjob|job.*|mpijob-of-tensorstack|rayjob|volcano-job.*)|rayjob-.*"
    r"|one-spec-on-every-platform|unknown-roles-on-every-platform"
)


CONVERTED = re.compile(r"/(?:cleanUpWorkers|cleanUpPolicy|restartPolicy)$")


def copy_kinds(root):
    """Copy the built-in kinds that are in use, so that their lines can be changed, too."""
    files = {word.location.file for words in told(root).values() for word in words if word.location}
    for file in (name.removeprefix("built-in:") for name in files):
        if not (root / file).exists():
            copy = root / file.replace("schemas/", "schemas/0/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, copy)


# A JSON patch that tests a value does nothing if it is another. The overlay patches Secrets and ConfigMaps by name.
TESTED = {
    # The test appends a letter, and then it is not a number of processes.
    ("kind-colossalaijob", "jobs/colossalai.yaml:7:30"),
    ("json-patches", "jobs/job.yaml:8:42"),
    ("secrets-and-configs", "jobs/job.yaml:11:5"),
    ("secrets-and-configs", "jobs/job.yaml:12:30"),
    ("secrets-and-configs", "jobs/job.yaml:24:5"),
}

WORD = st.sampled_from(["aa", "bb", "cc"])
NAME = st.sampled_from(["AA", "BB"])
PATH = WORD.map("/mnt/{}".format)
NUMBER = st.integers(1, 50)
SIZE = NUMBER.map("{}Gi".format)
AMOUNTS = st.fixed_dictionaries({}, optional={"cpu": NUMBER, "memory": SIZE, "gpu": NUMBER})


def some(**fields):
    """Up to four of some fields, so that examples stay small and varied."""
    return st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: fields[name] for name in names})
    )


POD = {
    "image": WORD,
    "command": st.lists(WORD, max_size=2),
    "workingDir": PATH,
    "env": st.dictionaries(NAME, st.one_of(WORD, NUMBER, st.booleans()), max_size=2),
    "ports": st.dictionaries(WORD, NUMBER, max_size=2),
    "resources": AMOUNTS.flatmap(lambda flat: AMOUNTS.map(lambda limits: {**flat, "limits": limits})),
    "volumes": st.dictionaries(WORD, st.fixed_dictionaries({"pvc": WORD, "mountPath": PATH}), max_size=1),
    "shm": SIZE,
    "restartPolicy": st.sampled_from(["Always", "OnFailure", "Never"]),
    "nodeSelector": st.dictionaries(WORD, WORD, max_size=2),
    "tolerations": st.lists(st.fixed_dictionaries({"key": WORD}), max_size=2),
    "serviceAccount": WORD,
    "imagePullSecrets": st.lists(WORD, max_size=2, unique=True),
    "securityContext": st.fixed_dictionaries({"runAsUser": NUMBER, "privileged": st.booleans()}),
    "labels": st.dictionaries(WORD, WORD, max_size=2),
    "podTemplate": st.fixed_dictionaries({"spec": st.fixed_dictionaries({"schedulerName": WORD})}),
}
SPEC = some(
    **POD,
    roles=st.dictionaries(st.sampled_from(["master", "worker"]), some(**POD, replicas=NUMBER), max_size=2),
    runPolicy=st.fixed_dictionaries({"backoffLimit": NUMBER}),
    queue=WORD,
    description=WORD,
    manifest=st.fixed_dictionaries({"spec": st.fixed_dictionaries({"successPolicy": WORD})}),
)
NOTES = st.fixed_dictionaries({"metadata": st.fixed_dictionaries({"annotations": st.dictionaries(WORD, WORD)})})
NOTE = st.fixed_dictionaries({"op": st.just("add"), "path": st.just("/metadata/annotations"), "value": NOTES})
PATCH = st.one_of(
    st.fixed_dictionaries({"merge": SPEC}),
    st.fixed_dictionaries({"manifest": NOTES}),
    st.fixed_dictionaries({"jsonPatch": st.lists(NOTE, min_size=1, max_size=1)}),
)
LAYER = some(namespace=WORD, defaults=SPEC, patches=st.lists(PATCH, max_size=2))


@settings(max_examples=examples(8), phases=[Phase.generate])
@given(st.sampled_from(["pytorch", "xgboost", "paddle"]), SPEC, LAYER, LAYER, st.booleans())
def test_origins_of_generated_repositories_are_causes(framework, spec, base, env, flow):
    job = {"kind": "TrainingJob", "metadata": {"name": "job"}, "spec": {"framework": framework, **spec}}
    files = {
        "jobs/job.yaml": job,
        "overlays/base/overlay.yaml": {"kind": "Overlay", "spec": base},
        "overlays/env/overlay.yaml": {"kind": "Overlay", "spec": {"extends": ["base"], **env}},
    }
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for path, data in files.items():
            write(root, {path: yaml.safe_dump({"apiVersion": "jobgen.dev/v1", **data}, default_flow_style=flow)})
        copy_kinds(root)

        assert prove(root) == []
