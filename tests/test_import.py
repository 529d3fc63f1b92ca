"""`jobgen import`: a spec for every manifest, proven to render to it. Transcripts in import/ show what it prints."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import yaml
from command import jobgen, run_transcript
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws
from sharedfiles import shared_folder
from test_seed_manifests import SEEDS, typed
from transcripts import find_transcripts, read_transcript

from jobgen.features.convert.importing.collect import ImportedSpec, import_manifest
from jobgen.features.convert.importing.verify import create_patch, is_equivalent, render_spec, renderer_for
from jobgen.model.quantity import canonicalize_quantity
from jobgen.rendering import config
from jobgen.rendering.render_task import render_jobs
from jobgen.spec.merge import merge
from jobgen.yamlio.read import read

HERE = Path(__file__).parent
ROOT = HERE.parent
TRANSCRIPTS = find_transcripts("import")
PROJECT = config.load_own(ROOT)


def kind_of(manifest):
    return next(kind for kind in PROJECT.kinds if kind.describes(manifest["apiVersion"], manifest["kind"]))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_import_transcript(path, accept, tmp_path):
    output, expected = run_transcript(path, tmp_path, accept=accept)

    assert output == expected


@pytest.mark.parametrize("name", SEEDS)
def test_imported_seed_renders_to_the_seed(name, tmp_path):
    (tmp_path / "seed.yaml").write_text(yaml.safe_dump(SEEDS[name], sort_keys=False))
    done = jobgen(tmp_path, "import", "seed.yaml", "-o", "jobs")
    run = render_jobs(config.load_own(tmp_path), ["tensorstack" if name == "mnist" else ""])

    assert done.returncode == 0, done.stderr
    assert [typed(made.object) for made in run.objects] == [typed(SEEDS[name])]
    assert run.findings == []


@pytest.mark.parametrize("name", ["kind-job", "kind-job-fields", "kind-jobset", "kind-jobset-roles-apart"])
def test_rendered_jobs_and_job_sets_are_imported(name):
    """What jobgen renders for platforms that know no framework, and what it adds for the framework, is a spec again."""
    text = read_transcript(HERE / f"render/{name}.txt").expected["manifests"]
    manifests = [each.data for each in read(text, "").documents if each.data["kind"] != "Service"]
    results = {
        manifest["metadata"]["name"]: import_manifest(manifest, kind_of(manifest), PROJECT.kinds)
        for manifest in manifests
    }

    assert len(results) > 2
    assert [name for name, result in results.items() if not isinstance(result, ImportedSpec)] == []
    assert all("containers" not in result.text for result in results.values())


@pytest.mark.parametrize(
    "name", ["volcano-job", "genericjob", "deepspeedjob", "colossalaijob", "mpijob-of-tensorstack"]
)
def test_rendered_jobs_of_volcano_and_tensorstack_are_imported(name):
    text = read_transcript(HERE / f"render/kind-{name}.txt").expected["manifests"]
    manifests = [each.data for each in read(text, "").documents]
    results = [import_manifest(manifest, kind_of(manifest), PROJECT.kinds) for manifest in manifests]

    assert all(isinstance(result, ImportedSpec) for result in results)


VOLCANO = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: mnist}
spec:
  minAvailable: 1
  schedulerName: volcano
  plugins: {pytorch: ["--master=master", "--worker=worker", "--port=23456"]}
  tasks:
    - replicas: 1
      name: master
      policies: [{event: TaskCompleted, action: CompleteJob}]
      template: {spec: {containers: [{name: master, image: train:1}], restartPolicy: OnFailure}}
    - replicas: 2
      name: worker
      template: {spec: {containers: [{name: worker, image: train:1}], restartPolicy: OnFailure}}
"""
FORMER = """
apiVersion: batch.tensorstack.dev/v1beta1
kind: MPIJob
metadata: {name: mnist}
spec:
  worker: {replicas: 2, cmd: [python, train.py], template: {spec: {containers: [{name: mpi-worker, image: train:1}]}}}
"""


def test_a_plugin_of_volcano_names_the_framework():
    manifest = yaml.safe_load(VOLCANO)
    result = import_manifest(manifest, kind_of(manifest), PROJECT.kinds)

    assert result.framework == "pytorch"
    assert result.document["spec"]["volcano"]["variables"] is False


def test_objects_of_a_former_shape_are_not_imported(tmp_path):
    (tmp_path / "job.yaml").write_text(FORMER)
    done = jobgen(tmp_path, "import", "job.yaml", "-o", "jobs")

    assert (
        "`spec.worker` is of the shape before March 2025; write `replicaSpecs` and `mpiConfig`" in done.stderr.decode()
    )


@pytest.mark.parametrize("folder", ["DeepSpeedJob", "GenericJob", "ColossalAIJob", "MPIJob.batch.tensorstack.dev"])
def test_public_jobs_of_tensorstack_are_imported(folder):
    files = sorted((shared_folder("corpus") / folder).glob("*.yaml"))
    manifests = [each.data for file in files for each in read(file.read_bytes(), "").documents]
    current = [each for each in manifests if "worker" not in each["spec"] or each["kind"] == "DeepSpeedJob"]
    results = [import_manifest(manifest, kind_of(manifest), PROJECT.kinds) for manifest in current]

    assert results
    assert all(isinstance(result, ImportedSpec) for result in results)


def test_import_of_a_folder_factors_out_common_fields(tmp_path):
    (tmp_path / "old").mkdir()
    names = ("pytorch-simple", "paddle-simple-cpu", "paddle-distributed-job")
    manifests = {name: copy.deepcopy(SEEDS[name]) for name in names}
    for name, manifest in manifests.items():
        for role in next(iter(manifest["spec"].values())).values():
            role = role["template"]["spec"]  # noqa: PLW2901
            role["nodeSelector"] = {"pool": "gpu", "own": name}
        (tmp_path / f"old/{name}.yaml").write_text(yaml.safe_dump(manifest))
    done = jobgen(tmp_path, "import", "old", "-o", "jobs", "--factor")
    overlay = yaml.safe_load((tmp_path / "overlays/imported/overlay.yaml").read_text())
    made = {each.identity.name: each.object for each in render_jobs(config.load_own(tmp_path), ["imported"]).objects}

    assert done.returncode == 0, done.stderr
    assert overlay["spec"]["namespace"] == "kubeflow"
    assert overlay["spec"]["defaults"] == {"nodeSelector": {"pool": "gpu"}}
    assert {name: typed(each) for name, each in made.items()} == {name: typed(each) for name, each in manifests.items()}


FIXED = [kind for kind in PROJECT.kinds if kind.frameworks and kind.requirements.container]


@pytest.mark.parametrize("kind", FIXED, ids=lambda kind: kind.name)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_the_main_container_is_the_one_that_the_operator_names(kind, position, tmp_path):
    spec = {"framework": next(iter(kind.frameworks)), "image": "registry.example.com/a:1.0.0", "command": ["./train"]}
    document = {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": "bert"}, "spec": spec}
    rendered, problems = render_spec(document, renderer_for(kind.platform, [kind]))
    assert not problems
    for item in kind.list_items(rendered):
        containers = item.data["template"]["spec"]["containers"]
        others = [{"name": "logs", "image": "registry.example.com/logs:1.0.0"}, {"name": "sync", "image": "a:1"}]
        item.data["template"]["spec"]["containers"] = [*others[:position], *containers, *others[position:]]
    (tmp_path / "in.json").write_text(json.dumps(rendered))
    done = jobgen(tmp_path, "import", "in.json", "-o", "jobs")
    made = yaml.safe_load((tmp_path / "jobs/bert.yaml").read_text())
    again = jobgen(tmp_path, "render")

    assert done.returncode == 0, done.stderr
    assert "containerName" not in str(made)
    assert made["spec"]["image"] == "registry.example.com/a:1.0.0"
    assert is_equivalent(yaml.safe_load(again.stdout), rendered)


def test_import_overwrites_only_with_force(tmp_path):
    (tmp_path / "seed.yaml").write_text(yaml.safe_dump(SEEDS["pytorch-simple"]))
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/pytorch-simple.yaml").write_text("mine\n")
    refused = jobgen(tmp_path, "import", "seed.yaml", "-o", "jobs")
    kept = (tmp_path / "jobs/pytorch-simple.yaml").read_text()
    forced = jobgen(tmp_path, "import", "seed.yaml", "-o", "jobs", "--force")

    assert (refused.returncode, kept) == (1, "mine\n")
    assert b"exists; nothing was written" in refused.stderr
    assert forced.returncode == 0
    assert (tmp_path / "jobs/pytorch-simple.yaml").read_text() != "mine\n"


SPEC = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: %s}\nspec: {framework: pytorch, image: a:1}\n"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: keep, namespace: team}\n"
LISTED = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: keep}}\n"


@pytest.mark.parametrize(
    ("others", "named"),
    [
        (CONFIG_MAP, "ConfigMap `keep`"),
        (SPEC % "gpt" + "---\n" + CONFIG_MAP, "TrainingJob `gpt` (line 6), ConfigMap `keep`"),
        (LISTED, "ConfigMap `keep`"),
        (SPEC % "pytorch-simple", "TrainingJob `pytorch-simple`"),
        (yaml.safe_dump(SEEDS["mnist"]), "TensorFlowJob `mnist`"),
    ],
)
def test_import_with_force_keeps_the_other_objects_of_a_file(tmp_path, others, named):
    (tmp_path / "seed.yaml").write_text(yaml.safe_dump(SEEDS["pytorch-simple"]))
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/pytorch-simple.yaml").write_text(SPEC % "pytorch-simple" + "---\n" + others)
    before = (tmp_path / "jobs/pytorch-simple.yaml").read_text()
    done = jobgen(tmp_path, "import", "seed.yaml", "-o", "jobs", "--force")
    (tmp_path / "in").mkdir()
    (tmp_path / "seed.yaml").rename(tmp_path / "in/seed.yaml")
    by_name = jobgen(tmp_path, "import", "--environment", "dev=in", "-o", "jobs", "--force")

    for told in (done, by_name):
        assert told.returncode == 1, told.stderr
        assert f"jobs/pytorch-simple.yaml: `--force` would also delete {named} (line ".encode() in told.stderr
    assert (tmp_path / "jobs/pytorch-simple.yaml").read_text() == before
    assert not (tmp_path / "overlays").exists()


def test_import_with_force_replaces_the_manifest_of_the_object(tmp_path):
    (tmp_path / "seed.yaml").write_text(yaml.safe_dump(SEEDS["pytorch-simple"]))
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/pytorch-simple.yaml").write_text(yaml.safe_dump(SEEDS["pytorch-simple"]))
    done = jobgen(tmp_path, "import", "seed.yaml", "-o", "jobs", "--force")

    assert done.returncode == 0, done.stderr
    assert b"TrainingJob" in (tmp_path / "jobs/pytorch-simple.yaml").read_bytes()


def test_import_with_force_does_not_replace_what_it_cannot_read(tmp_path):
    (tmp_path / "seed.yaml").write_text(yaml.safe_dump(SEEDS["pytorch-simple"]))
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/pytorch-simple.yaml").write_text("a: [\n---\n" + CONFIG_MAP)
    done = jobgen(tmp_path, "import", "seed.yaml", "-o", "jobs", "--force")

    assert done.returncode == 1
    assert b"cannot be read" in done.stderr
    assert (tmp_path / "jobs/pytorch-simple.yaml").read_text() == "a: [\n---\n" + CONFIG_MAP


def test_import_names_the_selection_of_the_environments_with_the_platform(tmp_path):
    overlay = (
        "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: %s}\n"
        "spec:\n  cluster: {platform: %s}\n  jobs: {names: [a]}\n"
    )
    for name in ("kubeflow", "trainer", "volcano"):
        (tmp_path / f"overlays/{name}").mkdir(parents=True)
        (tmp_path / f"overlays/{name}/overlay.yaml").write_text(overlay % (name, name))
    (tmp_path / "seed.yaml").write_text(yaml.safe_dump(SEEDS["pytorch-simple"]))
    done = jobgen(tmp_path, "import", "seed.yaml", "-o", "jobs")

    assert done.returncode == 1
    assert b"add it to `jobs` in overlays/kubeflow/overlay.yaml:6\n" in done.stderr


def test_import_for_another_platform_writes_an_overlay(tmp_path):
    (tmp_path / "seed.yaml").write_text(yaml.safe_dump(SEEDS["mnist"]))
    told = jobgen(tmp_path, "import", "seed.yaml")
    jobgen(tmp_path, "import", "seed.yaml", "-o", "jobs")
    overlay = yaml.safe_load((tmp_path / "overlays/tensorstack/overlay.yaml").read_text())

    assert b"jobs of platform `tensorstack` need `cluster: {platform: tensorstack}` in an overlay" in told.stderr
    assert overlay["spec"] == {"cluster": {"platform": "tensorstack"}, "jobs": {"names": ["mnist"]}}


def test_nothing_to_import_is_reported(tmp_path):
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
    done = jobgen(tmp_path, "import", "a.yaml")
    missing = jobgen(tmp_path, "import", "b.yaml")

    assert (done.returncode, done.stdout) == (3, b"")
    assert missing.returncode == 2


words = st.sampled_from(["a", "b", "c", "1", "true", "null", "x: y", "# no", "${A}", "", "é", "two\nlines\n", " s "])
names = st.sampled_from(["main", "data", "shm", "logs", "pytorch", "side"])
amounts = st.sampled_from([1, "1", "500m", "0.5", "1Gi", "1024Mi", 2, "2k"])
trees = st.recursive(
    words | st.integers(-9, 9) | st.booleans(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("abcdef"), below, max_size=3),
    max_leaves=6,
)


def maps(values):
    return st.dictionaries(st.sampled_from(["a", "b", "nvidia.com/gpu", "cpu", "memory"]), values, max_size=3)


def unique(items, key):
    return st.lists(items, max_size=3, unique_by=lambda item: item.get(key))


def optional(**fields):
    return st.fixed_dictionaries({}, optional=fields)


envs = st.builds(
    lambda name, said: {"name": name, **said},
    st.sampled_from("ABCD"),
    st.just({})
    | st.builds(lambda value: {"value": value}, words)
    | st.just({"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
)
mounts = st.builds(
    lambda name, path, extra: {"name": name, "mountPath": path, **extra},
    names,
    st.sampled_from(["/a", "/b", "/dev/shm", "/d"]),
    optional(readOnly=st.booleans(), subPath=words, mountPropagation=st.just("None")),
)
volumes = st.builds(
    lambda name, source: {"name": name, **source},
    names,
    st.sampled_from(
        [
            {},
            {"emptyDir": {}},
            {"emptyDir": {"medium": "Memory", "sizeLimit": "1024Mi"}},
            {"persistentVolumeClaim": {"claimName": "p"}},
            {"persistentVolumeClaim": {"claimName": "p", "readOnly": True}},
            {"configMap": {"name": "c"}},
            {"secret": {"secretName": "s"}},
            {"hostPath": {"path": "/x"}},
            {"storageos": {}},
        ]
    ),
)
ports = st.builds(
    lambda port, extra: {"containerPort": port, **extra},
    st.sampled_from([80, 2222, 23456]),
    optional(name=st.sampled_from(["p", "q"]), protocol=st.sampled_from(["TCP", "UDP"])),
)
resources = optional(limits=maps(amounts), requests=maps(amounts))
security = optional(runAsUser=st.integers(0, 9), privileged=st.booleans(), fsGroup=st.integers(0, 9))
containers = st.builds(
    lambda name, fields: {"name": name, **fields},
    names,
    optional(
        image=words,
        command=st.lists(words, max_size=3),
        args=st.lists(words | st.integers(-9, 9), max_size=3),
        workingDir=words,
        env=unique(envs, "name"),
        ports=unique(ports, "containerPort"),
        resources=resources,
        securityContext=security,
        volumeMounts=unique(mounts, "mountPath"),
        tty=st.booleans(),
    ),
)
templates = optional(
    metadata=optional(labels=maps(words), annotations=maps(words), name=words),
    spec=optional(
        containers=unique(containers, "name"),
        initContainers=unique(containers, "name"),
        volumes=unique(volumes, "name"),
        nodeSelector=maps(words),
        tolerations=st.lists(maps(words), max_size=2),
        serviceAccountName=words,
        imagePullSecrets=unique(st.builds(lambda name: {"name": name}, names), "name"),
        securityContext=security,
        priorityClassName=words,
        hostNetwork=st.booleans(),
        other=trees,
    ),
)
replicas = optional(
    replicas=st.integers(-1, 3) | st.just("${N}"),
    restartPolicy=st.sampled_from(["Never", "OnFailure", "Odd"]),
    template=templates,
)
roles = st.sampled_from(["Master", "Worker", "Launcher", "PS", "Chief"])
metadata = st.builds(
    lambda name, fields: {"name": name, **fields},
    st.sampled_from(["job", "Job_1", "a.b"]),
    optional(
        namespace=st.sampled_from(["ml", "M"]), labels=maps(words), annotations=maps(words), finalizers=st.just([])
    ),
)
shapes = st.sampled_from(
    [
        ("kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs"),
        ("kubeflow.org/v1", "TFJob", "tfReplicaSpecs"),
        ("kubeflow.org/v1", "MPIJob", "mpiReplicaSpecs"),
        ("kubeflow.org/v2beta1", "MPIJob", "mpiReplicaSpecs"),
        ("kubeflow.org/v1", "MXJob", "mxReplicaSpecs"),
    ]
)
manifests = st.builds(
    lambda shape, metadata, roles, fields: {
        "apiVersion": shape[0],
        "kind": shape[1],
        "metadata": metadata,
        "spec": {**fields, shape[2]: roles},
    },
    shapes,
    metadata,
    st.dictionaries(roles, replicas, max_size=3),
    optional(
        runPolicy=optional(cleanPodPolicy=words, suspend=st.booleans(), backoffLimit=st.integers(0, 9), odd=trees),
        slotsPerWorker=st.integers(0, 9),
        jobMode=words,
        nprocPerNode=st.integers(1, 4) | words,
        odd=trees,
    ),
)


@laws(10)
@given(manifests)
def test_any_imported_manifest_renders_to_itself(manifest):
    spec = import_manifest(manifest, kind_of(manifest), PROJECT.kinds)

    assert isinstance(spec, ImportedSpec), spec
    [document] = read(spec.text.encode(), "").documents
    made, problems = render_spec(document.data, renderer_for(spec.kind.platform, PROJECT.kinds))
    assert problems == []
    assert meaning(made) == meaning(manifest)


def meaning(tree, name="", holder=""):
    """A tree to compare: quantities by amount, volumes and mounts in any order, other values with their type."""
    if isinstance(tree, dict):
        return {key: meaning(value, key, name) for key, value in tree.items()}
    if isinstance(tree, list):
        said = [meaning(item, "", name) for item in tree]
        return (
            sorted(said, key=lambda item: json.dumps(item, sort_keys=True))
            if name in ("volumes", "volumeMounts")
            else said
        )
    if holder in ("limits", "requests") or name == "sizeLimit":
        return canonicalize_quantity(str(tree))
    return type(tree).__name__, tree


@laws(10)
@given(st.dictionaries(st.sampled_from("abcdef"), trees), st.dictionaries(st.sampled_from("abcdef"), trees))
def test_patch_between_two_trees(base, wanted):
    assert is_equivalent(merge(base, create_patch(base, wanted), []), wanted)


@laws(10)
@given(templates, templates)
def test_patch_between_two_templates(base, wanted):
    assert is_equivalent(merge(base, create_patch(base, wanted), []), wanted)


PLACED = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "bert"},
    "spec": {
        "pytorchReplicaSpecs": {
            role: {
                "replicas": 1,
                "restartPolicy": "OnFailure",
                "template": {
                    "spec": {
                        "containers": [{"name": "pytorch", "image": "a.example/b:1", "command": ["torchrun", "t.py"]}]
                    }
                },
            }
            for role in ("Master", "Worker")
        }
    },
}


def test_a_manifest_of_the_repository_keeps_the_namespace_of_its_overlays(tmp_path):
    """It is rendered where it is, so the job that takes its place must be deployed to the same namespaces."""
    (tmp_path / "jobgen.yaml").write_text("")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/old.yaml").write_text(yaml.safe_dump(PLACED))
    (tmp_path / "overlays/dev").mkdir(parents=True)
    (tmp_path / "overlays/dev/overlay.yaml").write_text(
        "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: dev}\n"
        "spec: {namespace: ml-dev, cluster: {platform: kubeflow}}\n"
    )
    before = [each.object for each in render_jobs(config.load_own(tmp_path), ["dev"]).objects]
    done = jobgen(tmp_path, "import", "jobs/old.yaml", "-o", "jobs")

    assert done.returncode == 0, done.stderr
    assert "`jobs/old.yaml` is in `jobs`, so it is rendered, too; delete it" in done.stderr.decode()
    assert b"error" not in done.stderr
    (tmp_path / "jobs/old.yaml").unlink()
    after = [each.object for each in render_jobs(config.load_own(tmp_path), ["dev"]).objects]
    assert [each["metadata"]["namespace"] for each in (*before, *after)] == ["ml-dev", "ml-dev"]
    assert [typed(each["spec"]) for each in after] == [typed(each["spec"]) for each in before]
