"""What a job runs is the same before and after a migration, or nothing is printed: the law of `jobgen migrate`.

Repositories are generated for each pair of platforms and each framework. What the pods run is read from the objects
that the environments render, before and after, by a description of its own.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from pathlib import Path

import pytest
import yaml
from command import jobgen
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws, sample
from transcripts import write_files

import jobgen as api
from jobgen.features.convert.commands.migrate import migrate_all, migrate_jobs
from jobgen.features.convert.migrate.differences import list_names
from jobgen.features.convert.migrate.migrate_job import migrate_job
from jobgen.features.convert.operators.create import create_pods
from jobgen.rendering import config
from jobgen.spec.overlay import Cluster

ROOT = Path(__file__).parent.parent
PROJECT = config.load_own(ROOT)
KINDS = [kind for kind in PROJECT.kinds if kind.frameworks]
PAIRS = [
    (framework, source, target)
    for source in KINDS
    for framework in source.frameworks
    for target in KINDS
    if target.platform != source.platform and framework in target.frameworks
]
IDS = [f"{framework}-{source.platform}-{target.platform}" for framework, source, target in PAIRS]
# Kinds that start the program once, or with a command of their own.
STARTED_ELSEWHERE = ("ray-job", "launched-job", "deepspeed-job")


def make_overlay(name, **spec):
    return {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "metadata": {"name": name}, "spec": spec}


def make_job(**spec):
    return {
        "apiVersion": "jobgen.dev/v1",
        "kind": "TrainingJob",
        "metadata": {"name": "a", "namespace": "ml"},
        "spec": spec,
    }


def write_repository(folder, job, overlays):
    names = [each["metadata"]["name"] for each in overlays]
    files = {f"overlays/{name}/overlay.yaml": each for name, each in zip(names, overlays, strict=True)}
    files |= {"jobgen.yaml": {"environments": names}, "jobs/a.yaml": job}
    write_files(folder, {path: yaml.safe_dump(data, sort_keys=False).encode() for path, data in files.items()})


def render(folder, env):
    """Return the objects of an environment; None if it has errors."""
    result = api.render(api.load(str(folder)), environments=[env])
    return None if result.findings else [json.loads(json.dumps(each.manifest)) for each in result.objects]


LEADERS = ("launcher", "head", "submitter")


def count_processes(pod, main):
    """Return how many processes torchrun starts in a pod; an empty text without torchrun."""
    words = [*(main.get("command") or ()), *(main.get("args") or ())]
    if "torchrun" not in words:
        return ""
    env = {each["name"]: each.get("value") for each in main.get("env", ())}
    number = env.get("PET_NPROC_PER_NODE") or pod.processes or "1"
    devices = (main.get("resources", {}).get("limits") or {}).get("nvidia.com/gpu", 1)
    return str(devices) if number in ("auto", "gpu") else number


def describe_pods(objects, operators, framework, *, is_strict=False):
    """Count the pods of a job by what they run: image, command, devices, variables of users and mounts.

    With `is_strict`, also by what operators may do in another way: the number of processes that torchrun starts.

    Launchers, heads and submitters run what an operator gives them, so only their number matters.
    """
    found = Counter()
    for pod in create_pods(objects[0], objects[1:], Cluster(operators=operators)):
        if pod.role.lower() in LEADERS or (framework == "mpi" and pod.role == "master"):
            continue
        containers = pod.spec.get("containers", [])
        main = next((each for each in containers if each["name"] == pod.main), containers[0])
        volumes = {
            each["name"]: json.dumps({**each, "name": ""}, sort_keys=True) for each in pod.spec.get("volumes", ())
        }
        mounts = {(each["mountPath"], volumes.get(each["name"])) for each in main.get("volumeMounts", ())}
        row = (
            main.get("image"),
            (*(main.get("command") or ()), *(main.get("args") or ())),
            json.dumps(main.get("resources", {}).get("limits"), sort_keys=True),
            tuple(sorted((each["name"], each.get("value")) for each in main.get("env", ()) if each["name"] in "ABC")),
            tuple(sorted(each for each in mounts if each[0] in ("/data", "/ckpt", "/dev/shm"))),
            json.dumps([each for each in containers if each["name"] == "side"]),
            json.dumps(main.get("envFrom")),
            json.dumps([pod.spec.get(field) for field in ("nodeSelector", "tolerations", "serviceAccountName")]),
            pod.labels.get("team"),
            count_processes(pod, main) if is_strict else "",
        )
        found[row] += pod.count
    return found


word = st.sampled_from(["x", "z", "two words", "$(A)"])
container = {
    "image": st.sampled_from(["registry.example.com/a:1", "registry.example.com/b:2"]),
    "command": st.builds(
        lambda first, more: [*first, *more],
        st.sampled_from([["python", "t.py"], ["torchrun", "t.py"]]),
        st.lists(word, max_size=2),
    ),
    "args": st.lists(word, min_size=1, max_size=2),
    "env": st.dictionaries(st.sampled_from("ABC"), st.sampled_from(["1", "two"]), min_size=1, max_size=2),
    "resources": st.builds(
        lambda gpu, cpu: {"cpu": cpu, "memory": "8Gi", **({"gpu": gpu} if gpu else {})},
        st.integers(0, 8),
        st.integers(1, 9),
    ),
    "volumes": st.sampled_from(
        [{"data": {"pvc": "data", "mountPath": "/data"}}, {"ckpt": {"emptyDir": {}, "mountPath": "/ckpt"}}]
    ),
    "shm": st.just("1Gi"),
    "secrets": st.just({"s3": {"env": True}}),
    "sidecars": st.just([{"name": "side", "image": "registry.example.com/side:1"}]),
    "nodeSelector": st.just({"pool": "a100"}),
    "serviceAccount": st.just("trainer"),
    "labels": st.just({"team": "nlp"}),
}
CLUSTER_OPERATORS = [{}, {"trainer": "2.1.0"}, {"trainer": "2.2.0"}]


@st.composite
def roles_of(draw, framework, kind):
    """No roles, a number of pods, or roles with or without fields of their own."""
    described = kind.frameworks[framework]
    names = [name for name in described.roles if name not in ("*", "head")]
    names += ["worker"] if not names else []
    launchers = [name for name in names if (role := kind.find_role(name)) and role.launches]
    form = draw(st.sampled_from(["none", "number", "number", "roles", "roles"]))
    if form != "roles":
        return {"replicas": draw(st.integers(1, 5))} if form == "number" and not launchers else {}
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    fields = st.fixed_dictionaries(
        {}, optional={key: container[key] for key in ("image", "env", "resources", "volumes")}
    )
    roles = {}
    for name in dict.fromkeys([*chosen, *launchers, *(["worker"] if launchers else [])]):
        role = draw(fields) if draw(st.integers(0, 3)) == 0 else {}
        if name in ("worker", "node", "ps", "server"):
            role["replicas"] = draw(st.integers(1, 4))
        if name in launchers:
            role["command"] = ["mpirun", "python", "t.py"]
        roles[name] = role
    return {"roles": roles}


@st.composite
def repositories(draw, framework, source, target):
    """A job, and overlays of environments with both platforms, and of one with the old platform only."""
    spec = {"framework": framework, "image": "registry.example.com/a:1", "command": ["python", "t.py"]}
    spec |= draw(st.fixed_dictionaries({}, optional=container)) | draw(roles_of(framework, source))
    if source.code in STARTED_ELSEWHERE or any((spec.get("roles") or {}).get(name) for name in ("launcher",)):
        spec.pop("args", None)
    operators = draw(st.sampled_from(CLUSTER_OPERATORS))
    cluster = {"platforms": [source.platform, target.platform], "operators": operators}
    patches = [
        {
            "match": {"names": ["a"]},
            "merge": draw(
                st.fixed_dictionaries({}, optional={key: container[key] for key in ("env", "image", "resources")})
            ),
        }
    ]
    patches = [patch for patch in patches if patch["merge"]]
    if "replicas" in spec and draw(st.booleans()):
        patches.append({"match": {"names": ["a"]}, "merge": {"replicas": draw(st.integers(2, 6))}})
    overlays = [
        make_overlay("dev", cluster=cluster),
        make_overlay("prod", cluster=cluster, **({"patches": patches} if patches else {})),
        make_overlay("old", cluster={"platform": source.platform, "operators": operators}),
    ]
    return make_job(**spec), overlays, operators


def migrate(folder, job, overlays, target, accepted):
    """Migrate a job; return what each environment renders before and after, or None if nothing was printed."""
    write_repository(folder, job, overlays)
    names = [each["metadata"]["name"] for each in overlays]
    before = {env: render(folder, env) for env in names}
    done = migrate_jobs(folder, ["a"], target.platform, (), None, accepted)
    if not done.out:
        assert (done.code, "not migrated: " in done.err) == (1, True)
        return None
    new, *runtimes = yaml.safe_load_all(done.out)
    files = {f"runtimes/{each['metadata']['name']}.yaml": yaml.safe_dump(each).encode() for each in runtimes}
    write_files(folder, {"jobs/a.yaml": yaml.safe_dump(new).encode(), **files})
    return {env: (before[env], render(folder, env)) for env in names}


HARMLESS = ("restarts", "operator-env")
"""Differences that leave what the pods run as it is, except for the number of processes."""


@laws(10)
@given(st.data())
def test_what_pods_run_is_the_same(data):
    framework, source, target = data.draw(st.sampled_from(PAIRS))
    job, overlays, operators = data.draw(repositories(framework, source, target))
    accepted = data.draw(st.sampled_from([(), HARMLESS]))
    with tempfile.TemporaryDirectory() as folder:
        sides = migrate(Path(folder), job, overlays, target, accepted) or {}
    is_strict = not accepted
    for env, (before, after) in sides.items():
        pods = describe_pods(before, operators, framework, is_strict=is_strict) if before else None
        # The environment without the new platform may need it first.
        if pods and (after or env != "old"):
            assert after, env
            assert describe_pods(after, operators, framework, is_strict=is_strict) == pods, env


@laws(6)
@given(st.data())
def test_every_difference_has_a_name(data):
    """What operators do differently is known, so that users can accept it."""
    framework, source, target = data.draw(st.sampled_from(PAIRS))
    job, overlays, _ = data.draw(repositories(framework, source, target))
    with tempfile.TemporaryDirectory() as folder:
        write_repository(Path(folder), job, overlays)
        done = migrate_jobs(Path(folder), ["a"], target.platform, (), None, list_names())

    assert done.out or "it cannot be rendered today" in done.err, done.err


def make_numbered_job(framework, kind):
    """A job of four pods without roles, or with a launcher."""
    spec = {"framework": framework, "image": "registry.example.com/a:1", "resources": {"cpu": 4, "gpu": 2}}
    if any((role := kind.find_role(name)) and role.launches for name in kind.frameworks[framework].roles):
        return make_job(**spec, roles={"launcher": {"command": ["mpirun", "t"]}, "worker": {"replicas": 4}})
    return make_job(**spec, command=["torchrun", "t.py"], replicas=4)


@pytest.mark.parametrize(("framework", "source", "target"), sample(PAIRS, 3, IDS))
def test_number_of_nodes_on_each_pair_of_platforms(framework, source, target):
    job = make_numbered_job(framework, source)
    done = migrate_job(job, source, target, framework, PROJECT.kinds)
    before, after = (count_nodes(each, framework) for each in (done.old, done.rendered))

    assert done.problems == ()
    assert "" not in {each.name for each in done.differences}
    # Trainer's launcher of MPI is a node, too.
    is_trainer = framework == "mpi" and "trainer" in (source.platform, target.platform)
    assert before == after or is_trainer, done.document["spec"]


def count_nodes(obj, framework):
    return sum(describe_pods([obj], {}, framework).values())


NUMBERED = make_job(
    framework="pytorch",
    image="registry.example.com/a:1.0.0",
    command=["torchrun", "train.py"],
    replicas=4,
    resources={"cpu": 8, "memory": "64Gi", "gpu": 1},
    shm="16Gi",
)


def make_cluster(trainer="2.2.0", *platforms):
    return {"platforms": ["kubeflow", "trainer", *platforms], "operators": {"trainer": trainer}}


@pytest.mark.parametrize("target", ["trainer", "jobset", "kubernetes", "volcano", "ray"])
def test_number_of_pods_without_roles_stays(target, tmp_path):
    write_repository(tmp_path, NUMBERED, [make_overlay("base", cluster=make_cluster())])
    accepted = ["--accept", "ray"] if target == "ray" else []
    done = jobgen(tmp_path, "migrate", "a", "--to", target, *accepted)
    made = next(yaml.safe_load_all(done.stdout))["spec"]

    assert done.returncode == 0, done.stderr
    assert made["replicas"] == 4
    assert "roles" not in made


def test_number_of_pods_stays_in_a_whole_repository(tmp_path):
    write_repository(tmp_path, NUMBERED, [make_overlay("base", cluster=make_cluster())])
    done = jobgen(tmp_path, "migrate", "--all", "--to", "trainer", "--write")

    assert done.returncode == 0, done.stderr
    assert yaml.safe_load((tmp_path / "jobs/a.yaml").read_text())["spec"]["replicas"] == 4
    assert render(tmp_path, "base")[0]["spec"]["trainer"]["numNodes"] == 4


def test_number_of_pods_may_be_a_variable_of_a_sweep(tmp_path):
    spec = {**NUMBERED["spec"], "matrix": {"nodes": [1, 4]}, "replicas": "${{ matrix.nodes }}"}
    write_repository(tmp_path, {**NUMBERED, "spec": spec}, [make_overlay("base", cluster=make_cluster())])
    done = jobgen(tmp_path, "migrate", "a", "--to", "trainer")

    assert done.returncode == 0, done.stderr
    assert next(yaml.safe_load_all(done.stdout))["spec"]["replicas"] == "${{ matrix.nodes }}"


@pytest.mark.parametrize("options", [[], ["--no-runtimes"], ["--all", "--write"]], ids=" ".join)
@pytest.mark.parametrize(
    ("release", "field"), [("2.1.0", "podTemplateOverrides"), ("2.2.0", "runtimePatches")], ids=["2.1", "2.2"]
)
def test_result_has_what_the_declared_release_has(release, field, options, tmp_path):
    job = {**NUMBERED, "spec": {**NUMBERED["spec"], "nodeSelector": {"pool": "a100"}}}
    write_repository(tmp_path, job, [make_overlay("base", cluster=make_cluster(release))])
    done = jobgen(tmp_path, "migrate", *([] if "--all" in options else ["a"]), "--to", "trainer", *options)
    if "--all" not in options:
        new, *runtimes = yaml.safe_load_all(done.stdout)
        files = {f"runtimes/{each['metadata']['name']}.yaml": yaml.safe_dump(each).encode() for each in runtimes}
        write_files(tmp_path, {"jobs/a.yaml": yaml.safe_dump(new).encode(), **files})

    assert done.returncode == 0, done.stderr
    assert b"error" not in done.stderr
    assert field in render(tmp_path, "base")[0]["spec"]


@pytest.mark.parametrize("release", ["2.1.0", "2.2.0"])
def test_manifest_has_what_the_declared_release_has(release, tmp_path):
    write_repository(tmp_path, NUMBERED, [make_overlay("base", cluster=make_cluster(release))])
    (tmp_path / "raw.yaml").write_bytes(jobgen(tmp_path, "render", "a", "-e", "base").stdout)
    done = jobgen(tmp_path, "migrate", "raw.yaml", "--to", "trainer")
    spec = next(yaml.safe_load_all(done.stdout))["spec"]

    assert done.returncode == 0, done.stderr
    assert (release == "2.1.0") == ("podTemplateOverrides" in spec) != ("runtimePatches" in spec)


REFUSED = ["migrate", "a", "--to", "ray"]


def test_refused_migration_prints_and_writes_nothing(tmp_path):
    write_repository(tmp_path, NUMBERED, [make_overlay("base", cluster=make_cluster())])
    before = sorted(tmp_path.rglob("*"))
    printed, written = jobgen(tmp_path, *REFUSED), jobgen(tmp_path, *REFUSED, "-o", "out")

    assert (printed.returncode, printed.stdout) == (written.returncode, written.stdout) == (1, b"")
    assert b"not migrated: it would not do the same; if you mean that, add `--accept ray`" in printed.stderr
    assert sorted(tmp_path.rglob("*")) == before
    assert jobgen(tmp_path, *REFUSED, "--accept", "ray", "-o", "out").returncode == 0
    assert (tmp_path / "out/a.yaml").exists()


def test_refused_job_keeps_others_from_being_written(tmp_path):
    write_repository(tmp_path, NUMBERED, [make_overlay("base", cluster=make_cluster())])
    other = {**NUMBERED, "metadata": {"name": "b", "namespace": "ml"}}
    other["spec"] = {**NUMBERED["spec"], "priority": "high", "runPolicy": {"ttlSecondsAfterFinished": 60}}
    write_files(tmp_path, {"jobs/b.yaml": yaml.safe_dump(other).encode()})
    done = jobgen(tmp_path, "migrate", "a", "b", "--to", "trainer", "-o", "out")
    every = jobgen(tmp_path, "migrate", "--all", "--to", "trainer", "--write")

    for each in (done, every):
        assert (each.returncode, each.stdout) == (1, b"")
        assert each.stderr.endswith(b"nothing was written\n")
        assert b"`--accept lost-fields`" in each.stderr
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "runtimes").exists()
    assert jobgen(tmp_path, "migrate", "--all", "--to", "trainer", "--write", "--accept", "lost-fields").returncode == 0


@pytest.mark.parametrize("env", ["", "dev"])
def test_patch_for_the_old_kind_is_a_difference(env, tmp_path):
    patch = {"match": {"kinds": ["PyTorchJob"]}, "merge": {"env": {"LR": "0.1"}}}
    cluster = make_cluster("2.2.0", "jobset")
    overlays = [make_overlay("dev", cluster=cluster), make_overlay("prod", cluster=cluster, patches=[patch])]
    write_repository(tmp_path, NUMBERED, overlays)
    done = jobgen(tmp_path, "migrate", "a", "--to", "jobset", *(["-e", env] if env else []))

    assert (done.returncode, done.stdout) == (1, b"")
    assert b"`prod`: all nodes: env LR: `0.1` before, nothing after [overlays]" in done.stderr
    assert jobgen(tmp_path, "migrate", "a", "--to", "jobset", "--accept", "overlays").returncode == 0


def test_job_that_cannot_be_rendered_is_not_migrated(tmp_path):
    job = {**NUMBERED, "spec": {**NUMBERED["spec"], "roles": {"master": {}, "worker": {"replicas": 1}}}}
    write_repository(tmp_path, job, [make_overlay("base", cluster=make_cluster())])
    done = jobgen(tmp_path, "migrate", "a", "--to", "jobset")

    assert (done.returncode, done.stdout) == (1, b"")
    assert b"not migrated: it cannot be rendered today: `replicas` is 4, but the roles add up to 2" in done.stderr


def test_unknown_name_of_a_difference_is_a_usage_error(tmp_path):
    write_repository(tmp_path, NUMBERED, [make_overlay("base", cluster=make_cluster())])
    done = jobgen(tmp_path, *REFUSED, "--accept", "rays")

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"`rays` is not a difference that `--accept` knows; did you mean `ray`?" in done.stderr


def test_page_lists_all_names():
    page = (ROOT / "docs/migrate.md").read_text()
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| `")]

    assert [f"`{name}`" for name in list_names()] == [row for row in rows if row.strip("`") in list_names()]


@pytest.mark.parametrize("target", ["jobset", "kubernetes", "volcano"])
def test_one_pod_starts_as_many_processes_as_before(target, tmp_path):
    """An operator sets no variables for a single pod, though torchrun starts one process for each GPU there."""
    spec = {**NUMBERED["spec"], "replicas": 1, "resources": {"cpu": 8, "gpu": 2}}
    cluster = make_cluster("2.2.0", target)
    write_repository(tmp_path, make_job(**spec), [make_overlay("base", cluster=cluster)])
    done = jobgen(tmp_path, "migrate", "a", "--to", target)

    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["spec"]["env"] == {"PET_NPROC_PER_NODE": "2"}


MPI = """\
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: a, namespace: ml}
spec:
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - {name: mpi, image: "registry.example.com/a:1", command: COMMAND}
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: mpi, image: "registry.example.com/a:1"}]}}
"""


@pytest.mark.parametrize(
    ("command", "target", "gone"),
    [
        ("[mpirun, -mca, plm_rsh_agent, /etc/mpi/kubexec.sh, t]", "mpi-operator", ["/etc/mpi/kubexec.sh"]),
        ('[bash, -c, "mpirun --hostfile /etc/mpi/hostfile t"]', "mpi-operator", []),
        ('[bash, -c, "mpirun --hostfile=/etc/mpi/hostfile t"]', "volcano", ["/etc/mpi/hostfile"]),
        ("[mpirun, t, --log=/etc/mpi/hostfile.log]", "volcano", []),
    ],
)
def test_files_of_the_operator_that_a_command_names_are_there_after(command, target, gone, tmp_path):
    write_files(tmp_path, {"a.yaml": MPI.replace("COMMAND", command).encode()})
    done = jobgen(tmp_path, "migrate", "a.yaml", "--to", target)

    found = re.findall(
        r"launcher: file `(.*)`: `mounted by the operator` before, nothing after \[launcher\]", done.stderr.decode()
    )
    assert found == gone
    assert not gone or (done.returncode, done.stdout) == (1, b"")


@pytest.mark.parametrize("target", ["kubernetes", "jobset", "volcano"])
def test_a_command_may_name_the_address_and_port_of_the_first_node(target, tmp_path):
    words = ["python", "t.py", "--init=tcp://$(MASTER_ADDR):$(MASTER_PORT)", "--rank=$(RANK)"]
    job = {**NUMBERED, "spec": {**NUMBERED["spec"], "command": words}}
    write_repository(tmp_path, job, [make_overlay("base", cluster=make_cluster("2.2.0", target))])
    done = jobgen(tmp_path, "migrate", "a", "--to", target, "--accept", "restarts", "--accept", "lost-fields")

    assert (done.returncode, b"command: " in done.stderr) == (0, False), done.stderr


def test_nodes_of_tensorflow_stay_workers(tmp_path):
    job = make_job(framework="tensorflow", image="registry.example.com/a:1", command=["python", "t.py"], replicas=4)
    write_repository(tmp_path, job, [make_overlay("base", cluster={"platforms": ["jobset", "kubeflow"]})])
    done = jobgen(tmp_path, "migrate", "a", "--to", "kubeflow")

    assert (done.returncode, done.stdout != b"") == (0, True), done.stderr
    assert yaml.safe_load(done.stdout)["spec"]["replicas"] == 4


def test_pods_of_a_runtime_are_not_one_pod(tmp_path):
    """The master runs as the nodes of the TrainJob, and the workers as another job of the runtime: no error there."""
    roles = {"master": {}, "worker": {"replicas": 3, "env": {"A": "1"}}}
    spec = {key: value for key, value in NUMBERED["spec"].items() if key != "replicas"}
    write_repository(tmp_path, make_job(**spec, roles=roles), [make_overlay("base", cluster=make_cluster())])
    done = jobgen(tmp_path, "migrate", "a", "--to", "trainer")

    assert done.returncode == 0, done.stderr
    assert b"error" not in done.stderr


def test_variables_of_a_secret_that_are_lost_have_a_name(tmp_path):
    spec = {**NUMBERED["spec"], "framework": "xgboost", "secrets": {"s3": {"env": True}}}
    write_repository(tmp_path, make_job(**spec), [make_overlay("base", cluster=make_cluster())])
    done = jobgen(tmp_path, "migrate", "a", "--to", "trainer")

    assert (done.returncode, done.stdout) == (1, b"")
    assert b"envFrom: `[{'secretRef': {'name': 's3'}}]` before, nothing after [lost-fields]" in done.stderr


def test_environment_of_a_third_platform_is_compared(tmp_path):
    """One spec serves two platforms; a migration for one of them must not change the other."""
    overlays = [make_overlay("dev", cluster=make_cluster()), make_overlay("ts", cluster={"platform": "tensorstack"})]
    write_repository(tmp_path, NUMBERED, overlays)
    done = jobgen(tmp_path, "migrate", "a", "--to", "trainer")

    assert (done.returncode, done.stdout) == (1, b"")
    assert b"jobs/a.yaml:1: `ts`: " in done.stderr
    assert b"[overlays]" in done.stderr


def test_environment_that_lacks_the_platform_is_named_and_renders_what_the_others_do(tmp_path):
    """The job asks for its platform, so `dev` cannot render the new command with the old operator."""
    job = make_job(**{**NUMBERED["spec"], "command": ["torchrun", "t.py", "--name=$(A)"], "env": {"A": "1"}})
    overlays = [
        make_overlay("dev", cluster={"platform": "kubeflow"}),
        make_overlay("prod", cluster={"platform": "ray"}),
    ]
    write_repository(tmp_path, job, overlays)
    refused = jobgen(tmp_path, "migrate", "a", "--to", "ray")
    done = jobgen(tmp_path, "migrate", "a", "--to", "ray", "--accept", "ray")
    needed = b"`dev` needs the platform `ray`: write `platforms: [kubeflow, ray]` in overlays/dev/overlay.yaml:7\n"

    assert (refused.returncode, refused.stdout) == (1, b"")
    assert done.returncode == 0, done.stderr
    assert needed in done.stderr
    assert yaml.safe_load(done.stdout)["spec"]["platform"] == "ray"
    (tmp_path / "jobs/a.yaml").write_bytes(done.stdout)
    before, after = (jobgen(tmp_path, "render", "a", "-e", env).stdout for env in ("dev", "prod"))
    assert b"kind: RayJob" in before
    assert before == after


@pytest.mark.parametrize(("policy", "limit"), [(None, 0), ("Never", 0), ("OnFailure", None)])
def test_a_launcher_that_becomes_a_job_is_retried_as_before(policy, limit, tmp_path):
    """mpi-operator runs the launcher as a Job, which retries six times unless it is told a number."""
    launcher = {"command": ["mpirun", "python", "t.py"], **({"restartPolicy": policy} if policy else {})}
    spec = {"framework": "mpi", "image": "registry.example.com/a:1.0.0", "roles": {"launcher": launcher, "worker": {}}}
    cluster = {"platforms": ["kubeflow", "mpi-operator"]}
    write_repository(tmp_path, make_job(**spec), [make_overlay("prod", cluster=cluster)])
    done = jobgen(tmp_path, "migrate", "a", "--to", "mpi-operator")

    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["spec"].get("runPolicy", {}).get("backoffLimit") == limit


def test_platform_is_written_for_the_environment_that_has_both(tmp_path):
    """The first environment has the old platform alone, and the second one prefers it."""
    overlays = [make_overlay("dev", cluster={"platform": "kubeflow"}), make_overlay("prod", cluster=make_cluster())]
    write_repository(tmp_path, NUMBERED, overlays)
    done = jobgen(tmp_path, "migrate", "a", "--to", "trainer")

    assert done.returncode == 0, done.stderr
    assert next(yaml.safe_load_all(done.stdout))["spec"]["platform"] == "trainer"


def test_every_refused_job_of_a_repository_is_named(tmp_path):
    write_repository(tmp_path, NUMBERED, [make_overlay("base", cluster=make_cluster())])
    for name in ("b", "c"):
        spec = {**NUMBERED["spec"], "runPolicy": {"ttlSecondsAfterFinished": 60}}
        other = {**NUMBERED, "metadata": {"name": name, "namespace": "ml"}, "spec": spec}
        write_files(tmp_path, {f"jobs/{name}.yaml": yaml.safe_dump(other).encode()})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.yaml")}
    refused = jobgen(tmp_path, "migrate", "--all", "--to", "trainer", "--write")

    assert (refused.returncode, refused.stdout) == (1, b"")
    for name in ("b", "c"):
        reason = (
            f"jobs/{name}.yaml:1: not migrated: it would not do the same; if you mean that, add `--accept lost-fields`"
        )
        assert reason in refused.stderr.decode()
    assert "jobs/a.yaml:1: not migrated" not in refused.stderr.decode()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.yaml")} == before


@pytest.mark.parametrize("options", [["a", "-o", "out"], ["--all", "--write"], ["--all", "-o", "out"]], ids=" ".join)
def test_every_written_file_is_listed(options, tmp_path):
    write_repository(tmp_path, NUMBERED, [make_overlay("base", cluster=make_cluster())])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = jobgen(tmp_path, "migrate", *options, "--to", "trainer")
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    changed = {str(path.relative_to(tmp_path)) for path, text in files.items() if before.get(path) != text}
    lines = [line.removesuffix(" written") for line in done.stderr.decode().splitlines() if line.endswith(" written")]

    assert done.returncode == 0, done.stderr
    assert changed
    assert {*changed, f"{len(changed)} files"} == set(lines)


@st.composite
def whole_repositories(draw):
    """Jobs of several kinds, one of them a sweep, and overlays that differ, with patches for one kind and for all."""
    trainable = st.fixed_dictionaries({}, optional=container)
    pytorch, tensorflow = (
        {kind.platform: kind for kind in KINDS if name in kind.frameworks}["kubeflow"]
        for name in ("pytorch", "tensorflow")
    )
    jobs = {}
    for name, framework, kind in (
        ("a", "pytorch", pytorch),
        ("b", "pytorch", pytorch),
        ("c", "tensorflow", tensorflow),
    ):
        spec = {"framework": framework, "image": "registry.example.com/a:1", "command": ["torchrun", "t.py"]}
        spec |= draw(trainable) | draw(roles_of(framework, kind))
        if name == "b" and draw(st.booleans()):
            spec |= {"matrix": {"lr": ["1", "2"]}, "env": {"A": "${{ matrix.lr }}"}}
        jobs[name] = {**make_job(**spec), "metadata": {"name": name, "namespace": "ml"}}
    jobs["d"] = {
        **make_job(**{**jobs["c"]["spec"], "framework": "xgboost"}),
        "metadata": {"name": "d", "namespace": "ml"},
    }
    jobs["d"]["spec"].pop("roles", None)
    overlays = []
    for name in ("dev", "prod"):
        cluster = {"platforms": draw(st.sampled_from([["kubeflow"], ["kubeflow", "jobset"], ["kubeflow", "trainer"]]))}
        cluster["operators"] = draw(st.sampled_from(CLUSTER_OPERATORS))
        fields = st.fixed_dictionaries(
            {}, optional={key: container[key] for key in ("env", "image", "nodeSelector", "secrets")}
        )
        match = draw(st.sampled_from([{}, {"kinds": ["PyTorchJob"]}, {"names": ["c"]}]))
        merge = draw(fields)
        patches = {"patches": [{"match": match, "merge": merge}]} if merge else {}
        overlays.append(make_overlay(name, cluster=cluster, **patches))
    return jobs, overlays


@laws(4)
@given(whole_repositories())
def test_other_jobs_of_a_repository_stay_the_same_bytes(repository):
    """`--all` writes overlays: no object of another job changes in any environment, and migrated pods stay the same."""
    jobs, overlays = repository
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_repository(folder, jobs["a"], overlays)
        write_files(
            folder, {f"jobs/{key}.yaml": yaml.safe_dump(job, sort_keys=False).encode() for key, job in jobs.items()}
        )
        old = render_by_name(folder)
        files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        done = migrate_all(folder, "trainer", None, HARMLESS, write=True, force=False)
        new = render_by_name(folder)
        is_same = files == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    assert is_same == (re.search(r"^\S+ written$", done.err, re.MULTILINE) is None)
    assert done.code == 0 or not is_same or "nothing was written" in done.err
    for (env, key), objects in old.items():
        if objects[0]["kind"] != "PyTorchJob" or new[env, key][0]["kind"] == "PyTorchJob":
            assert new[env, key][0] == objects[0]
        else:
            operators = next(
                each["spec"]["cluster"]["operators"] for each in overlays if each["metadata"]["name"] == env
            )
            pods = [describe_pods(each, operators, "pytorch") for each in (objects, new[env, key])]
            assert pods[0] == pods[1]
    assert new.keys() == old.keys()


def render_by_name(folder):
    """Return the objects of each job in each environment, first that of the job, then all runtimes there."""
    found, runtimes = {}, {}
    for each in api.render(api.load(str(folder))).objects:
        made = json.loads(json.dumps(each.manifest))
        is_runtime = made["kind"] == "TrainingRuntime"
        place = runtimes if is_runtime else found
        place.setdefault((each.environment, "" if is_runtime else made["metadata"]["name"]), []).append(made)
    return {key: [*objects, *runtimes.get((key[0], ""), ())] for key, objects in found.items()}
