"""Settings for Argo CD and Flux: a case is a status as an operator writes it, and the health of its job."""

import json
import shutil
import subprocess
from functools import cache
from itertools import product
from pathlib import Path

import kubectl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from lupa.lua51 import LuaRuntime  # Argo CD runs Lua 5.1

from jobgen.check.cel import Failed, compile_cel
from jobgen.cli.result import ExitCode
from jobgen.features.gitops.commands.gitops import argocd, flux
from jobgen.features.gitops.documents import GENERATE_PATHS
from jobgen.features.gitops.engine_kinds import list_engine_kinds
from jobgen.rendering import config
from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
CUSTOM = "resource.customizations"
REPO = "https://git.example.com/jobs.git"
IN_FLUX = {"Healthy": "Current", "Degraded": "Failed", "Progressing": "InProgress", "Suspended": "InProgress"}


def documents(text):
    source = read(text.encode(), "printed.yaml")

    assert source.findings == ()
    return [document.data for document in source.documents]


def written():
    """Every case of every kind, as the object that a cluster would hold."""
    for path in sorted((Path(__file__).parent / "gitops").glob("*.yaml")):
        (kind,) = documents(path.read_text())
        for name, case in product((kind["kind"], *kind.get("also", ())), kind["cases"]):
            made = {"apiVersion": kind["apiVersion"], "kind": name, "metadata": {"name": "job"}, "spec": {}}
            made |= {key: case[key] for key in ("spec", "status") if key in case}
            yield pytest.param(made, case["health"], case["message"], id=f"{path.stem}: {name}: {case['name']}")


CASES = list(written())
ENGINE_KINDS = list_engine_kinds(config.load_own(ROOT).kinds)


@cache
def scripts():
    """The settings of Argo CD with the scripts in Lua."""
    (made,) = documents(argocd(ROOT, (), "health", REPO, "main").out)
    return made["data"]


@cache
def checks():
    """The expressions of Flux, by kind."""
    (made,) = documents(flux(ROOT, ("dev",), "jobs", "").out)
    return {(check["apiVersion"].split("/")[0], check["kind"]): check for check in made["spec"]["healthCheckExprs"]}


def one_of_each_check():
    """One kind for each check: most kinds of a group share their conditions, and so their checks."""
    return {json.dumps(check | {"kind": ""}): identity for identity, check in checks().items()}.values()


@cache
def lua():
    """A Lua as bare as that of Argo CD: it has no libraries but the basic one and `table`."""
    runtime = LuaRuntime(register_eval=False, register_builtins=False)
    runtime.execute('getmetatable("").__index = nil')
    for name in ("string", "math", "io", "os", "debug", "python", "coroutine"):
        runtime.globals()[name] = None
    return runtime


@cache
def compiled(text):
    return lua().compile(text)


def as_lua(value):
    """Data as Argo CD hands it over: what is null in a list is passed over."""
    if isinstance(value, dict):
        return lua().table_from({key: as_lua(child) for key, child in value.items()})
    if isinstance(value, list):
        return lua().table_from([as_lua(child) for child in value if child is not None])
    return value


def health_by_argocd(made, key):
    lua().globals()["obj"] = as_lua(made)
    found = dict(compiled(scripts()[f"{CUSTOM}.health.{key}"])())

    assert found.keys() == {"status", "message"}
    assert found["status"] in IN_FLUX
    assert isinstance(found["message"], str)
    assert found["message"]
    return found["status"], found["message"]


def health_by_flux(made, group, kind):
    """Evaluate as fluxcd/pkg runtime/cel does; an expression that fails keeps Flux waiting."""
    for verdict in ("inProgress", "failed", "current"):
        if verdict not in checks()[group, kind]:
            continue
        expression = compile_cel(checks()[group, kind][verdict], ("metadata", "spec", "status"))
        answer = expression({key: made[key] for key in ("metadata", "spec", "status") if key in made})
        if isinstance(answer, Failed):
            return "InProgress"
        if answer:
            return verdict[0].upper() + verdict[1:]
    return "InProgress"


@pytest.mark.parametrize(("made", "health", "message"), CASES)
def test_job_health_in_argocd_and_flux(made, health, message):
    group, kind = made["apiVersion"].split("/")[0], made["kind"]

    assert health_by_argocd(made, f"{group}_{kind}") == (health, message)
    assert health_by_flux(made, group, kind) == IN_FLUX[health]


def test_every_kind_has_cases_of_every_health():
    seen = {}
    for case in CASES:
        made, health, _ = case.values
        seen.setdefault((made["apiVersion"], made["kind"]), set()).add(health)
    described = {(str(kind.api_version), kind.name) for kind in config.load_own(ROOT).kinds if kind.roles}
    others = {(kind.api_version, kind.name): kind for kind in ENGINE_KINDS if kind.workload and kind.has_health}
    builtin = {(kind.api_version, kind.name) for kind in ENGINE_KINDS if kind.workload and not kind.has_health}
    wanted = {job: set(IN_FLUX) for job in described if job not in builtin}
    for job, kind in others.items():
        rules = kind.workload.rules
        missing = {"Degraded"} if rules and not rules.failed else set()
        wanted[job] = set(IN_FLUX) - missing - (set() if kind.suspend_path else {"Suspended"})

    assert seen == wanted
    assert not {"batch_Job", "batch_CronJob"} & {key.rpartition(".health.")[2] for key in scripts()}


KEYS = st.sampled_from(
    "conditions phase type status message reason lastTransitionTime suspend enabled state jobStatus".split()
)
WORDS = st.sampled_from("True False Failed Succeeded Complete Completed Suspended Paused Running Created".split())
RAY_WORDS = st.sampled_from("Complete SUCCEEDED STOPPED Failed Suspended Running ValidationFailed".split())
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | WORDS | st.text(max_size=3)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=2), inner, max_size=4),
    max_leaves=12,
)
CONDITION = st.fixed_dictionaries({"type": ANYTHING, "status": ANYTHING, "lastTransitionTime": ANYTHING})
STATUS = ANYTHING | st.fixed_dictionaries({"conditions": st.lists(CONDITION, max_size=4), "phase": ANYTHING})


@given(spec=ANYTHING | st.fixed_dictionaries({"runPolicy": ANYTHING, "runMode": ANYTHING}), status=STATUS)
def test_any_status_has_an_argocd_health(spec, status):
    for kind in one_of_each_check():
        health, message = health_by_argocd({"spec": spec, "status": status}, "_".join(kind))

        assert health in IN_FLUX
        assert message


TURNED = st.fixed_dictionaries(
    {
        "type": WORDS
        | st.sampled_from("Restarting Initialized ReplicaFailure Pondering Ready Available".split())
        | st.sampled_from("RayClusterProvisioned RayClusterSuspended".split()),
        "status": st.sampled_from(["True", "True", "False", "Unknown"]),
    },
    optional={
        "lastTransitionTime": st.integers(1, 4).map("2026-03-02T08:00:0{}Z".format),
        "reason": st.sampled_from(["ValidationFailed", "InitializingTimeout", "Initializing"]),
    },
)
PROPER = st.fixed_dictionaries(
    {},
    optional={
        "conditions": st.lists(TURNED, max_size=5),
        "phase": WORDS,
        "jobsStatus": st.just([]),
        "state": st.fixed_dictionaries({}, optional={"phase": WORDS}),
        "jobStatus": RAY_WORDS | st.just(""),
        "jobDeploymentStatus": RAY_WORDS,
    },
)


@given(spec=st.sampled_from([{}, {"suspend": True}, {"runPolicy": {"suspend": True}}]), status=PROPER)
def test_argocd_and_flux_agree_on_valid_statuses(spec, status):
    made = {"metadata": {}, "spec": spec, "status": status}
    for group, kind in one_of_each_check():
        health, _ = health_by_argocd(made, f"{group}_{kind}")

        assert health_by_flux(made, group, kind) == IN_FLUX[health], (group, kind)


def test_one_health_check_serves_all_versions_of_a_kind():
    names = [key for key in scripts() if key.endswith("kubeflow.org_MPIJob")]

    assert names == [f"{CUSTOM}.health.kubeflow.org_MPIJob"]
    assert [kind for kind in checks() if kind[1] == "MPIJob"] == [
        ("batch.tensorstack.dev", "MPIJob"),
        ("kubeflow.org", "MPIJob"),
    ]


PRINTED = {
    "argocd": lambda: argocd(ROOT, (), None, REPO, "main"),
    **{
        f"argocd --only {part}": lambda part=part: argocd(ROOT, (), part, REPO, "main")
        for part in ("health", "differences", "types", "appset")
    },
    "flux": lambda: flux(ROOT, (), "jobs", ""),
    "flux --wait": lambda: flux(ROOT, (), "jobs", "72h"),
}


def test_kubectl_reads_the_printed_settings():
    results = [run() for run in PRINTED.values()]
    readings = kubectl.read([result.out.encode() for result in results])

    assert {result.code for result in results} == {ExitCode.OK}
    for result, reading in zip(results, readings, strict=True):
        assert not reading.refused
        assert reading.objects == documents(result.out)


@pytest.mark.parametrize("name", PRINTED)
def test_printed_settings_are_deterministic(name):
    assert PRINTED[name]() == PRINTED[name]()


def test_printed_parts_make_up_the_whole():
    config, _ = documents(PRINTED["argocd"]().out)
    parts = [documents(PRINTED[f"argocd --only {part}"]().out)[0] for part in ("health", "differences", "types")]

    assert config["data"] == parts[0]["data"] | parts[1]["data"] | parts[2]["data"]
    assert all(parts[0] | {"data": {}} == part | {"data": {}} for part in parts)


@cache
def ignored(kind):
    (made,) = documents(PRINTED["argocd --only differences"]().out)
    (found,) = documents(made["data"].get(f"{CUSTOM}.ignoreDifferences.{kind}", "{}"))
    return found.get("jqPathExpressions", [])


def compared(made, kind):
    """What Argo CD compares of an object."""
    query = " | ".join(f"del({path})" for path in ignored(kind))
    done = subprocess.run(["jq", query], input=json.dumps(made), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def job(labels, **spec):
    return {"metadata": {"labels": labels}, "spec": spec}


def pytorch(pod, **policy):
    replica = {"replicas": 1, "template": {"spec": {"containers": [{"name": "pytorch"}], **pod}}}
    return {"runPolicy": {"backoffLimit": 3, **policy}, "pytorchReplicaSpecs": {"Master": replica, "Worker": replica}}


def jobs_with(pod, **more):
    return {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": {"spec": pod}}}}], **more}


def workers(pod, **more):
    return {"workerGroupSpecs": [{"groupName": "a", "template": {"spec": pod}}], **more}


NODES, MORE_NODES = {"nodeSelector": {"a": "b"}}, {"nodeSelector": {"a": "b", "pool": "a100"}, "tolerations": []}
QUEUED = {"kueue.x-k8s.io/queue-name": "team-a"}
HELD = [
    (
        "batch_Job",
        {"suspend": True, "template": {"spec": NODES}},
        {"suspend": False, "template": {"spec": MORE_NODES}},
    ),
    ("jobset.x-k8s.io_JobSet", jobs_with(NODES, suspend=True), jobs_with(MORE_NODES, suspend=False)),
    ("ray.io_RayCluster", workers(NODES, suspend=True), workers(MORE_NODES, suspend=False)),
    (
        "ray.io_RayJob",
        {"suspend": True, "rayClusterSpec": workers(NODES)},
        {"suspend": False, "rayClusterSpec": workers(MORE_NODES)},
    ),
    ("ray.io_RayService", {"rayClusterConfig": workers(NODES)}, {"rayClusterConfig": workers(MORE_NODES)}),
    (
        "workload.codeflare.dev_AppWrapper",
        {"suspend": True, "components": [{"template": {}}]},
        {"suspend": False, "components": [{"template": {}, "podSetInfos": [{"count": 1}]}]},
    ),
    (
        "kubeflow.org_PyTorchJob",
        pytorch({"tolerations": [{"key": "gpu"}]}, suspend=True),
        pytorch({"tolerations": [{"key": "gpu"}, {"key": "spot"}], "nodeSelector": {"pool": "a100"}}, suspend=False),
    ),
    (
        "trainer.kubeflow.org_TrainJob",
        {"suspend": True, "runtimePatches": [{"manager": "jobgen.dev/jobgen"}]},
        {"suspend": False, "runtimePatches": [{"manager": "jobgen.dev/jobgen"}, {"manager": "kueue.x-k8s.io/manager"}]},
    ),
]


@pytest.mark.skipif(not shutil.which("jq"), reason="asks jq")
@pytest.mark.parametrize(("kind", "written", "held"), HELD)
def test_fields_written_by_a_queue_are_ignored_for_queued_jobs_only(kind, written, held):
    assert compared(job(QUEUED, **written), kind) == compared(job(QUEUED, **held), kind)
    assert compared(job({}, **written), kind) != compared(job({}, **held), kind)
    assert compared(job(None, **written), kind) == job(None, **written)


def group(**fields):
    return {"workerGroupSpecs": [{"groupName": "a", **fields}]}


RAY_DEFAULTS = {"replicas": 0, "minReplicas": 0, "maxReplicas": 2147483647, "numOfHosts": 1}
# In Git, in the cluster, and whether that is a difference.
WRITTEN = [
    ("batch.volcano.sh_Job", {"tasks": [{"replicas": 1}]}, {"tasks": [{"replicas": 1, "name": "default0"}]}, False),
    ("batch.volcano.sh_Job", {"tasks": [{"name": "a"}]}, {"tasks": [{"name": "a", "maxRetry": 3}]}, False),
    ("batch.volcano.sh_Job", {"tasks": [{"maxRetry": 5}]}, {"tasks": [{"maxRetry": 3}]}, True),
    ("batch.volcano.sh_Job", {"tasks": [{"replicas": 1}]}, {"tasks": [{"replicas": 2}]}, True),
    (
        "jobset.x-k8s.io_JobSet",
        jobs_with({}),
        {
            "replicatedJobs": [
                {
                    "name": "a",
                    "replicas": 1,
                    "groupName": "default",
                    "template": {
                        "spec": {"completionMode": "Indexed", "template": {"spec": {"restartPolicy": "OnFailure"}}}
                    },
                }
            ]
        },
        False,
    ),
    ("jobset.x-k8s.io_JobSet", jobs_with({"restartPolicy": "Never"}), jobs_with({"restartPolicy": "OnFailure"}), True),
    ("ray.io_RayCluster", group(), group(**RAY_DEFAULTS), False),
    ("ray.io_RayCluster", group(replicas=1), group(replicas=2), True),
    (
        "ray.io_RayCluster",
        {"enableInTreeAutoscaling": True, **group(replicas=1)},
        {"enableInTreeAutoscaling": True, **group(replicas=2, scaleStrategy={"workersToDelete": ["a"]})},
        False,
    ),
    ("ray.io_RayJob", {"rayClusterSpec": group()}, {"rayClusterSpec": group(**RAY_DEFAULTS)}, False),
    ("ray.io_RayService", {"rayClusterConfig": group()}, {"rayClusterConfig": group(**RAY_DEFAULTS)}, False),
]


@pytest.mark.skipif(not shutil.which("jq"), reason="asks jq")
@pytest.mark.parametrize(("kind", "written", "held", "differs"), WRITTEN)
def test_values_that_the_server_fills_in_are_no_difference(kind, written, held, differs):
    assert (compared(job({}, **written), kind) != compared(job({}, **held), kind)) is differs


@pytest.mark.skipif(not shutil.which("jq"), reason="asks jq")
def test_ignored_paths_are_valid_jq():
    for kind in ENGINE_KINDS:
        made = [job({}), job(QUEUED)]
        has_defaults = kind.workload is not None and bool(kind.workload.filled_in)

        assert bool(ignored(kind.key)) == (kind.is_queued or has_defaults)
        assert not ignored(kind.key) or [compared(each, kind.key) for each in made] == made


def test_pod_fields_have_known_kubernetes_types():
    (made,) = documents(PRINTED["argocd --only types"]().out)
    fields = {
        key.removeprefix(f"{CUSTOM}.knownTypeFields."): {item["field"]: item["type"] for item in yaml.safe_load(text)}
        for key, text in made["data"].items()
    }

    without = {"batch_Job", "batch_CronJob", "batch.tensorstack.dev_BeamJob", "workload.codeflare.dev_AppWrapper"}
    assert fields.keys() == {kind.key for kind in ENGINE_KINDS} - without
    assert fields["jobset.x-k8s.io_JobSet"] == {"spec.replicatedJobs.template.spec.template.spec": "core/v1/PodSpec"}
    assert fields["ray.io_RayJob"] == {
        "spec.rayClusterSpec.headGroupSpec.template.spec": "core/v1/PodSpec",
        "spec.rayClusterSpec.workerGroupSpecs.template.spec": "core/v1/PodSpec",
        "spec.submitterPodTemplate.spec": "core/v1/PodSpec",
    }
    assert fields["kubeflow.org_MPIJob"] == {
        "spec.mpiReplicaSpecs.Launcher.template.spec": "core/v1/PodSpec",
        "spec.mpiReplicaSpecs.Worker.template.spec": "core/v1/PodSpec",
    }
    assert fields["batch.tensorstack.dev_PyTorchTrainingJob"] == {"spec.replicaSpecs.template.spec": "core/v1/PodSpec"}
    assert fields["trainer.kubeflow.org_TrainJob"] == {
        "spec.trainer.env": "core/v1/EnvVar",
        "spec.trainer.resourcesPerNode": "core/v1/ResourceRequirements",
    }


def test_applications_use_the_rendered_tree_and_never_restart_jobs():
    (made,) = documents(argocd(ROOT, ("dev", "prod"), "appset", "https://git/x.git", "v1").out)
    spec = made["spec"]
    sync = spec["template"]["spec"]["syncPolicy"]

    assert spec["generators"] == [
        {
            "git": {
                "repoURL": "https://git/x.git",
                "revision": "v1",
                "directories": [{"path": "rendered/dev/*"}, {"path": "rendered/prod/*"}],
            }
        }
    ]
    assert spec["template"]["spec"]["source"]["targetRevision"] == "v1"
    assert sync["automated"]["selfHeal"] is False
    options = ["ApplyOutOfSyncOnly", "PruneLast", "RespectIgnoreDifferences", "ServerSideApply"]
    assert sync["syncOptions"] == [f"{option}=true" for option in options]


def test_plugin_application_watches_all_its_sources():
    (made,) = documents(argocd(ROOT, ("prod",), "paths", REPO, "main").out)
    paths = "/jobgen.yaml;/jobs;/overlays/base;/overlays/prod;/policies;/schemas"

    assert made == {"metadata": {"annotations": {GENERATE_PATHS: paths}}}
    assert f"{GENERATE_PATHS}: {paths}\n" in argocd(ROOT, ("prod",), None, REPO, "main").out


def test_paths_are_relative_to_the_git_root(tmp_path):
    root = tmp_path / "teams" / "vision"
    (root / "jobs").mkdir(parents=True)
    (root / "jobgen.yaml").write_text("{}\n")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (applications,) = documents(argocd(root, (), "appset", REPO, "main").out)
    (paths,) = documents(argocd(root, (), "paths", REPO, "main").out)
    (kustomization,) = documents(flux(root, (), "jobs", "").out)

    assert applications["spec"]["generators"][0]["git"]["directories"] == [{"path": "teams/vision/rendered/*"}]
    assert applications["spec"]["template"]["metadata"]["name"] == "jobs-{{ .path.basenameNormalized }}"
    assert paths["metadata"]["annotations"][GENERATE_PATHS].startswith("/teams/vision/jobgen.yaml;/teams/vision/jobs;")
    assert kustomization["spec"]["path"] == "./teams/vision/rendered"
    assert kustomization["metadata"]["name"] == "jobs"


def test_flux_waits_only_on_request():
    brief, patient = (documents(PRINTED[name]().out)[0]["spec"] for name in ("flux", "flux --wait"))

    assert (brief["wait"], brief["timeout"]) == (False, "5m")
    assert (patient["wait"], patient["timeout"]) == (True, "72h")
    assert brief | {"wait": True, "timeout": "72h"} == patient
    assert "postBuild" not in brief
    assert brief["path"] == "./rendered/dev"


def test_flux_ignores_fields_written_by_a_queue():
    rules = {rule["target"]["kind"]: rule for rule in documents(PRINTED["flux"]().out)[0]["spec"]["ignore"]}

    assert rules["TrainJob"]["paths"] == ["/spec/suspend", "/spec/podSpecOverrides", "/spec/podTemplateOverrides"]
    assert "/spec/pytorchReplicaSpecs/Worker/template/spec/tolerations" in rules["PyTorchJob"]["paths"]
    assert {rule["target"]["labelSelector"] for rule in rules.values()} == {"kueue.x-k8s.io/queue-name"}
    assert not [kind for kind in rules if kind.endswith("TrainingJob")]
    assert rules["Job"]["target"]["group"] == "batch"
    assert rules["JobSet"]["paths"] == rules["AppWrapper"]["paths"] == ["/spec/suspend"]
    assert "/spec/headGroupSpec/template/spec/nodeSelector" in rules["RayCluster"]["paths"]
    assert not {"LeaderWorkerSet", "GenericJob", "CronJob"} & rules.keys()


@pytest.mark.parametrize(
    ("result", "code", "told"),
    [
        (lambda: flux(ROOT, (), "jobs", "three days"), ExitCode.USAGE, "`three days` is not a duration"),
        (lambda: flux(ROOT, ("prdo",), "jobs", ""), ExitCode.USAGE, "there is no environment `prdo`"),
        (lambda: argocd(ROOT, ("prdo",), None, REPO, "main"), ExitCode.USAGE, "there is no environment `prdo`"),
    ],
)
def test_usage_error_prints_nothing(result, code, told):
    found = result()

    assert (found.code, found.out) == (code, "")
    assert told in found.err


def test_broken_kind_prints_nothing(tmp_path):
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    broken = tmp_path / "schemas" / "example.com" / "job_v1.yaml"
    broken.parent.mkdir(parents=True)
    broken.write_text("apiVersion: example.com/v1\nkind: Job\n")
    found = argocd(tmp_path, (), None, REPO, "main")

    assert (found.code, found.out) == (ExitCode.ERRORS, "")
    assert "schemas/example.com/job_v1.yaml" in found.err
