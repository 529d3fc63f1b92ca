"""Runs: their names, when a change makes a new run, and that engines start each run once."""

from __future__ import annotations

import copy
import functools
import itertools
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from gitrepository import Repository
from hypothesis import given
from hypothesis import strategies as st
from linting import lint_paths
from sampling import laws

from jobgen import cache
from jobgen.cli.commands.explain import explain_name
from jobgen.cli.run_render import render
from jobgen.model.data import untraced
from jobgen.rendering import config
from jobgen.rendering.build import build_object
from jobgen.rendering.expand import Expander, JobDocument
from jobgen.rendering.runs import JOB_ANNOTATION, SOURCE_ANNOTATION, run_hash
from jobgen.spec.overlay import Cluster, Environment
from jobgen.yamlio.read import read

KINDS = config.load_own(Path(__file__).parent.parent).kinds
JOB_TEXT = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  image: registry.example.com/bert:1
  command: [python, train.py]
  env: {A: "1", B: "2"}
  resources: {cpu: 500m, memory: 1Gi, gpu: 1}
  volumes: {data: {pvc: datasets, mountPath: /data}}
  shm: 1Gi
  run: {identity: hash}
  roles: {master: {}, worker: {replicas: 2}}
"""


def made(data, gitops="argocd", file="jobs/bert.yaml", **facts):
    """The object of a job, and what is wrong with it."""
    expander = Expander(Environment("prod", Cluster(gitops=gitops, **facts)), list(KINDS))
    problems = []
    return build_object(JobDocument(data, file), expander, [], problems, []), problems


def job():
    return copy.deepcopy(read(JOB_TEXT.encode(), "jobs/bert.yaml").documents[0].data)


def name_of(data, **facts):
    thing, problems = made(data, **facts)
    assert problems == []
    return thing["metadata"]["name"]


def changed(**fields):
    data = job()
    data["spec"].update(fields)
    return data


def shuffled(node, draw):
    if isinstance(node, dict):
        # The order of variables is kept, for one may be made of another.
        keys = draw(st.permutations(list(node)))
        return {key: node[key] if key == "env" else shuffled(node[key], draw) for key in keys}
    return [shuffled(child, draw) for child in node] if isinstance(node, list) else node


COSMETIC = [
    {"resources": {"cpu": 0.5, "memory": "1024Mi", "gpu": "1"}},
    {"resources": {"memory": 1073741824, "gpu": 1, "cpu": "500m"}},
    {"shm": "1048576Ki"},
    {"description": "the best run so far"},
    {"queue": "gpu-a"},
    {"suspend": True},
    {"runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 3, "activeDeadlineSeconds": 60}},
    {"run": {"identity": "hash", "onChange": "keep", "attempt": 1, "state": "active"}},
    {"replicas": 3},
    {"manifest": {"metadata": {"labels": {"a": "b"}}}},
]


@pytest.mark.parametrize("fields", COSMETIC, ids=lambda fields: next(iter(fields)))
def test_fields_that_do_not_reach_pods_keep_the_run_name(fields):
    assert name_of(changed(**fields)) == name_of(job())


def with_scratch(size):
    """The job with a volume of its own template that has a size."""
    volume = {"name": "scratch", "emptyDir": {"sizeLimit": size}}
    return changed(podTemplate={"spec": {"volumes": [volume]}})


@pytest.mark.parametrize("size", ["1024Mi", 1073741824])
def test_an_equal_size_of_a_volume_keeps_the_run_name(size):
    assert name_of(with_scratch(size)) == name_of(with_scratch("1Gi")) != name_of(with_scratch("2Gi"))


def test_a_text_that_looks_like_a_quantity_is_a_text():
    """A program may read `1Gi` and not `1024Mi`."""
    first, second = (name_of(changed(command=["train", size])) for size in ("1Gi", "1024Mi"))

    assert first != second


def test_object_labels_and_gitops_engine_keep_the_run_name():
    data = job()
    data["metadata"] |= {"labels": {"team": "nlp"}, "annotations": {"a": "b"}, "namespace": "ml"}

    assert name_of(data) == name_of(job()) == name_of(job(), gitops="flux") == name_of(job(), gitops="")


def test_moved_file_keeps_the_run_name():
    (before, _), (after, _) = made(job()), made(job(), file="jobs/nlp/bert.yaml")

    assert before["metadata"]["annotations"].pop(SOURCE_ANNOTATION) == "jobs/bert.yaml"
    assert after["metadata"]["annotations"].pop(SOURCE_ANNOTATION) == "jobs/nlp/bert.yaml"
    assert before == after


@given(st.data())
@laws(20)
def test_key_order_keeps_the_run_name(data):
    assert name_of(shuffled(job(), data.draw)) == name_of(job())


def test_comments_and_notation_keep_the_run_name():
    text = "# a comment\n" + JOB_TEXT.replace('"1"', "'1'").replace("[python, train.py]", "\n  - python\n  - train.py")
    other = read(text.encode(), "jobs/bert.yaml").documents[0].data

    assert name_of(other) == name_of(job())


def test_traced_rendering_gives_the_same_run_name():
    traced = read(JOB_TEXT.encode(), "jobs/bert.yaml", traced=True).documents[0].data
    thing, _ = made(traced)

    assert untraced(thing["metadata"]["name"]) == name_of(job())
    assert (
        thing["metadata"]["name"].location.line == thing["metadata"]["annotations"][JOB_ANNOTATION].location.line == 3
    )


RUNNING = [
    {"image": "registry.example.com/bert:2"},
    {"command": ["python", "train.py", ""]},
    {"args": ["--lr=1"]},
    {"env": {"A": "1", "B": "3"}},
    {"env": {"B": "2", "A": "1"}},
    {"resources": {"cpu": "501m", "memory": "1Gi", "gpu": 1}},
    {"resources": {"cpu": "500m", "memory": "1G", "gpu": 1}},
    {"resources": {"cpu": "500m", "memory": "1Gi", "gpu": 2}},
    {"volumes": {"data": {"pvc": "other", "mountPath": "/data"}}},
    {"volumes": {"data": {"pvc": "datasets", "mountPath": "/other"}}},
    {"shm": "2Gi"},
    {"labels": {"on": "pods"}},
    {"annotations": {"on": "pods"}},
    {"restartPolicy": "Never"},
    {"nodeSelector": {"pool": "a"}},
    {"tolerations": [{"operator": "Exists"}]},
    {"serviceAccount": "trainer"},
    {"securityContext": {"runAsUser": 1}},
    {"priority": "high"},
    {"imagePullPolicy": "Always"},
    {"workingDir": "/src"},
    {"pytorch": {"nprocPerNode": 2}},
    {"pytorch": {"elasticPolicy": {"maxRestarts": 3}}},
    {"podTemplate": {"spec": {"terminationGracePeriodSeconds": 3}}},
    {"roles": {"master": {}, "worker": {"replicas": 3}}},
    {"roles": {"master": {"image": "x:1"}, "worker": {"replicas": 2}}},
    {"roles": {"worker": {"replicas": 2}}},
    {"run": {"identity": "hash", "attempt": 2}},
    {"manifest": {"spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"hostNetwork": True}}}}}}},
]


@pytest.mark.parametrize("fields", RUNNING, ids=lambda fields: next(iter(fields)))
def test_fields_that_reach_pods_change_the_run_name(fields):
    assert name_of(changed(**fields)) != name_of(job())


def leaves(node, path=()):
    if isinstance(node, (dict, list)):
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            yield from leaves(child, (*path, key))
    else:
        yield path


def with_another(node, path):
    """The tree with another leaf at a path."""
    if not path:
        return node + 1 if isinstance(node, int) else f"{int(node[:-2]) + 1}Gi" if node.endswith("Gi") else f"{node}0"
    there = with_another(node[path[0]], path[1:])
    return {**node, path[0]: there} if isinstance(node, dict) else [*node[: path[0]], there, *node[path[0] + 1 :]]


def test_every_pod_field_of_every_kind_changes_the_run_name():
    seen = {}
    for platform, framework in itertools.product(("kubeflow", "trainer", "tensorstack"), ("pytorch", "xgboost", "mpi")):
        data = changed(framework=framework, roles={"worker": {"replicas": 2}}, shm=None)
        del data["spec"]["shm"], data["spec"]["volumes"]
        thing, problems = made(data, gitops="", platform=platform)
        if problems:
            continue
        kind = next(kind for kind in KINDS if kind.describes(thing["apiVersion"], thing["kind"]))
        assert thing["metadata"]["name"].endswith(run_hash(thing, kind, 1))
        for path in leaves(thing["spec"]):
            other = {**thing, "spec": with_another(thing["spec"], path)}
            found = run_hash(other, kind, 1)
            if "runPolicy" not in path:
                assert seen.setdefault(found, (kind.name, path)) == (kind.name, path)
                assert found != run_hash(thing, kind, 1), path

    assert len(seen) > 50


@pytest.mark.parametrize(("replicas", "room"), [(2, 45), (11, 44), (101, 43)])
def test_long_run_names_are_cut_before_the_hash(replicas, room):
    data = changed(roles={"worker": {"replicas": replicas}})
    names = set()
    for name in ("x" * room, "x" * room + "-", "x" * (room + 1), "y" * 80, "y" * 80 + "z"):
        data["metadata"]["name"] = name
        found = name_of(data)
        names.add(found)

        assert len(found) <= room + 9
        assert len(found.rpartition("-")[2]) == 8
        assert f"{found}-worker-{replicas - 1}" < "z" * 64
        assert len(f"{found}-worker-{replicas - 1}") <= 63
    assert len(names) == 5


def test_run_name_without_room_for_the_job_name_is_an_error():
    kinds = [kind.with_parts(name_suffix=f"-{'s' * 50}") for kind in KINDS]
    expander = Expander(Environment("prod"), kinds)
    problems = []
    build_object(JobDocument({**job(), "metadata": {"name": "a-long-name"}}, "a"), expander, [], problems, [])

    assert [(problem.rule, str(problem.sentence).partition("` ")[2]) for problem in problems] == [
        ("name-too-long-for-hash", "leaves 3 characters for the name; it needs 8")
    ]


def test_plain_jobs_have_no_run_annotations_without_a_gitops_engine():
    data = changed(run={})
    thing, _ = made(data, gitops="")

    assert thing["metadata"] == {"name": "bert"}
    assert made(data, gitops="kubectl")[0]["metadata"] == {
        "name": "bert",
        "annotations": {JOB_ANNOTATION: "bert", SOURCE_ANNOTATION: "jobs/bert.yaml"},
    }


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("jobs/ö/a b.yaml", "jobs/ö/a b.yaml"),
        ("jobs/\udcff.yaml", "jobs/?.yaml"),  # what is no text in the file system cannot be any in an object
        ("TrainingJob bert", None),  # what a function is given is no file of the repository
    ],
)
def test_source_annotation_is_the_path_from_the_root(file, path):
    data = job()
    data["metadata"]["annotations"] = {JOB_ANNOTATION: "theirs"} | ({SOURCE_ANNOTATION: "theirs"} if path else {})
    thing, _ = made(data, file=file)

    assert thing["metadata"]["annotations"].get(SOURCE_ANNOTATION) == path
    assert thing["metadata"]["annotations"][JOB_ANNOTATION] == "bert"


# Days.


def repository(folder, expires="2027-01-31", day="2027-01-30"):
    for path, text in {
        "jobgen.yaml": "",
        "jobs/a.yaml": JOB_TEXT.replace("identity: hash", f'expires: "{expires}"'),
        "jobs/b.yaml": JOB_TEXT.replace("name: bert", "name: other").replace("identity: hash", "state: active"),
    }.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    commit_on(folder, day)
    return folder


def commit_on(folder, day):
    git = Repository(folder, folder)
    git.environ["GIT_COMMITTER_DATE"] = f"{day}T12:00:00Z"
    assert git.commit("--allow-empty").returncode == 0


def rendered(folder, **options):
    done = render(folder, (), (), None, format_="yaml", **options)
    assert done.err == ""
    return [line.split()[1] for line in done.out.splitlines() if line.startswith("  name: ")]


def test_job_expires_by_commit_date(tmp_path):
    repository(tmp_path)

    assert rendered(tmp_path) == ["bert", "other"]
    commit_on(tmp_path, "2027-01-31")
    assert rendered(tmp_path) == ["bert", "other"]
    commit_on(tmp_path, "2027-02-01")
    assert rendered(tmp_path) == ["other"]
    assert rendered(tmp_path, today="2027-01-31") == ["bert", "other"]


def test_expiry_without_a_commit_needs_a_date(tmp_path):
    repository(tmp_path)
    shutil.rmtree(tmp_path / ".git")
    done = render(tmp_path, (), (), None, format_="yaml")

    assert done.code == 1
    assert "[unknown-current-date]" in done.err
    assert rendered(tmp_path, today="2027-02-01") == ["other"]


def test_cached_lint_depends_on_the_date(tmp_path):
    repository(tmp_path)
    text = (tmp_path / "jobs/a.yaml").read_text()
    (tmp_path / "jobs/a.yaml").write_text(text.replace("bert:1", "bert:latest"))
    cache.enable(tmp_path / "memory", "test")
    try:
        told = [lint_paths(tmp_path, (), (), format_="concise", today=day).out for day in ("2027-01-31", "2027-02-01")]
    finally:
        cache.disable()

    assert "mutable-image-tag" in told[0]
    assert "mutable-image-tag" not in told[1]


def test_paused_job_has_nothing_to_explain(tmp_path):
    repository(tmp_path)

    assert explain_name(tmp_path, "bert", "metadata.name", (), "text", "2027-01-01").code == 0
    done = explain_name(tmp_path, "bert", "", (), "text", "2028-01-01")
    assert done.code == 3
    assert done.err.startswith("jobgen: `bert` expired on `")


def test_run_is_explained_by_its_name_in_the_cluster(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(JOB_TEXT)
    name = name_of(job())
    done = explain_name(tmp_path, name, "metadata.name", (), "text")

    assert done.out == f'metadata.name = "{name}"\n  jobs/a.yaml:3:18  job: "{name}"\n'
    assert explain_name(tmp_path, "bert-00000000", "", (), "text").code == 3


# Engines.


class Thing(NamedTuple):
    """An object in the cluster: what its pods were made of, when they end, and when it is gone by itself."""

    key: tuple
    ends: int
    ttl: int | None
    kept: bool


class Engine:
    """A cluster with training-operator, and Argo CD (auto-sync, prune, self-heal) or Flux in front of it."""

    def __init__(self, engine, rng):
        self.engine = engine
        self.rng = rng
        self.objects = {}
        self.started = []
        self.now = 0
        self.synced = None
        self.wait = 2

    def tick(self, revision, desired):
        """A moment passes: jobs end, TTLs run out, and the engine looks whether anything is to be done."""
        self.now += 1
        for name, thing in list(self.objects.items()):
            if thing.ttl is not None and self.now >= thing.ends + thing.ttl:
                del self.objects[name]
        if self.is_due(revision, desired):
            self.sync(desired)
            self.synced = revision

    def is_due(self, revision, desired):
        if self.engine == "flux":
            return self.now % 3 == 0
        if revision != self.synced:
            self.wait = 2
            return True
        # Self-heal: what is missing is made again, after a pause that grows.
        if desired.keys() <= self.objects.keys():
            return False
        self.wait -= 1
        healed = self.wait <= 0
        self.wait = 2 if healed else self.wait
        return healed

    def sync(self, desired):
        for name, (key, thing) in desired.items():
            if name in self.objects:
                # Pods that exist are never changed by the operator.
                old = self.objects[name]
                self.objects[name] = old._replace(kept=is_kept(thing))
            else:
                self.started.append(key)
                self.objects[name] = Thing(key, self.now + self.rng.randint(1, 6), ttl_of(thing), is_kept(thing))
        for name in [name for name, thing in self.objects.items() if name not in desired and not thing.kept]:
            del self.objects[name]


def ttl_of(thing):
    return thing["spec"].get("runPolicy", {}).get("ttlSecondsAfterFinished")


def is_kept(thing):
    annotations = thing["metadata"].get("annotations", {})
    options = annotations.get("argocd.argoproj.io/sync-options", "").split(",")
    return "Prune=false" in options or annotations.get("kustomize.toolkit.fluxcd.io/prune") == "disabled"


def history(rng):
    """Commits: what the pods run, the attempt, and text that does not reach pods."""
    image, attempt, words, images = 1, 1, 0, 1
    for _ in range(rng.randint(2, 7)):
        yield image, attempt, words
        match rng.choice(("edit", "cosmetic", "attempt", "revert", "nothing")):
            case "edit":
                images += 1
                image = images
            case "revert":
                image = rng.randint(1, images)
            case "attempt":
                attempt += 1
            case "cosmetic":
                words += 1


@functools.cache
def spelt(commit, memory, run, ttl, engine):
    """The object of a commit; few of all histories differ in it, and rendering takes longer than the simulation."""
    image, attempt, words = commit
    data = changed(image=f"registry.example.com/bert:{image}", description=f"version {words}")
    data["spec"]["resources"]["memory"] = memory
    data["metadata"]["labels"] = {"words": str(words)}
    data["spec"]["run"] = {**dict(run), "attempt": attempt} if "identity" in dict(run) else dict(run)
    if ttl:
        data["spec"]["runPolicy"] = {"ttlSecondsAfterFinished": ttl}
    thing, problems = made(data, gitops=engine)
    assert problems == []
    return thing


def intended(commits, *, kept):
    """The runs that were meant: each change of what runs; where runs are kept, each that is not there yet."""
    keys = [key for key, _ in itertools.groupby(commits, key=lambda one: one[:2])]
    return Counter(set(keys) if kept else keys)


def simulate(seed, engine, run, ttl=None):
    """One history: what was started too often, and what was never started."""
    rng = random.Random(seed)
    commits = list(history(rng))
    world = Engine(engine, rng)
    for revision, commit_ in enumerate(commits):
        thing = spelt(commit_, rng.choice(("1Gi", "1024Mi")), tuple(run.items()), ttl, engine)
        desired = {thing["metadata"]["name"]: (commit_[:2], thing)}
        # Flux looks every third moment, so each commit is seen at least once.
        for _ in range(rng.randint(3, 12)):
            world.tick(revision, desired)
    for _ in range(40):
        world.tick(len(commits) - 1, desired)
    meant, found = intended(commits, kept=run.get("onChange") == "keep"), Counter(world.started)
    return found - meant, meant - found


HISTORIES = 1000


@pytest.mark.parametrize("engine", ["argocd", "flux"])
def test_hashed_runs_start_exactly_once(engine):
    for seed in range(HISTORIES):
        run = {"identity": "hash", "onChange": ("replace", "keep")[seed % 2]}

        assert simulate(seed, engine, run) == (Counter(), Counter()), seed


@pytest.mark.parametrize("engine", ["argocd", "flux"])
@pytest.mark.parametrize(("ttl", "fault"), [(2, "again"), (None, "never")])
def test_plain_names_start_runs_again_or_never(engine, ttl, fault):
    told = [simulate(seed, engine, {}, ttl) for seed in range(HISTORIES // 5)]
    again, never = (sum(bool(each[side]) for each in told) for side in (0, 1))

    assert {"again": again, "never": never}[fault] > HISTORIES // 10


def test_hashed_run_with_ttl_is_refused_for_gitops_engines():
    data = changed(runPolicy={"ttlSecondsAfterFinished": 60})

    assert [problem.rule for problem in made(data)[1]] == ["ttl-reruns-job"]
    assert made(data, gitops="kubectl")[1] == []


# Fields that decide when a job is admitted, ends or is deleted, and a field that its pods depend on.
LIFECYCLES = {
    "batch/v1 Job": ({"suspend": True, "ttlSecondsAfterFinished": 1, "backoffLimit": 2}, {"parallelism": 2}),
    "jobset.x-k8s.io/v1alpha2 JobSet": ({"suspend": True, "ttlSecondsAfterFinished": 1}, {"successPolicy": {}}),
    "ray.io/v1 RayJob": (
        {"suspend": True, "shutdownAfterJobFinishes": True, "activeDeadlineSeconds": 9, "deletionStrategy": {}},
        {"entrypoint": "b"},
    ),
    "batch.volcano.sh/v1alpha1 Job": ({"queue": "a", "minAvailable": 2, "maxRetry": 5}, {"plugins": {"svc": []}}),
    "batch.tensorstack.dev/v1beta1 GenericJob": (
        {"runMode": {"pause": {"enabled": True}}, "scheduler": {"t9kScheduler": {"queue": "a"}}},
        {"scheduler": {"t9kScheduler": {"role": "a"}}},
    ),
}


@pytest.mark.parametrize("identity", LIFECYCLES)
def test_admission_deadlines_and_cleanup_of_other_kinds_keep_the_run_name(identity):
    api_version, name = identity.split()
    kind = KINDS[0].with_parts(kind=name, name=name, fields={})
    lifecycle, pods = LIFECYCLES[identity]

    def hashed(**more):
        return run_hash({"apiVersion": api_version, "kind": name, "spec": {"entrypoint": "a", **more}}, kind, 1)

    assert hashed() == hashed(**lifecycle)
    assert all(hashed() == hashed(**{field: lifecycle[field]}) for field in lifecycle)
    assert hashed() != hashed(**pods)


@pytest.mark.parametrize(("gitops", "rules"), [("argocd", ["ttl-reruns-job"]), ("flux", ["ttl-reruns-job"]), ("", [])])
def test_ttl_of_a_kubernetes_job_reruns_it(gitops, rules):
    _, problems = made(changed(runPolicy={"ttlSecondsAfterFinished": 60}), gitops=gitops, platform="kubernetes")

    assert [problem.rule for problem in problems] == rules
