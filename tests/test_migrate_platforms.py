"""Jobs of clusters with several platforms: each is migrated from what it renders to, to what it will render to."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from command import jobgen
from sampling import sample
from transcripts import write_files

ROLES = {
    "pytorch": {"master": {}, "worker": {"replicas": 3}},
    "node": {"node": {"replicas": 4}},
    "mpi": {"launcher": {"command": ["mpirun", "train.py"]}, "worker": {"replicas": 3}},
}


def make_repository(folder, platforms, overlay=(), **jobs):
    """Write a repository with an environment `prod`, if it has platforms, and these specs."""
    documents = {f"jobs/{name}.yaml": ("TrainingJob", name, {"image": "a:1", **spec}) for name, spec in jobs.items()}
    if platforms:
        documents["overlays/prod/o.yaml"] = ("Overlay", "prod", {"cluster": {"platforms": platforms}, **dict(overlay)})
    write_files(
        folder,
        {
            path: yaml.safe_dump(
                {"apiVersion": "jobgen.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
            ).encode()
            for path, (kind, name, spec) in documents.items()
        }
        | {"jobgen.yaml": b""},
    )


def migrate(folder, *arguments):
    """Return the new spec, or None, and the lines of the report."""
    done = jobgen(folder, "migrate", *arguments)
    made = next(yaml.safe_load_all(done.stdout), None)
    assert done.returncode == (0 if made else 1)
    return made and made["spec"], done.stderr.decode()


def render_kind(folder, name, spec):
    """Return the kind that the environment `prod` renders a job to if its spec is replaced."""
    path = folder / "jobs" / f"{name}.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "spec": spec}))
    done = jobgen(folder, "render", "-e", "prod", name)
    return next(yaml.safe_load_all(done.stdout))["kind"]


@pytest.mark.parametrize("arguments", sample([[], ["-e", "prod"]], 2, ["", "-e"]))
@pytest.mark.parametrize(
    ("platforms", "overlay", "spec", "target", "way"),
    [
        (["kubeflow", "jobset"], {}, {"platform": "jobset"}, "kubeflow", "JobSet (jobset) to PyTorchJob (kubeflow)"),
        (["kubeflow", "kubernetes"], {}, {"platform": "kubernetes"}, "kubeflow", "Job (kubernetes) to PyTorchJob"),
        (
            ["kubeflow", "jobset"],
            {"defaults": {"platform": "jobset"}},
            {},
            "kubeflow",
            "JobSet (jobset) to PyTorchJob (kubeflow)",
        ),
        (["kubeflow", "jobset"], {}, {}, "jobset", "PyTorchJob (kubeflow) to JobSet (jobset)"),
        (["jobset", "kubeflow"], {}, {"platform": "kubeflow"}, "jobset", "PyTorchJob (kubeflow) to JobSet (jobset)"),
        (["kubeflow", "trainer"], {}, {}, "trainer", "PyTorchJob "),
    ],
    ids=["own", "kubernetes", "default", "not-first", "first", "trainer"],
)
def test_result_renders_to_the_new_kind(platforms, overlay, spec, target, way, arguments, tmp_path):
    roles = ROLES["node" if "JobSet (" in way[:8] or way.startswith("Job ") else "pytorch"]
    make_repository(tmp_path, platforms, overlay, a={"framework": "pytorch", "roles": roles, **spec})
    made, report = migrate(tmp_path, "a", "--to", target, *arguments)

    assert way in report.splitlines()[0]
    assert "needs an overlay" not in report
    assert "nodes differ" not in report
    assert made.get("platform", platforms[0]) == target
    assert (
        render_kind(tmp_path, "a", made)
        == {"kubeflow": "PyTorchJob", "jobset": "JobSet", "trainer": "TrainJob"}[target]
    )


@pytest.mark.parametrize("platforms", [["mpi-operator", "kubeflow"], ["kubeflow", "mpi-operator"]], ids="-".join)
def test_platform_that_does_not_support_the_framework_may_be_first(platforms, tmp_path):
    make_repository(tmp_path, platforms, a={"framework": "pytorch", "roles": ROLES["pytorch"]})
    made, report = migrate(tmp_path, "a", "--to", "jobset", "-e", "prod")

    assert "PyTorchJob (kubeflow) to JobSet (jobset)" in report
    assert "`prod` needs the platform `jobset`: add `jobset` to `cluster.platforms` in overlays/prod/" in report
    assert made["platform"] == "jobset"


def test_overlay_that_sets_the_platform_wins(tmp_path):
    overlay = {"patches": [{"match": {"names": ["a"]}, "merge": {"platform": "jobset"}}]}
    job = {"framework": "pytorch", "roles": ROLES["node"], "platform": "kubeflow"}
    make_repository(tmp_path, ["kubeflow", "jobset"], overlay, a=job)
    _, report = migrate(tmp_path, "a", "--to", "kubernetes", "-e", "prod")

    assert "JobSet (jobset) to Job (kubernetes)" in report
    assert "[overlays]" in report, "the overlay sets another platform"


def test_platform_without_environments(tmp_path):
    make_repository(tmp_path, [], a={"framework": "pytorch", "roles": ROLES["node"], "platform": "kubernetes"})
    _, report = migrate(tmp_path, "a", "--to", "kubeflow")

    assert "Job (kubernetes) to PyTorchJob (kubeflow)" in report


@pytest.mark.parametrize(
    ("overlay", "spec", "reason"),
    [
        ({"jobs": {"names": ["b"]}}, {}, "it is not in `prod`"),
        ({}, {"platform": "ray"}, "`prod`: the cluster does not have platform `ray`"),
        ({"patches": [{"merge": {"framework": "jax"}}]}, {}, "an overlay changes its framework to `jax`"),
    ],
    ids=["elsewhere", "no-platform", "framework"],
)
def test_reason_for_an_unknown_kind(overlay, spec, reason, tmp_path):
    make_repository(tmp_path, ["kubeflow"], overlay, a={"framework": "pytorch", "roles": ROLES["pytorch"], **spec})
    made, report = migrate(tmp_path, "a", "--to", "jobset", "-e", "prod")

    assert made is None
    assert reason in report


def migrate_all(folder):
    """Migrate all jobs to Trainer, and return the kinds of all objects by environment before and after."""
    before = render_kinds(folder)
    done = jobgen(folder, "migrate", "--all", "--to", "trainer", "--write")
    assert done.returncode == 0, done.stderr
    return before, render_kinds(folder), done.stderr.decode()


def render_kinds(folder):
    """Return the names of all objects with their kinds, for each environment."""
    found = {}
    for env in sorted(path.name for path in (folder / "overlays").iterdir()):
        objects = yaml.safe_load_all(jobgen(folder, "render", "-e", env).stdout)
        found[env] = {
            each["metadata"]["name"]: f"{each['apiVersion']} {each['kind']}"
            for each in objects
            if each["kind"] != "TrainingRuntime"
        }
    return found


MPI = {"framework": "mpi", "roles": ROLES["mpi"]}
TORCH = {"framework": "pytorch", "roles": ROLES["pytorch"]}


@pytest.mark.parametrize(
    ("platforms", "job", "kind", "platform"),
    [
        (["mpi-operator", "kubeflow"], MPI, "kubeflow.org/v2beta1 MPIJob", None),
        (["kubeflow", "mpi-operator"], MPI, "kubeflow.org/v1 MPIJob", "kubeflow"),
        (["kubeflow"], MPI, "kubeflow.org/v1 MPIJob", "kubeflow"),
        (["kubeflow", "jobset"], TORCH | {"platform": "jobset"}, "jobset.x-k8s.io/v1alpha2 JobSet", "jobset"),
    ],
    ids=["mpi-first", "mpi-last", "mpi-v1", "own"],
)
def test_other_jobs_stay_on_their_platform(platforms, job, kind, platform, tmp_path):
    make_repository(tmp_path, platforms, m=job, a=TORCH)
    before, after, _ = migrate_all(tmp_path)

    assert before["prod"]["m"] == after["prod"]["m"] == kind
    assert after["prod"]["a"] == "trainer.kubeflow.org/v1alpha1 TrainJob"
    assert yaml.safe_load((tmp_path / "jobs/m.yaml").read_text())["spec"].get("platform") == platform


def test_job_that_stays_on_a_platform_of_each_environment(tmp_path):
    make_repository(tmp_path, ["kubeflow"], m=MPI, a=TORCH)
    other = (tmp_path / "overlays/prod/o.yaml").read_text().replace("prod", "stage").replace("kubeflow", "mpi-operator")
    write_files(tmp_path, {"overlays/stage/o.yaml": f"{other}  jobs: {{names: [m]}}\n".encode()})
    before, after, _ = migrate_all(tmp_path)

    assert before["prod"]["m"] == after["prod"]["m"] == "kubeflow.org/v1 MPIJob"
    assert before["stage"]["m"] == after["stage"]["m"] == "kubeflow.org/v2beta1 MPIJob"
    assert "TrainJob" in after["prod"]["a"]


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "xgboost", "paddle", "jax"])
def test_advice_about_kueue_can_be_followed(framework, tmp_path):
    make_repository(
        tmp_path, ["kubeflow"], a={"framework": framework, "queue": "q", "roles": {"worker": {"replicas": 2}}}
    )
    found = json.loads(jobgen(tmp_path, "lint", "--format", "json").stdout)["findings"]
    advice = [each["message"].rpartition("migrate to ")[2] for each in found if each["rule"] == "queue-support-ending"]

    assert len(advice) == 1
    done = jobgen(tmp_path, "migrate", "a", "--to", advice[0])
    # What the other operator does differently is named, and the options to accept it.
    options = re.findall(r"--accept ([a-z-]+)", done.stderr.decode())
    assert (done.returncode, bool(done.stdout)) == ((1, False) if options else (0, True))
    accepted = [f"--accept={name}" for name in options]
    assert jobgen(tmp_path, "migrate", "a", "--to", advice[0], *accepted).returncode == 0


STARTED = "python -m torch.distributed.run --nnodes=$WORLD_SIZE --node_rank=$RANK --master_addr=$MASTER_ADDR train.py"


@pytest.mark.parametrize(
    ("policies", "target", "policy", "said"),
    [
        (("OnFailure", "ExitCode"), "volcano", "Never", ["ranks 1-3: restartPolicy: "]),
        (("ExitCode", "ExitCode"), "volcano", "Never", ["all nodes: restartPolicy: "]),
        (("OnFailure", "OnFailure"), "volcano", "Never", []),
        (
            ("OnFailure", "ExitCode"),
            "jobset",
            "Never",
            [
                "ranks 1-3: restartPolicy: ",
                "all nodes: env RANK: `0` to `3` before, nothing after; the command reads `RANK`, which is empty then",
                "error: `--node-rank` gets an empty value, because nothing sets `RANK`; remove `--node-rank`",
            ],
        ),
    ],
)
def test_roles_that_restart_in_different_ways(policies, target, policy, said, tmp_path):
    """Both roles get the policy that lets pods fail, and what differs is said of the nodes that it differs for."""
    roles = {
        name: {
            "replicas": count,
            "restartPolicy": own,
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": "pytorch",
                            "image": "registry.example.com/bert:1.4.2",
                            "command": ["bash", "-c", STARTED],
                            "resources": {"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": 1}},
                        }
                    ]
                }
            },
        }
        for name, count, own in (("Master", 1, policies[0]), ("Worker", 3, policies[1]))
    }
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "bert", "namespace": "ml"},
        "spec": {"runPolicy": {"backoffLimit": 3, "cleanPodPolicy": "None"}, "pytorchReplicaSpecs": roles},
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    accept = [word for name in ("lost-fields", "operator-env", "restarts") for word in ("--accept", name)]
    done = jobgen(tmp_path, "migrate", "job.yaml", "--to", target, "-o", "out", *accept)
    written, report = (tmp_path / "out/bert.yaml").read_text(), done.stderr.decode()

    # What is written for the JobSet has an error.
    assert done.returncode == (1 if target == "jobset" else 0), report
    assert set(re.findall(r"restartPolicy: (\w+)", written)) == {policy}
    assert [each for each in said if each not in report] == []
    assert ("restartPolicy: `" in report) == any("restartPolicy" in each for each in said)
