"""`jobgen migrate`: the same job for another kind, and a complete report of what changed.

Transcripts in migrate/ show what it prints.
"""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest
import yaml
from command import jobgen, run_transcript
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws
from test_seed_manifests import SEEDS
from transcripts import find_transcripts

from jobgen.features.convert.importing.verify import render_spec, renderer_for
from jobgen.features.convert.migrate.differences import list_names
from jobgen.features.convert.migrate.draft import iter_leaves
from jobgen.features.convert.migrate.migrate_job import migrate_job, target_framework
from jobgen.rendering import config

HERE = Path(__file__).parent
TRANSCRIPTS = find_transcripts("migrate")
PROJECT = config.load_own(HERE.parent)
JOBS = [kind for kind in PROJECT.kinds if kind.frameworks]
ACCEPT_ALL = [f"--accept={name}" for name in list_names()]


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_migrate_transcript(path, accept, tmp_path):
    output, expected = run_transcript(path, tmp_path, accept=accept)

    assert output == expected


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("pytorch-simple", "trainer"),
        ("pytorch-simple", "tensorstack"),
        ("tensorflow-benchmarks", "mpi-operator"),
        ("tensorflow-benchmarks", "trainer"),
        ("mnist", "kubeflow"),
        ("mxnet-job", "PyTorchJob"),
    ],
)
def test_migrated_seeds_have_no_errors(name, target, tmp_path):
    (tmp_path / "seed.yaml").write_text(yaml.safe_dump(SEEDS[name]))
    raw = jobgen(tmp_path, "migrate", "seed.yaml", "--to", target, "--no-runtimes", *ACCEPT_ALL)
    (tmp_path / "raw.yaml").write_bytes(raw.stdout)
    found = jobgen(tmp_path, "lint", "raw.yaml", "--format", "json")
    jobgen(tmp_path, "import", "seed.yaml", "-o", "specs")
    spec = jobgen(tmp_path, "migrate", f"specs/{name}.yaml", "--to", target, "--no-runtimes", *ACCEPT_ALL)

    assert raw.returncode == 0, raw.stderr
    assert [each for each in json.loads(found.stdout)["findings"] if each["severity"] == "error"] == []
    assert spec.returncode == 0, spec.stderr
    assert yaml.safe_load(raw.stdout) == _rendered(yaml.safe_load(spec.stdout), target)


def test_pytorch_job_is_migrated_with_its_runtime(tmp_path):
    (tmp_path / "seed.yaml").write_text(yaml.safe_dump(SEEDS["pytorch-simple"]))
    raw = jobgen(tmp_path, "migrate", "seed.yaml", "--to", "trainer")
    (tmp_path / "raw.yaml").write_bytes(raw.stdout)
    found = jobgen(tmp_path, "lint", "raw.yaml", "--format", "json")

    assert [each["kind"] for each in yaml.safe_load_all(raw.stdout)] == ["TrainJob", "TrainingRuntime"]
    assert b"lost" not in raw.stderr
    assert b"the pods are equal for training" in raw.stderr
    assert [each for each in json.loads(found.stdout)["findings"] if each["severity"] == "error"] == []


def _rendered(document, target):
    platform = next(kind.platform for kind in JOBS if target in (kind.name, kind.platform))
    return render_spec(document, renderer_for(platform, PROJECT.kinds))[0]


def test_unknown_target_or_environment_is_a_usage_error(tmp_path):
    (tmp_path / "seed.yaml").write_text(yaml.safe_dump(SEEDS["pytorch-simple"]))
    target = jobgen(tmp_path, "migrate", "seed.yaml", "--to", "TrainJobb")
    env = jobgen(tmp_path, "migrate", "seed.yaml", "--to", "trainer", "-e", "nowhere")
    job = jobgen(tmp_path, "migrate", "nobody", "--to", "trainer")

    assert (target.returncode, env.returncode, job.returncode) == (2, 2, 3)
    assert b"did you mean `TrainJob`?" in target.stderr
    assert b"did you mean `trainer`?" in jobgen(tmp_path, "migrate", "seed.yaml", "--to", "trainr").stderr


def tokens():
    """Unique texts, so that each can be found again."""
    numbers = count()
    return st.builds(lambda: f"t{next(numbers)}x")


def optional(**fields):
    return st.fixed_dictionaries({}, optional=fields)


word = tokens()
small = st.dictionaries(st.sampled_from("abc"), word, min_size=1, max_size=2)
amounts = optional(
    cpu=st.integers(1, 9), limits=st.just({"memory": "1Gi"}), requests=st.just({"memory": "512Mi"}), gpu=st.just(1)
)
container = {
    "image": word,
    "imagePullPolicy": st.sampled_from(["Always", "Never"]),
    "command": st.lists(word, min_size=1, max_size=2),
    "args": st.lists(word, min_size=1, max_size=2),
    "workingDir": word,
    "env": st.dictionaries(
        st.sampled_from(["A", "B", "PET_NNODES", "RANK", "TF_CONFIG"]), word, min_size=1, max_size=3
    ),
    "envFrom": st.builds(lambda name: [{"configMapRef": {"name": name}}], word),
    "ports": st.sampled_from([{"p": 80}, {"q": 81}]),
    "resources": amounts,
    "volumes": st.builds(lambda name: {"v": {"pvc": name, "mountPath": "/v"}}, word),
    "shm": st.just("1Gi"),
    "restartPolicy": st.sampled_from(["Always", "OnFailure", "Never", "ExitCode"]),
    "nodeSelector": small,
    "tolerations": st.builds(lambda key: [{"key": key}], word),
    "affinity": st.builds(lambda key: {"nodeAffinity": {"odd": key}}, word),
    "serviceAccount": word,
    "imagePullSecrets": st.lists(word, min_size=1, max_size=2),
    "securityContext": st.builds(lambda user: {"runAsUser": 1, "seccompProfile": {"type": user}}, word),
    "labels": small,
    "annotations": small,
    "initContainers": st.builds(lambda image: {"init": {"image": image}}, word),
    "sidecars": st.builds(lambda image: {"side": {"image": image}}, word),
    "secrets": st.dictionaries(
        st.sampled_from(["s", "t"]),
        st.one_of(
            st.builds(lambda key: {"env": {"S": key}}, word),
            st.builds(lambda prefix: {"env": True, "prefix": prefix}, word),
            st.builds(lambda prefix, key: {"env": True, "prefix": prefix, "mountPath": f"/{key}"}, word, word),
        ),
        min_size=1,
        max_size=2,
    ),
    "podTemplate": st.builds(
        lambda one, other, third: {
            "metadata": {"name": one},
            "spec": {"subdomain": other, "containers": [{"name": "side", "image": third}]},
        },
        word,
        word,
        word,
    ),
}
policy = optional(
    cleanPodPolicy=st.sampled_from(["None", "Running", "All"]),
    ttlSecondsAfterFinished=st.integers(1, 99),
    activeDeadlineSeconds=st.integers(1, 99),
    backoffLimit=st.integers(1, 99),
    suspend=st.booleans(),
    schedulingPolicy=st.builds(lambda queue: {"queue": queue}, word),
    managedBy=st.sampled_from(["kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"]),
)
BLOCKS = {
    "pytorch": optional(
        nprocPerNode=st.sampled_from(["4", "auto"]),
        elasticPolicy=optional(
            minReplicas=st.integers(1, 2), maxRestarts=st.integers(1, 9), rdzvHost=word, rdzvBackend=word
        ),
    ),
    "mpi": optional(slotsPerWorker=st.integers(1, 4), mainContainer=word, cleanPodPolicy=st.just("None")),
    "tensorflow": optional(successPolicy=word),
    "xgboost": st.just({}),
    "jax": st.just({}),
    "mxnet": optional(jobMode=word),
}


@st.composite
def routes(draw):
    """A spec, the kind it is and the kind it shall be."""
    source = draw(st.sampled_from([kind for kind in JOBS if set(kind.frameworks) & set(BLOCKS)]))
    framework = draw(st.sampled_from([name for name in source.frameworks if name in BLOCKS]))
    target = draw(
        st.sampled_from([kind for kind in JOBS if target_framework(framework, kind) and kind is not source] or [source])
    )
    role = optional(replicas=st.integers(1, 3), **container)
    names = st.sampled_from(source.frameworks[framework].roles)
    spec = draw(
        optional(
            runPolicy=policy,
            queue=word,
            priority=word,
            suspend=st.booleans(),
            description=word,
            tensorboard=st.builds(lambda image: {"image": image}, word),
            roles=st.dictionaries(names, role, min_size=1, max_size=2),
            manifest=st.builds(lambda one, two: {"metadata": {"x": one}, "spec": {"odd": two}}, word, word),
            **container,
        )
    )
    block = draw(BLOCKS[framework])
    document = {
        "apiVersion": "jobgen.dev/v1",
        "kind": "TrainingJob",
        "metadata": {"name": "job"},
        "spec": {"framework": framework, **spec, **({framework: block} if block else {})},
    }
    # A job that stays loses only what its own kind cannot express, and the rest can be rendered.
    return migrate_job(document, source, source, framework, PROJECT.kinds).document, source, target, framework


@laws(13)
@given(routes())
def test_every_dropped_field_is_reported(route):
    document, source, target, framework = route
    done = migrate_job(document, source, target, framework, PROJECT.kinds)
    noted = [entry.field for entry in done.notes if entry.change != "check"]
    # The objects are asked, not the specs: what counts is what reaches the cluster.
    made, problems = render_spec(document, renderer_for(source.platform, PROJECT.kinds))
    before, after = json.dumps(made), json.dumps(done.rendered)

    # A dropped role takes along the fields that reached that role alone; its line in the report covers them.
    role_lost = any(
        entry.change == "lost" and len(entry.field) == 2 and entry.field[0] == "roles" for entry in done.notes
    )
    for path, value in iter_leaves(document["spec"]):
        # No text is a part of another one; a RayJob has all words of a command in one text.
        gone = [text for text in texts(value) if text in before and text not in after]
        if gone and not problems and not done.problems and not (role_lost and path[0] != "roles"):
            assert any(path[: len(field)] == field or field[: len(path)] == path for field in noted), (path, noted)


def texts(value):
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in texts(each)]
    return [value] if isinstance(value, str) and value.startswith("t") and value.endswith("x") else []


@laws(10)
@given(routes())
def test_migrated_job_can_be_rendered(route):
    document, source, target, framework = route
    if render_spec(document, renderer_for(source.platform, PROJECT.kinds))[1]:
        return
    done = migrate_job(document, source, target, framework, PROJECT.kinds)
    roles = document["spec"].get("roles", {})

    # A launcher alone has no node to run on. Without an operator, no variable can count the ranks of a second role.
    is_known = target.shape == "one" and framework == "mpi" and "worker" not in roles
    # A role that the kind adds, such as the head of a RayJob, has the secrets of all roles, which may conflict.
    refusals = ("no variable can express this", "which is set already")
    unknown = [each for each in done.problems if not any(text in each for text in refusals)]
    assert not unknown or is_known, unknown


# The fields that a job has on both sides of each migration, if its kind has them.
POLICIES = {"runPolicy": {"backoffLimit": 2, "activeDeadlineSeconds": 60}, "queue": "gpu"}
WITHOUT_OPERATOR = ("kubernetes", "jobset")
PAIRS = [
    (framework, source, target)
    for source in JOBS
    for target in JOBS
    for framework in source.frameworks
    if framework in target.frameworks and source is not target
    if not {source.platform, target.platform}.isdisjoint(WITHOUT_OPERATOR)
    if not {source.platform, target.platform} & {"ray", "volcano"}
    # It starts processes itself, and has a place of its own for what they run.
    if "DeepSpeedJob" not in (source.name, target.name)
]


@pytest.mark.parametrize(
    ("framework", "source", "target"),
    PAIRS,
    ids=[f"{framework}-{source.platform}-{target.platform}" for framework, source, target in PAIRS],
)
def test_jobs_run_the_same_without_an_operator(framework, source, target):
    known = source.frameworks[framework].roles
    roles = {"node": {"replicas": 3}} if {"node", "*"} & {*known} else {"worker": {"replicas": 3}}
    spec = {
        "framework": framework,
        "image": "registry.example.com/bert:1",
        "command": ["torchrun", "train.py"],
        "env": {"EPOCHS": "3"},
        "resources": {"cpu": 4, "gpu": 2},
        "volumes": {"data": {"pvc": "data", "mountPath": "/data"}},
        **({} if {source.platform, target.platform} & {"trainer", "tensorstack"} else POLICIES),
        "roles": roles,
    }
    document = {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": "bert"}, "spec": spec}
    done = migrate_job(document, source, target, framework, PROJECT.kinds)

    assert done.problems == ()
    # Operators have variables of their own, and retry in different ways.
    assert {each.name for each in done.differences} <= {"operator-env", "restarts"}
    assert [note for note in done.notes if note.change == "lost"] == []
    assert (
        any("backoffLimit" in note.field or target.platform not in WITHOUT_OPERATOR for note in done.notes)
        or not done.notes
    )


def find_job_kind(platform, framework):
    return next(kind for kind in JOBS if kind.platform == platform and framework in kind.frameworks)


# The source, the target, the spec, and what of it the migrated spec has.
OF_VOLCANO_AND_TENSORSTACK = [
    (
        "kubeflow volcano pytorch",
        {"runPolicy": {"backoffLimit": 2, "schedulingPolicy": {"minAvailable": 3, "queue": "gpu"}}},
        {"runPolicy": {"backoffLimit": 2}, "volcano": {"minAvailable": 3}, "queue": "gpu"},
    ),
    ("kubeflow volcano tensorflow", {"restartPolicy": "ExitCode"}, {"restartPolicy": "Never"}),
    ("volcano kubeflow pytorch", {"volcano": {"maxRetry": 3, "minAvailable": 2}}, {"volcano": None}),
    ("tensorstack volcano pytorch", {"suspend": True, "priority": "50"}, {"suspend": None, "priority": "50"}),
    (
        "tensorstack mpi-operator mpi",
        {"mpi": {"script": ["train"], "extraArgs": ["-N", "2"], "mca": {"btl": "^openib"}}},
        {"mpi": None, "roles": {"launcher": {"command": ["mpirun", "-mca", "btl", "^openib", "-N", "2", "train"]}}},
    ),
    (
        "mpi-operator tensorstack mpi",
        {"runPolicy": {"cleanPodPolicy": "All"}, "mpi": {"slotsPerWorker": 2}, "command": ["mpirun", "train"]},
        {
            "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 6},
            "mpi": {"slotsPerWorker": 2},
            "command": ["mpirun", "train"],
        },
    ),
    (
        "tensorstack kubernetes deepspeed",
        {"deepspeed": {"config": {"run": {"module": ["train"]}, "localRank": False}}},
        {"deepspeed": None, "command": ["torchrun", "-m", "train"]},
    ),
]


@pytest.mark.parametrize(
    ("route", "own", "expected"), OF_VOLCANO_AND_TENSORSTACK, ids=[row[0] for row in OF_VOLCANO_AND_TENSORSTACK]
)
def test_jobs_of_volcano_and_tensorstack(route, own, expected):
    source, target, framework = route.split()
    document = {
        "apiVersion": "jobgen.dev/v1",
        "kind": "TrainingJob",
        "metadata": {"name": "job"},
        "spec": {"framework": framework, "image": "x", **own},
    }
    done = migrate_job(
        document, find_job_kind(source, framework), find_job_kind(target, framework), framework, PROJECT.kinds
    )

    assert done.problems == ()
    assert {field: done.document["spec"].get(field) for field in expected} == expected
    noted = {note.field for note in done.notes}
    lost = [path for path, value in iter_leaves(own) if path not in dict(iter_leaves(done.document["spec"]))]
    assert all(any(path[: len(field)] == field for field in noted) for path in lost)
