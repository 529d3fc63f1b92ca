"""Kind descriptions match their operators, and every kind can be rendered from its description alone."""

from itertools import product
from pathlib import Path

import pytest
import yaml

from jobgen.rendering import config
from jobgen.rendering.render_task import render_jobs
from jobgen.spec.kinds import parse_kinds
from jobgen.spec.replicas import count_pods, find_template, get_at

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "schemas").glob("*/*.yaml"))
ALL = {path.stem: yaml.load(path.read_text("utf-8"), yaml.CSafeLoader) for path in FILES}
DESCRIBED = {name: kind for name, kind in ALL.items() if "frameworks" in kind}
FRAMEWORKS = sorted({name for kind in DESCRIBED.values() for name in kind["frameworks"]})
PLATFORMS = ["kubeflow", "mpi-operator", "trainer", "tensorstack", "kubernetes", "jobset", "ray", "volcano"]

# As the operators' sources have it: group and kind, where replicas are, roles, container, port, restart policy.
FACTS = """
pytorchjob_v1                 kubeflow.org/v1  PyTorchJob spec.pytorchReplicaSpecs Master,Worker pytorch pytorchjob-port:23456 OnFailure
tfjob_v1                      kubeflow.org/v1  TFJob spec.tfReplicaSpecs Chief,Master,PS,Worker,Evaluator tensorflow tfjob-port:2222 Never
mpijob_v1                     kubeflow.org/v1  MPIJob spec.mpiReplicaSpecs Launcher,Worker {job} - Never
xgboostjob_v1                 kubeflow.org/v1  XGBoostJob spec.xgbReplicaSpecs Master,Worker xgboost xgboostjob-port:9999 Never
paddlejob_v1                  kubeflow.org/v1  PaddleJob spec.paddleReplicaSpecs Master,Worker paddle master:36543 OnFailure
jaxjob_v1                     kubeflow.org/v1  JAXJob spec.jaxReplicaSpecs Worker jax jaxjob-port:6666 Never
mxjob_v1                      kubeflow.org/v1  MXJob spec.mxReplicaSpecs Scheduler,Server,Worker,TunerTracker,TunerServer,Tuner mxnet mxjob-port:9091 Never
mpijob_v2beta1                kubeflow.org/v2beta1 MPIJob spec.mpiReplicaSpecs Launcher,Worker {job} - -
trainjob_v1alpha1             trainer.kubeflow.org/v1alpha1 TrainJob spec.trainer.numNodes node,master,worker,launcher node - -
tensorflowtrainingjob_v1beta1 batch.tensorstack.dev/v1beta1 TensorFlowTrainingJob spec.replicaSpecs chief,ps,worker,evaluator tensorflow - -
pytorchtrainingjob_v1beta1    batch.tensorstack.dev/v1beta1 PyTorchTrainingJob spec.replicaSpecs master,worker pytorch - -
job_v1                        batch/v1 Job spec node,node,node,node main - -
jobset_v1alpha2               jobset.x-k8s.io/v1alpha2 JobSet spec.replicatedJobs master,chief,node,worker,ps,evaluator,* main - OnFailure
job_v1alpha1                  batch.volcano.sh/v1alpha1 Job spec.tasks master,master,chief,ps,worker,evaluator,* main - Always
rayjob_v1                     ray.io/v1 RayJob spec.rayClusterSpec.workerGroupSpecs head,worker,master,chief,node,* ray-worker - -
genericjob_v1beta1            batch.tensorstack.dev/v1beta1 GenericJob spec.replicaSpecs master,worker,* main - OnFailure
deepspeedjob_v1beta1          batch.tensorstack.dev/v1beta1 DeepSpeedJob spec.worker worker worker - OnFailure
colossalaijob_v1beta1         batch.tensorstack.dev/v1beta1 ColossalAIJob spec.replicaSpecs launcher,worker worker - OnFailure
mpijob_v1beta1                batch.tensorstack.dev/v1beta1 MPIJob spec.replicaSpecs launcher,worker worker - OnFailure
xgboosttrainingjob_v1beta1    batch.tensorstack.dev/v1beta1 XGBoostTrainingJob spec.replicaSpecs master,worker xgboost - OnFailure
"""  # noqa: E501
# First version that serves the kind, the one that deprecates it and the one that no longer has it.
VERSIONS = {
    "jaxjob_v1": {"since": "1.9.0"},
    "jobset_v1alpha2": {"since": "0.2.0"},
    "mpijob_v1": {"since": "1.4.0"},
    "mpijob_v2beta1": {"since": "0.3.0"},
    "mxjob_v1": {"since": "1.3.0", "deprecated": "1.8.0", "removed": "1.9.0"},
    "paddlejob_v1": {"since": "1.6.0"},
    "pytorchjob_v1": {"since": "1.3.0"},
    "tfjob_v1": {"since": "1.3.0"},
    "trainjob_v1alpha1": {"since": "2.0.0"},
    "xgboostjob_v1": {"since": "1.3.0"},
}
# The longest name of a job whose longest role, or the one named, has up to 10, 100, 1000 and 10000 replicas.
NAME_BUDGETS = {
    ("pytorchjob_v1", "worker"): (54, 53, 52, 51),
    ("paddlejob_v1", "worker"): (54, 53, 52, 51),
    ("xgboostjob_v1", "worker"): (54, 53, 52, 51),
    ("jaxjob_v1", "worker"): (54, 53, 52, 51),
    ("tfjob_v1", "worker"): (54, 53, 52, 51),
    ("tfjob_v1", "evaluator"): (51, 50, 49, 48),
    ("mxjob_v1", "scheduler"): (51, 50, 49, 48),
    ("mxjob_v1", "tunerTracker"): (48, 47, 46, 45),
    ("mpijob_v1", "worker"): (54, 53, 52, 51),
    ("mpijob_v2beta1", "worker"): (54, 53, 52, 51),
    ("trainjob_v1alpha1", "node"): (48, 47, 46, 45),
}

every_description = pytest.mark.parametrize("name", DESCRIBED)
every_service = pytest.mark.parametrize(
    ("name", "framework"), [(name, framework) for name, kind in DESCRIBED.items() for framework in kind["frameworks"]]
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_kind_description_matches_its_schema_and_path(path):
    described = ALL[path.stem]
    group, _, version = described["apiVersion"].partition("/")

    assert config.find_errors(described, "kind") == []
    assert (path.parent.name, path.stem) == (group, f"{described['kind'].lower()}_{version}")
    assert described["plural"] == f"{described['kind'].lower()}s"


@every_description
def test_kind_description_matches_its_operator(name):
    kind = DESCRIBED[name]
    port = kind.get("port")

    said = [
        name,
        kind["apiVersion"],
        kind["kind"],
        kind["replicas"]["at"],
        ",".join(role.get("spelling", ours) for ours, role in kind["roles"].items()),
        kind["container"],
        f"{port['name']}:{port['number']}" if port else "-",
        kind.get("operatorRestartPolicy", "-"),
    ]
    assert said in [line.split() for line in FACTS.strip().splitlines()]


@every_description
def test_kind_is_limited_to_the_operator_versions_that_serve_it(name):
    said = {key: value for key, value in DESCRIBED[name]["operator"].items() if key != "name"}

    assert said == VERSIONS.get(name, {})


@every_description
def test_kind_description_refers_to_existing_roles(name):
    kind = DESCRIBED[name]
    frameworks = [framework or {} for framework in kind["frameworks"].values()]
    named = {
        kind["single"],
        *kind.get("success", []),
        *(role for framework in frameworks for role in framework.get("roles", [])),
    }

    assert named <= set(kind["roles"])
    assert set(kind["frameworks"]) <= set(FRAMEWORKS)
    assert kind["platform"] in PLATFORMS
    # Without an operator's own policy, the default of Kubernetes counts, with which no job ends.
    kept = ["Always"] if "restartPolicy" in kind["replicas"] else []
    assert kind.get("operatorRestartPolicy", "Never") in (*kept, *kind.get("restartPolicies", ["Never"]))
    assert all(role.get("min", 0) <= role["replicas"] <= role.get("max", 1) for role in kind["roles"].values())


@pytest.mark.parametrize(("name", "role"), NAME_BUDGETS)
def test_name_length_leaves_room_for_the_longest_suffix(name, role):
    kind = DESCRIBED[name]
    spelling = kind["roles"][role].get("spelling", role).lower()

    left = [63 - len(kind["nameSuffix"].format(role=spelling, index=10**digits - 1)) for digits in range(1, 5)]

    assert tuple(left) == NAME_BUDGETS[name, role]


@every_description
def test_every_kind_lists_the_name_suffixes_of_its_operator(name):
    # The pods of a RayJob have random names.
    assert ("{index}" in DESCRIBED[name]["nameSuffix"]) is (name != "rayjob_v1")


@every_service
def test_job_with_all_roles_renders_each_role(name, framework, tmp_path):
    kind = DESCRIBED[name]
    roles = (kind["frameworks"][framework] or {}).get("roles", list(kind["roles"]))
    written = {role: {"replicas": number} for number, role in enumerate(roles, start=1)}
    own = {framework: {"runtime": "some-runtime"}} if (name, framework) == ("trainjob_v1alpha1", "mpi") else {}

    [made, *_], findings = rendered(tmp_path, kind["platform"], framework, {"roles": written, **own})

    assert findings == []
    assert (made["apiVersion"], made["kind"], made["metadata"]) == (kind["apiVersion"], kind["kind"], {"name": "job"})
    [described] = parse_kinds([kind])
    if described.shape == "one":
        counted = [role for role in roles if not kind["roles"][role].get("launches")]
        assert get_at(made, described.replicas_at) == sum(written[role]["replicas"] for role in counted)
        assert made["spec"]["trainer"]["image"] == "x"
        return
    items = list(described.list_items(made))
    counted = [role for role in roles if not described.find_role(role).at]
    apart = {described.find_role(role).spelling for role in roles if described.find_role(role).at}
    counts = [count_pods(item.data, described.replicas, 0) for item in items if item.key not in apart]
    assert sum(counts) == sum(written[role]["replicas"] for role in counted)
    for item in items:
        container = described.name_container(item.key).format(job="job")
        [main] = find_template(item.data, described.replicas)["spec"]["containers"]
        assert (main["name"], main["image"]) == (container, "x")


@pytest.mark.parametrize(("framework", "platform"), list(product(FRAMEWORKS, PLATFORMS)))
def test_every_framework_renders_or_is_refused_on_every_platform(framework, platform, tmp_path):
    serving = [kind for kind in DESCRIBED.values() if kind["platform"] == platform and framework in kind["frameworks"]]

    objects, findings = rendered(tmp_path, platform, framework, {})

    if (framework, platform) == ("mpi", "trainer"):
        # Served, but by a runtime that only the cluster knows.
        message = "TrainJob has no default runtime for `mpi`; set `mpi.runtime`"
        assert (objects, findings) == ([], [("missing-field", message)])
    elif serving:
        assert [made["kind"] for made in objects] == [kind["kind"] for kind in serving]
        assert findings == []
    else:
        [[rule, message]] = findings
        assert objects == []
        assert rule == "unsupported-by-kind"
        needed = f"`platform: {platform}` needs `framework: mpi`; this job has `{framework}`"
        unknown = f"framework `{framework}` has no kind on platform `{platform}`; use "
        assert message.startswith(needed if platform == "mpi-operator" else unknown)


@pytest.mark.parametrize("name", VERSIONS)
def test_operator_version_that_does_not_serve_the_kind_is_refused(name, tmp_path):
    kind, versions = DESCRIBED[name], VERSIONS[name]
    framework = next(iter(kind["frameworks"]))
    operator = kind["operator"]["name"]
    outside = {"before": "0.1.0", **({"after": versions["removed"]} if "removed" in versions else {})}

    for when, version in outside.items():
        objects, [[rule, message]] = rendered(
            tmp_path / when, kind["platform"], framework, {}, operators={operator: version}
        )

        assert objects == []
        assert rule == "unsupported-by-kind"
        assert message.startswith(
            f"{operator} {version} does not serve {kind['kind']} for `{framework}`: it was added in "
        )


@pytest.mark.parametrize("version", ["1.9", "v1.9.0", "1.9.0-rc.1", "1.10.2", "2"])
def test_versions_are_compared_as_numbers(version, tmp_path):
    objects, findings = rendered(tmp_path, "kubeflow", "jax", {}, operators={"training-operator": version})

    assert [made["kind"] for made in objects] == ["JAXJob"]
    assert findings == []


def rendered(root, platform, framework, spec, operators=None):
    """The objects of a job with nothing but this on a platform, and what is wrong."""
    job = {"kind": "TrainingJob", "metadata": {"name": "job"}, "spec": {"framework": framework, "image": "x", **spec}}
    overlay = {"kind": "Overlay", "spec": {"cluster": {"platform": platform, "operators": operators or {}}}}
    for path, data in (("jobs/job.yaml", job), ("overlays/env/overlay.yaml", overlay)):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(yaml.safe_dump({"apiVersion": "jobgen.dev/v1", **data}))
    run = render_jobs(config.load_own(root), ["env"])
    objects = [made.object for made in run.objects]
    return objects, [(finding.rule, finding.message) for finding in run.findings]
