"""PyTorchJobs as TrainJobs with runtimes: Trainer creates the pods that training-operator created."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path

import pytest
import yaml
from sharedfiles import shared_folder
from transcripts import write_files

import jobgen
from jobgen.features.convert.importing.collect import ImportedSpec, import_manifest
from jobgen.features.convert.importing.verify import render_spec, renderer_for
from jobgen.features.convert.migrate.draft import Surroundings
from jobgen.features.convert.migrate.migrate_job import migrate_job
from jobgen.features.convert.migrate.prove_repository import complete_migration
from jobgen.features.convert.migrate.repository import migrate_repository
from jobgen.features.convert.migrate.runtime import RuntimeUser, build_runtime, name_runtimes
from jobgen.rendering import config
from jobgen.yamlio.read import read

PROJECT = config.load_own(Path(__file__).parent.parent)
KINDS = {kind.name: kind for kind in PROJECT.kinds}
SOURCE, TARGET = KINDS["PyTorchJob"], KINDS["TrainJob"]
VERSIONS = ("2.0.0", "2.1.0", "2.2.0", "2.3.0")

TRAIN = {"name": "pytorch", "image": "registry.example.com/train:1", "command": ["python", "train.py"]}
GPU = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}


def make_job(container=None, pod=None, spec=None, workers=2, **worker):
    """A PyTorchJob with a master and workers; `worker` has fields that only the pods of workers have."""
    template = {"spec": {**(pod or {}), "containers": [{**TRAIN, **(container or {})}]}}
    other = copy.deepcopy(template)
    other["spec"].update(worker)
    replicas = {"Master": {"replicas": 1, "template": template}}
    if workers:
        replicas["Worker"] = {"replicas": workers, "template": other}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "bert", "namespace": "ml"},
        "spec": {"pytorchReplicaSpecs": replicas, **(spec or {})},
    }


def elastic(**policy):
    """An elastic PyTorchJob, which has workers only."""
    job = make_job({"command": ["torchrun", "train.py"], **GPU}, spec={"elasticPolicy": policy})
    del job["spec"]["pytorchReplicaSpecs"]["Master"]
    return job


def with_policy(policy, **run):
    """A PyTorchJob with a restart policy in all roles."""
    job = make_job(GPU, spec={"runPolicy": run} if run else None)
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        replica["restartPolicy"] = policy
    return job


SIDE = {"name": "side", "image": "registry.example.com/side:1"}
JOBS = {
    "plain": make_job(),
    "one node": make_job(workers=0),
    "gpu": make_job(GPU),
    "torchrun with gpus": make_job({"command": ["torchrun", "train.py"], **GPU}),
    "torchrun without gpus": make_job({"command": ["torchrun", "train.py"], "resources": {"requests": {"cpu": "4"}}}),
    "torchrun with processes": make_job({"command": ["torchrun", "--nproc_per_node=2", "train.py"]}),
    "shell": make_job({"command": ["bash", "-c", "torchrun --master_addr=$MASTER_ADDR train.py"]}),
    "image's own command": make_job({"command": None, "args": ["--epochs=1"]}),
    "number of processes": make_job(GPU, spec={"nprocPerNode": "4"}),
    "number of processes of torchrun": make_job({"command": ["torchrun", "a.py"], **GPU}, spec={"nprocPerNode": "4"}),
    "processes by cpu": make_job(GPU, spec={"nprocPerNode": "cpu"}),
    "env": make_job({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}], **GPU}),
    "env of the operator": make_job({"env": [{"name": "WORLD_SIZE", "value": "7"}], **GPU}),
    "envFrom": make_job({"envFrom": [{"configMapRef": {"name": "settings"}}], **GPU}),
    "pull policy, folder, probes": make_job(
        {"imagePullPolicy": "Always", "workingDir": "/src", "livenessProbe": {"exec": {"command": ["true"]}}, **GPU}
    ),
    "port": make_job({"ports": [{"name": "pytorchjob-port", "containerPort": 29500}], **GPU}),
    "port without a name": make_job({"ports": [{"containerPort": 8080}], **GPU}),
    "claims": make_job(
        {"resources": {"claims": [{"name": "gpu"}]}},
        {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]},
    ),
    "security": make_job({"securityContext": {"runAsUser": 1}, **GPU}, {"securityContext": {"fsGroup": 2}}),
    "volumes": make_job(
        {"volumeMounts": [{"name": "data", "mountPath": "/data"}], **GPU},
        {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
    ),
    "init container": make_job(GPU, {"initContainers": [SIDE]}),
    "init container that fills a volume": make_job(
        {"volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in ("data", "own")], **GPU},
        {
            "initContainers": [{**SIDE, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "volumes": [{"name": name, "emptyDir": {}} for name in ("data", "own")],
        },
    ),
    "sidecar": make_job(GPU, {"containers": [SIDE]}),
    "scheduling": make_job(
        GPU,
        {
            "nodeSelector": {"pool": "gpu"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "priorityClassName": "high",
            "schedulerName": "volcano",
            "serviceAccountName": "trainer",
            "imagePullSecrets": [{"name": "pull"}],
            "hostNetwork": True,
            "terminationGracePeriodSeconds": 60,
        },
    ),
    "workers on other nodes": make_job(GPU, nodeSelector={"pool": "gpu"}),
    "workers with init containers": make_job(GPU, initContainers=[SIDE], volumes=[{"name": "x", "emptyDir": {}}]),
    "Never": with_policy("Never"),
    "OnFailure": with_policy("OnFailure", backoffLimit=3),
    "ExitCode": with_policy("ExitCode", backoffLimit=3),
    "run policy": with_policy("OnFailure", cleanPodPolicy="Running", activeDeadlineSeconds=600, suspend=False),
    "elastic": elastic(minReplicas=1, maxReplicas=4, maxRestarts=3, rdzvBackend="c10d"),
    "elastic without a range": elastic(rdzvId="a"),
    "elastic with etcd": elastic(
        rdzvBackend="etcd", rdzvHost="etcd", rdzvPort=2379, rdzvConf=[{"key": "a", "value": "b"}]
    ),
    "coscheduling": with_policy("OnFailure", schedulingPolicy={"minAvailable": 3, "scheduleTimeoutSeconds": 60}),
    "volcano": with_policy("OnFailure", schedulingPolicy={"queue": "research"}),
}
JOBS["sidecar"]["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"].append(SIDE)
JOBS["sidecar"]["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"].append(SIDE)
JOBS["image's own command"] = make_job({"args": ["--epochs=1"]})
for _replica in JOBS["image's own command"]["spec"]["pytorchReplicaSpecs"].values():
    del _replica["template"]["spec"]["containers"][0]["command"]


IMPORTED = {}


def migrate(manifest, version=""):
    """The migration of a manifest, its runtime, and what differs between the pods."""
    # The manifest is kept with its result: the identity of one that is gone may be that of another.
    _, imported = IMPORTED.get(id(manifest)) or (manifest, import_manifest(manifest, SOURCE, PROJECT.kinds))
    IMPORTED[id(manifest)] = manifest, imported
    assert isinstance(imported, ImportedSpec), imported
    old, _ = render_spec(imported.document, renderer_for(SOURCE.platform, PROJECT.kinds))
    built = build_runtime(old, TARGET, version)
    assert not isinstance(built, str), built
    surroundings = Surroundings(target_version=version, runtime=built._replace(name="bert"))
    done = migrate_job(imported.document, SOURCE, TARGET, "pytorch", PROJECT.kinds, surroundings)
    assert done.problems == ()
    return done, built, list(done.differences)


@pytest.mark.parametrize("name", JOBS)
def test_pods_are_equal_and_nothing_is_lost(name):
    for version in VERSIONS[1:] if name == "volcano" else VERSIONS:
        done, _, differences = migrate(JOBS[name], version)

        assert differences == [], version
        assert [note for note in done.notes if note.change == "lost"] == [], version


@pytest.mark.parametrize("name", JOBS)
def test_a_runtime_has_the_volumes_of_its_mounts(name):
    for version in VERSIONS:
        _, built, _ = migrate(JOBS[name], version)
        for job in built.spec["template"]["spec"]["replicatedJobs"]:
            pod = job["template"]["spec"]["template"]["spec"]
            containers = [*pod["containers"], *pod.get("initContainers", ())]
            mounted = {each["name"] for container in containers for each in container.get("volumeMounts", ())}
            assert mounted <= {volume["name"] for volume in pod.get("volumes", ())}, version


@pytest.mark.parametrize(
    ("job", "field", "reason"),
    [
        (elastic(metrics=[{"type": "Resource"}]), "pytorch.elasticPolicy.metrics", "no autoscaler"),
        (with_policy("OnFailure", cleanPodPolicy="All"), "runPolicy.cleanPodPolicy", "until the TrainJob is deleted"),
        (with_policy("OnFailure", ttlSecondsAfterFinished=9), "runPolicy.ttlSecondsAfterFinished", "can run again"),
        (
            with_policy("OnFailure", schedulingPolicy={"minAvailable": 2}),
            "runPolicy.schedulingPolicy.minAvailable",
            "waits for all 3 nodes",
        ),
        (
            with_policy("OnFailure", schedulingPolicy={"queue": "a", "scheduleTimeoutSeconds": 9}),
            "runPolicy.schedulingPolicy.scheduleTimeoutSeconds",
            "no timeout",
        ),
    ],
)
def test_what_trainer_cannot_do_is_lost(job, field, reason):
    done, _, _ = migrate(job)
    lost = [note for note in done.notes if note.change == "lost"]

    assert [".".join(note.field) for note in lost] == [field]
    assert reason in lost[0].reason


def test_always_becomes_on_failure():
    done, built, differences = migrate(with_policy("Always"))

    assert built.spec["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["restartPolicy"]
    assert [(note.change, note.field) for note in done.notes if note.change == "changed"] == [
        ("changed", ("restartPolicy",))
    ]
    assert [each.name for each in differences] == ["restarts"]


@pytest.mark.parametrize(
    ("job", "policy", "jobs"),
    [
        ("gpu", True, ["node"]),
        ("plain", True, ["node"]),
        ("torchrun without gpus", False, ["node"]),
        ("elastic", False, ["node"]),
        ("workers on other nodes", False, ["node", "worker"]),
    ],
)
def test_shape_of_the_runtime(job, policy, jobs):
    _, built, _ = migrate(JOBS[job])

    assert ("torch" in built.spec["mlPolicy"]) is policy
    assert [each["name"] for each in built.spec["template"]["spec"]["replicatedJobs"]] == jobs


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"spec": {}}, "no replicas"),
        ({"spec": {"pytorchReplicaSpecs": {"Master": {"replicas": "$N", "template": {"spec": {}}}}}}, "no replicas"),
        ({"spec": {"pytorchReplicaSpecs": {"Chief": {"template": {"spec": {"containers": [TRAIN]}}}}}}, "no replicas"),
        ({"spec": {"pytorchReplicaSpecs": []}}, "no replicas"),
        ({"spec": {"pytorchReplicaSpecs": {"Master": {"template": {"spec": {"containers": [1]}}}}}}, "no replicas"),
    ],
)
def test_other_objects_are_refused(job, reason):
    assert reason in str(build_runtime(job, TARGET, ""))


ODD = (None, 1, "x", [], {}, [1], ["a"], {"a": 1}, True, [None], [{}])


def list_paths(tree, path=()):
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield (*path, key)
        yield from list_paths(value, (*path, key))


@pytest.mark.parametrize("name", ["sidecar", "elastic with etcd", "volcano", "port"])
def test_values_of_any_type_are_no_exception(name):
    for path in list_paths(JOBS[name]):
        for value in ODD:
            job = copy.deepcopy(JOBS[name])
            holder = job
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = value

            assert build_runtime(job, TARGET, "") is not None


def user(name, spec, labels=None, path="jobs/a/x.yaml"):
    return RuntimeUser(name, path, {"metadata": {"labels": labels or {}}}, {"": spec})


@pytest.mark.parametrize(
    ("users", "existing", "names"),
    [
        ([user("bert", 1)], {}, ["bert"]),
        ([user("bert", 1)], {"bert": {"spec": 2}}, ["torch-a"]),
        ([user("bert", 1)], {"old": {"spec": 1}}, ["old"]),
        ([user("a", 1, {"team": "nlp"}), user("b", 1, {"team": "nlp"})], {}, ["torch-nlp"] * 2),
        ([user("a", 1), user("b", 1)], {}, ["torch-a"] * 2),
        ([user("a", 1, path="jobs/a/x"), user("b", 1, path="jobs/b/x")], {}, ["torch"] * 2),
        ([user("a", 1), user("b", 2), user("c", 1)], {}, ["torch-a", "b", "torch-a"]),
    ],
)
def test_equal_runtimes_share_a_name(users, existing, names):
    assert name_runtimes(users, existing) == names


@pytest.mark.stress
def test_public_manifests():
    """Of the public PyTorchJobs that are complete objects, at least 95 % create equal pods.

    Only one field is lost in any of them: the metrics of an autoscaler, which no TrainJob can have.
    """
    counts: Counter[str] = Counter()
    for path in sorted((shared_folder("corpus") / "PyTorchJob").iterdir()):
        for document in read(path.read_bytes(), path.name).documents:
            # Old versions have the same form.
            manifest = {**document.data, "apiVersion": "kubeflow.org/v1"}
            if not _is_complete(manifest):
                continue
            done, _, differences = migrate(manifest)
            lost = {".".join(note.field) for note in done.notes if note.change == "lost"}
            counts["all"] += 1
            counts["equal"] += not differences
            counts["kept"] += not lost

            assert lost <= {"pytorch.elasticPolicy.metrics"}, path.name
    assert counts["all"] > 50
    assert counts["equal"] >= 0.95 * counts["all"], counts
    assert counts["kept"] >= 0.9 * counts["all"], counts


def _is_complete(manifest):
    """Return True if a manifest is a PyTorchJob rather than an excerpt or a text template."""
    return "name" in manifest.get("metadata", {}) and not isinstance(build_runtime(manifest, TARGET, ""), str)


CHECKED = ["plain", "sidecar", "volumes", "claims", "workers on other nodes", "ExitCode", "elastic", "volcano", "port"]


@pytest.mark.parametrize("version", ["2.0.0", "2.3.0"])
def test_migrated_repository_has_no_errors(version, tmp_path):
    overlay = f"spec: {{namespace: ml, cluster: {{operators: {{trainer: {version}, training-operator: 1.9.3}}}}}}\n"
    names = {f"job-{number}": JOBS[name] for number, name in enumerate(CHECKED)}
    (tmp_path / "jobs").mkdir()
    (tmp_path / "overlays/prod").mkdir(parents=True)
    (tmp_path / "jobgen.yaml").write_text("")
    (tmp_path / "overlays/prod/overlay.yaml").write_text(f"apiVersion: jobgen.dev/v1\nkind: Overlay\n{overlay}")
    for name, job in names.items():
        manifest = {**job, "metadata": {"name": name, "namespace": "ml"}}
        (tmp_path / f"jobs/{name}.yaml").write_text(yaml.safe_dump(manifest))
    before = {finding.rule for finding in jobgen.lint(tmp_path).findings if finding.severity is jobgen.Severity.ERROR}
    project = config.load_own(tmp_path)
    migration, proof = complete_migration(project, migrate_repository(project, SOURCE, TARGET))
    for path, text in migration.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    errors = [finding for finding in jobgen.lint(tmp_path).findings if finding.severity is jobgen.Severity.ERROR]

    assert proof.errors == ()
    assert [each for entry in proof.pods for each in entry.differences] == []
    assert [finding for finding in errors if finding.rule not in before] == []


SWEEP = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: scale, namespace: ml}
spec:
  framework: pytorch
  matrix: {gpus: [4, 8], nodes: [1, 3]}
  image: registry.example.com/train:1
  command: [torchrun, train.py]
  resources: {gpu: "${{ matrix.gpus }}"}
  pytorch: {nprocPerNode: "${{ matrix.gpus }}"}
  roles:
    master: {}
    worker: {replicas: "${{ matrix.nodes }}"}
"""


def test_sweep_over_numbers_of_nodes_and_processes(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/scale.yaml").write_text(SWEEP)
    project = config.load_own(tmp_path)
    migration, proof = complete_migration(project, migrate_repository(project, SOURCE, TARGET))

    assert proof.errors == ()
    assert [each for entry in proof.pods for each in entry.differences] == []
    assert sorted(migration.files) == ["jobgen.yaml", "jobs/scale.yaml", "runtimes/scale.yaml"]


def migrate_files(folder, files):
    """Migrate a repository with these files, and prove it."""
    write_files(folder, {path: text.encode() for path, text in files.items()})
    project = config.load_own(folder)
    return complete_migration(project, migrate_repository(project, SOURCE, TARGET))


def test_overlay_shared_with_an_environment_that_stays(tmp_path):
    head = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: "
    files = {
        "overlays/base/o.yaml": f"{head}{{cluster: {{platform: kubeflow}}, defaults: {{imagePullPolicy: Never}}}}\n",
        "overlays/one/o.yaml": f"{head}{{extends: [base], jobs: {{names: [scale-*]}}}}\n",
        "overlays/two/o.yaml": f"{head}{{extends: [base], jobs: {{names: [tf]}}}}\n",
        "jobs/scale.yaml": SWEEP,
        "jobs/tf.yaml": "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: tf, namespace: ml}\n"
        "spec: {framework: tensorflow, image: a, roles: {worker: {replicas: 2}}}\n",
    }
    migration, proof = migrate_files(tmp_path, files)

    assert proof.errors == ()
    assert yaml.safe_load(migration.files["overlays/base/o.yaml"])["spec"] == {
        "cluster": {"platforms": ["trainer", "kubeflow"]},
        "patches": [{"match": {"kinds": ["TFJob"]}, "merge": {"imagePullPolicy": "Never"}}],
    }


def test_runs_keep_their_hash(tmp_path):
    files = {
        "overlays/prod/o.yaml": "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {cluster: {gitops: argocd}, "
        "defaults: {run: {identity: hash}}, "
        "patches: [{match: {kinds: [PyTorchJob]}, manifest: {metadata: {labels: {a: b}}}}]}\n",
        "jobs/bert.yaml": "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: bert, namespace: ml}\n"
        "spec: {framework: pytorch, image: 'registry.example.com/bert:1', command: [torchrun, train.py]}\n",
    }
    migration, proof = migrate_files(tmp_path, files)

    assert proof.errors == ()
    assert yaml.safe_load(migration.files["overlays/prod/o.yaml"])["spec"]["defaults"] == {"run": {"identity": "hash"}}
    patches = yaml.safe_load(migration.files["overlays/prod/runtimes.yaml"])["spec"]["patches"]
    assert [patch["manifest"] for patch in patches] == [{"metadata": {"labels": {"a": "b"}}}]
