"""`jobgen migrate` in repositories as users have them: as `init` writes them, and with other objects beside jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from command import jobgen

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: NAME}
spec:
  framework: pytorch
  image: registry.example.com/NAME:1.4.2
  command: [torchrun, train.py] # start
  resources: {cpu: 8, memory: 64Gi, gpu: 4}
  roles:
    master: {}
    worker: {replicas: 3}
"""
CONFIG = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: keep}\ndata: {a: "1"}\n'
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: NAME}\nspec:\n"


def job(name):
    return JOB.replace("NAME", name)


def write(folder, overlays, **jobs):
    """Write a repository: overlays by name, and the files of jobs."""
    for name, spec in overlays.items():
        path = folder / f"overlays/{name}/overlay.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(OVERLAY.replace("NAME", name) + spec)
    (folder / "jobs").mkdir()
    for name, text in jobs.items():
        (folder / f"jobs/{name}.yaml").write_text(text)
    return read_all(folder)


def read_all(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.yaml")}


def render(folder, env):
    return list(yaml.safe_load_all(jobgen(folder, "render", "-e", env).stdout))


KUBEFLOW = "  cluster: {platform: kubeflow}\n"


def test_new_repository_can_be_migrated(tmp_path):
    """`init` writes defaults as a list with `match`."""
    assert jobgen(tmp_path, "init", "r").returncode == 0
    done = jobgen(tmp_path / "r", "migrate", "--all", "--to", "trainer", "--write")
    overlay = yaml.safe_load((tmp_path / "r/overlays/dev/overlay.yaml").read_text())["spec"]

    assert done.returncode == 0, done.stderr
    assert b"2 of 2 equal for training" in done.stderr
    assert overlay["defaults"] == [{"merge": {"env": {"LOG_LEVEL": "debug"}}}]
    assert jobgen(tmp_path / "r", "lint").returncode == 0


def test_default_of_a_list_moves_with_its_selector(tmp_path):
    other = job("tf").replace("pytorch", "tensorflow").replace("torchrun", "python").replace("master", "chief")
    default = "    - match: {platforms: [kubeflow]}\n      merge: {nodeSelector: {a: b}, workingDir: /a}\n"
    write(tmp_path, {"dev": KUBEFLOW + "  defaults:\n" + default}, bert=job("bert"), tf=other)
    done = jobgen(tmp_path, "migrate", "--all", "--to", "trainer", "--write")
    spec = yaml.safe_load((tmp_path / "overlays/dev/overlay.yaml").read_text())["spec"]

    assert done.returncode == 0, done.stderr
    assert spec["defaults"] == [
        {"match": {"platforms": ["kubeflow"]}, "merge": {"nodeSelector": {"a": "b"}, "workingDir": "/a"}},
        {"match": {"platforms": ["trainer"]}, "merge": {"nodeSelector": {"a": "b"}}},
    ]


def test_other_objects_are_not_jobs_of_other_kinds(tmp_path):
    defaults = KUBEFLOW + "  defaults: {restartPolicy: Never, runPolicy: {backoffLimit: 1}}\n"
    text = f"{job('bert')}---\n{CONFIG}---\n{job('gpt')}"
    write(tmp_path, {"dev": defaults, "prod": defaults}, bert=text)
    done = jobgen(tmp_path, "migrate", "--all", "--to", "trainer", "--write")

    assert done.returncode == 0, done.stderr
    assert yaml.safe_load((tmp_path / "overlays/dev/overlay.yaml").read_text())["spec"] == {
        "cluster": {"platform": "trainer"}
    }
    assert CONFIG in (tmp_path / "jobs/bert.yaml").read_text()
    assert jobgen(tmp_path, "lint").returncode == 0


def test_new_errors_keep_everything_from_being_written(tmp_path):
    """A lock of the overlay does not allow the runtime in the job."""
    before = write(tmp_path, {"dev": KUBEFLOW + "  locked: [pytorch.runtime]\n"}, bert=job("bert"))
    done = jobgen(tmp_path, "migrate", "--all", "--to", "trainer", "--write")

    assert (done.returncode, done.stdout) == (1, b""), done.stderr
    assert done.stderr.endswith(b"nothing was written\n")
    assert read_all(tmp_path) == before


def test_exported_state_stays_in_reach(tmp_path):
    write(tmp_path, {"prod": "  cluster: {platform: kubeflow, state: cluster/prod}\n"}, bert=job("bert"))
    (tmp_path / "cluster/prod").mkdir(parents=True)
    (tmp_path / "cluster/prod/ns.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n")
    done = jobgen(tmp_path, "migrate", "--all", "--to", "trainer", "--write")

    assert done.returncode == 0, done.stderr
    assert jobgen(tmp_path, "lint").returncode == 0


def test_own_repository_has_no_new_errors():
    """Its defects and policies are also those that come with jobgen."""
    done = jobgen(Path(__file__).parent.parent, "migrate", "--all", "--to", "trainer")

    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith(b"pods: 2 of 2 equal for training\n")


@pytest.mark.parametrize("target", ["trainer", "jobset"])
def test_error_of_the_settings_of_a_cluster_is_reported(target, tmp_path):
    """Kueue manages the old kind only, so the new job would start at once, without quota."""
    queues = "kueue: {version: '0.19', frameworks: [kubeflow.org/pytorchjob]}"
    overlay = f"  cluster: {{platforms: [kubeflow, {target}], {queues}}}\n  patches: [{{merge: {{queue: gpus}}}}]\n"
    write(tmp_path, {"prod": overlay}, bert=job("bert"), gpt=job("gpt"))
    command = ("migrate", "bert", "--to", target, "--accept", "operator-env", "--accept", "restarts")
    done = jobgen(tmp_path, *command)
    lines = [line for line in done.stderr.decode().splitlines() if "ineffective-queue-label" in line]

    assert jobgen(tmp_path, "lint").returncode == 0
    assert (done.returncode, len(lines)) == (1, 1), done.stderr
    assert lines[0].startswith(("jobs/bert.yaml:", "overlays/prod/overlay.yaml:"))
    assert b"are the same" not in done.stderr
    assert b"equal for training" not in done.stderr


BOTH = "  cluster: {platforms: [kubeflow, kubernetes, trainer]}\n"
ACCEPT = ["--accept", "operator-env"]


def test_other_documents_of_the_file_stay(tmp_path):
    write(tmp_path, {"prod": BOTH}, bert=f"{job('bert')}---\n{CONFIG}---\n{job('gpt')}")
    done = jobgen(tmp_path, "migrate", "bert", "--to", "kubernetes", "-o", "jobs", "--force", *ACCEPT)
    text = (tmp_path / "jobs/bert.yaml").read_text()

    assert done.returncode == 0, done.stderr
    assert text.endswith(f"---\n{CONFIG}---\n{job('gpt')}")
    assert sorted(each["kind"] for each in render(tmp_path, "prod")) == ["ConfigMap", "Job", "PyTorchJob", "Service"]


def test_other_objects_of_a_replaced_file_are_named(tmp_path):
    write(tmp_path, {"prod": BOTH}, bert=job("bert"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out/bert.yaml").write_text(f"{job('bert')}---\n{CONFIG}")
    before = read_all(tmp_path)
    done = jobgen(tmp_path, "migrate", "bert", "--to", "kubernetes", "-o", "out", "--force", *ACCEPT)

    assert (done.returncode, read_all(tmp_path)) == (1, before)
    assert b"out/bert.yaml: `--force` would also delete ConfigMap `keep` (line 13); " in done.stderr


def test_jobs_of_a_file_with_another_name_are_changed_there(tmp_path):
    write(tmp_path, {"prod": BOTH}, many=f"{job('one')}---\n{job('two')}")
    done = jobgen(tmp_path, "migrate", "one", "two", "--to", "kubernetes", "-o", "jobs", "--force", *ACCEPT)

    assert done.returncode == 0, done.stderr
    assert [path for path in read_all(tmp_path) if path.startswith("jobs/")] == ["jobs/many.yaml"]
    assert sorted(each["kind"] for each in render(tmp_path, "prod")) == ["Job", "Job", "Service", "Service"]


def test_second_job_of_a_name_is_not_written(tmp_path):
    before = write(tmp_path, {"prod": BOTH}, many=f"{job('one')}---\n{job('two')}")
    done = jobgen(tmp_path, "migrate", "one", "--to", "kubernetes", "-o", "jobs/new", *ACCEPT)

    assert (done.returncode, read_all(tmp_path)) == (1, before)
    assert b"`one` is in `jobs/many.yaml`, so there would be two jobs of this name" in done.stderr


def test_runtime_is_beside_the_folder_of_jobs(tmp_path):
    write(tmp_path, {"prod": BOTH}, bert=job("bert"))
    done = jobgen(tmp_path, "migrate", "bert", "--to", "trainer", "-o", "jobs", "--force")
    made = {each["kind"]: each for each in render(tmp_path, "prod")}

    assert done.returncode == 0, done.stderr
    assert "runtimes/bert.yaml" in read_all(tmp_path)
    assert made["TrainJob"]["spec"]["runtimeRef"]["kind"] == "TrainingRuntime"


BOUND = (
    "  defaults:\n    - match: {platforms: [kubeflow]}\n"
    "      merge: {env: {CACHE: a}, nodeSelector: {pool: a}, restartPolicy: POLICY, runPolicy: {backoffLimit: 3}}\n"
)


@pytest.mark.parametrize("target", ["kubernetes", "jobset", "volcano", "trainer"])
@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_what_overlays_set_for_the_old_platform_is_written(target, policy, tmp_path):
    """No environment has the new platform yet: they are compared as if they had it."""
    overlay = KUBEFLOW + BOUND.replace("POLICY", policy)
    write(tmp_path, {"dev": overlay, "prod": overlay}, bert=job("bert"))
    done = jobgen(tmp_path, "migrate", "bert", "--to", target, *ACCEPT)
    new, *others = yaml.safe_load_all(done.stdout)
    spec = new["spec"]

    assert done.returncode == 0, done.stderr
    assert (spec["env"]["CACHE"], spec["nodeSelector"], spec["platform"]) == ("a", {"pool": "a"}, target)
    assert b"overlays/prod/overlay.yaml:8 sets it for PyTorchJob only" in done.stderr
    assert f"write `platforms: [kubeflow, {target}]` in overlays/dev/overlay.yaml:5" in done.stderr.decode()
    if target != "trainer" and policy == "OnFailure":
        assert spec["runPolicy"]["backoffLimit"] == 3
    if target == "trainer":
        pods = others[0]["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]
        assert pods["backoffLimit"] == (3 if policy == "OnFailure" else 0)


def test_what_one_environment_sets_for_the_old_kind_is_refused(tmp_path):
    patch = "  patches:\n    - match: {kinds: [PyTorchJob]}\n      merge: {image: registry.example.com/other:2}\n"
    before = write(tmp_path, {"dev": KUBEFLOW, "prod": KUBEFLOW + patch}, bert=job("bert"))
    done = jobgen(tmp_path, "migrate", "bert", "--to", "kubernetes", "-o", "out", *ACCEPT)

    assert (done.returncode, read_all(tmp_path)) == (1, before)
    assert b"overlays/prod/overlay.yaml:7: `image` would not apply to a Job; add `Job` to `match.kinds`" in done.stderr


def test_pods_that_one_environment_changes_are_counted_in_the_runtime(tmp_path):
    change = "{spec: {pytorchReplicaSpecs: {Worker: {template: {spec: {priorityClassName: high}}}}}}"
    prod = f"  extends: [base]\n  patches: [{{match: {{names: [bert]}}, manifest: {change}}}]\n"
    base = "  cluster: {platforms: [kubeflow, trainer], operators: {trainer: 2.2.0}}\n"
    text = job("bert").partition("  roles")[0] + "  replicas: 4\n"
    write(tmp_path, {"base": base, "dev": "  extends: [base]\n", "prod": prod}, bert=text)
    done = jobgen(tmp_path, "migrate", "--all", "--to", "trainer", "--write")
    _, runtime = render(tmp_path, "prod")
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]

    assert (done.returncode, b" 0 lost, " in done.stderr) == (0, True), done.stderr
    assert [each.get("replicas", 1) for each in jobs] == [1, 3]
    assert jobs[1]["template"]["spec"]["template"]["spec"]["priorityClassName"] == "high"


def test_nothing_is_written_where_the_platform_is_missing(tmp_path):
    before = write(tmp_path, {"dev": KUBEFLOW, "prod": BOTH}, bert=job("bert"))
    done = jobgen(tmp_path, "migrate", "bert", "--to", "kubernetes", "-o", "jobs", "--force", *ACCEPT)

    assert (done.returncode, read_all(tmp_path)) == (1, before)
    assert b"`dev` has no platform for `kubernetes` yet; nothing was written" in done.stderr


@pytest.mark.parametrize("options", [["bert", *ACCEPT], ["--all"]], ids=["bert", "all"])
@pytest.mark.parametrize(("output", "fault"), [(".git/hooks", "belongs to Git"), ("linked", "through a symbolic link")])
def test_nothing_is_written_to_git_or_through_a_link(output, fault, options, tmp_path):
    before = write(tmp_path / "in", {"prod": BOTH}, bert=job("bert"))
    (tmp_path / "outside").mkdir()
    (tmp_path / "in/linked").symlink_to(tmp_path / "outside")
    done = jobgen(tmp_path / "in", "migrate", *options, "--to", "trainer", "-o", output)

    assert (done.returncode, read_all(tmp_path / "in"), list((tmp_path / "outside").iterdir())) == (2, before, [])
    assert fault in done.stderr.decode()
