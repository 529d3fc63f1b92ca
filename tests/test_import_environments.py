"""Copies of manifests for several environments become one spec and overlays, which render to the copies again."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run_jobgen_text

from jobgen.yamlio.read import read

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: bert
  namespace: nlp
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch # the trainer
              image: registry.example.com/bert:1.0.0
              command: [torchrun, train.py]
              env:
                - {name: MODE, value: debug}
                - {name: SEED, value: "7"}
              resources:
                limits: {cpu: 8, memory: 64Gi, nvidia.com/gpu: 1}
"""
OTHER = JOB.replace("name: bert", "name: gpt")
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: nlp}\ndata: {mode: dev}\n"
CLEAN = """\
apiVersion: batch/v1
kind: Job
metadata: {name: clean, namespace: nlp}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - {name: main, image: "registry.example.com/clean:1.0.0", command: [clean]}
"""
WORKER = """\
    Worker:
      replicas: 3
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - {name: pytorch, image: "registry.example.com/bert:1.0.0", command: [torchrun, train.py]}
"""
SEVERAL = {
    "gpus": JOB.replace("gpu: 1", "gpu: 8"),
    "namespace": JOB.replace("namespace: nlp", "namespace: nlp-prod"),
    "no namespace": JOB.replace("  namespace: nlp\n", ""),
    "labels": JOB.replace("  namespace: nlp\n", "  namespace: nlp\n  labels: {tier: prod}\n  annotations: {a: b}\n"),
    "image and command": JOB.replace(":1.0.0", ":1.1.0").replace("train.py", "main.py"),
    "variable removed": JOB.replace("                - {name: MODE, value: debug}\n", ""),
    "variable added": JOB.replace("value: debug}\n", "value: debug}\n                - {name: X, value: y}\n"),
    "role": JOB + WORKER,
    "everything": (JOB + WORKER).replace("nlp", "prod").replace(":1.0.0", ":2").replace("gpu: 1", "gpu: 4"),
}


def jobgen(folder: Path, *words: str) -> str:
    done = run_jobgen_text(folder, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def assert_equal(folder: Path, *envs: str) -> None:
    """Assert that the rendered objects of each environment equal its manifests."""
    jobgen(folder / "repo", "render", "-o", "rendered")
    for env in envs:
        compared = jobgen(folder / "repo", "diff", "--folders", f"../m/{env}", f"rendered/{env}")
        assert ": 0 added, 0 removed, 0 changed, " in compared


def read_overlay(folder: Path, env: str) -> dict:
    return read((folder / f"repo/overlays/{env}/overlay.yaml").read_bytes(), "").documents[0].data["spec"]


@pytest.mark.parametrize("other", SEVERAL.values(), ids=SEVERAL)
def test_what_differs_becomes_a_patch(tmp_path: Path, other: str) -> None:
    write(
        tmp_path, {"m/dev/bert.yaml": JOB, "m/prod/bert.yaml": other, "m/dev/gpt.yaml": OTHER, "m/prod/gpt.yaml": OTHER}
    )
    told = jobgen(tmp_path, "init", "repo", "--from", "m")

    assert "4 objects imported\n" in told
    assert sorted(path.name for path in (tmp_path / "repo/jobs").iterdir()) == ["bert.yaml", "gpt.yaml"]
    assert "# the trainer" in (tmp_path / "repo/jobs/bert.yaml").read_text() + told
    assert "patches" not in read_overlay(tmp_path, "dev") or "namespace" in read_overlay(tmp_path, "prod")
    assert_equal(tmp_path, "dev", "prod")


def test_a_common_namespace_is_that_of_the_overlay(tmp_path: Path) -> None:
    files = {
        f"m/{env}/{name}.yaml": text.replace("nlp", env)
        for env in ("dev", "prod")
        for name, text in (("bert", JOB), ("gpt", OTHER))
    }
    write(tmp_path, files)
    jobgen(tmp_path, "init", "repo", "--from", "m")

    assert read_overlay(tmp_path, "prod") == {"cluster": {"platform": "kubeflow"}, "namespace": "prod"}
    assert_equal(tmp_path, "dev", "prod")


SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: wandb, namespace: dev}\nstringData: {KEY: aaaa}\n"


def test_secrets_whose_values_are_written_are_named(tmp_path: Path) -> None:
    write(tmp_path, {"m/all.yaml": f"{JOB}---\n{SECRET}---\n{SECRET.replace('wandb', 'x').partition('stringData')[0]}"})
    told = jobgen(tmp_path, "init", "repo", "--from", "m")

    assert told.count("has its values in a file") == 1
    assert "Secret `wandb` has its values in a file; commit an ExternalSecret or a SealedSecret instead\n" in told


def test_jobs_of_some_environments_and_objects_of_other_kinds(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "m/dev/all.yaml": f"{JOB}---\n{CONFIG}",
            "m/staging/all.yaml": f"{JOB}---\n{CONFIG.replace('dev', 'staging')}",
            "m/prod/all.yaml": f"{JOB.replace('gpu: 1', 'gpu: 8')}---\n{OTHER}---\n{CONFIG.replace('dev', 'x')}",
        },
    )
    told = jobgen(tmp_path, "init", "repo", "--from", "m")

    assert "has its values in a file" not in told
    assert "4 objects imported, 3 of other kinds kept as manifests in jobs/\n" in told
    assert read_overlay(tmp_path, "dev")["jobs"] == {"names": ["bert", "settings"]}
    assert "jobs" not in read_overlay(tmp_path, "prod")
    assert_equal(tmp_path, "dev", "staging", "prod")


def test_several_platforms_in_an_environment(tmp_path: Path) -> None:
    write(tmp_path, {"m/dev/a.yaml": f"{JOB}---\n{CLEAN}", "m/prod/a.yaml": f"{CLEAN.replace('1.0.0', '2')}---\n{JOB}"})
    jobgen(tmp_path, "init", "repo", "--from", "m")

    assert_equal(tmp_path, "dev", "prod")


def test_jobs_of_several_platforms_are_compared_with_all_that_is_rendered(tmp_path: Path) -> None:
    write(tmp_path, {"m/a.yaml": JOB, "m/b.yaml": CLEAN, "m/c.yaml": CONFIG, "built/README.md": ""})
    jobgen(tmp_path, "init", "repo", "--from", "m")
    (tmp_path / "built/all.yaml").write_text(run_jobgen_text(tmp_path / "repo", "render").stdout)

    assert ": 0 added, 0 removed, 0 changed, 3 unchanged" in jobgen(tmp_path, "diff", "--folders", "m", "built")


def test_environments_are_named_by_an_option(tmp_path: Path) -> None:
    write(tmp_path, {"m/a/x/bert.yaml": JOB, "m/b/bert.yaml": SEVERAL["gpus"], "repo/jobgen.yaml": ""})
    words = ("import", "--environment", "east=../m/a", "--environment", "west=../m/b", "-o", "jobs")

    assert jobgen(tmp_path / "repo", *words).endswith("2 objects imported\n")
    assert read_overlay(tmp_path, "west")["patches"] == [
        {"match": {"names": ["bert"]}, "merge": {"resources": {"limits": {"gpu": 8}}}}
    ]
    again = run_jobgen_text(tmp_path / "repo", *words)
    assert (again.returncode, "the repository has overlays" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--environment", "dev", "-o", "jobs"], "`dev` is not an environment and its folder"),
        (["--environment", "a/b=m", "-o", "jobs"], "`a/b=m` is not an environment and its folder"),
        (["--environment", "dev=no", "-o", "jobs"], "there is no folder `no`"),
        (["--environment", "dev=m/a.yaml", "-o", "jobs"], "`m/a.yaml` is a file; name its folder"),
        (["--environment", "dev=m", "--environment", "dev=m", "-o", "jobs"], "`dev` is named twice"),
        (["--environment", "dev=m"], "name the folder of jobs: `-o jobs`"),
        (["--environment", "dev=m", "-o", "../jobs"], "is not in the folder `jobs`"),
        (["--environment", "dev=m", "m", "-o", "jobs"], "names the folders to import"),
        ([], "name a manifest or a folder to import"),
    ],
)
def test_mistakes_are_usage_errors(tmp_path: Path, words: list[str], message: str) -> None:
    write(tmp_path, {"m/a.yaml": JOB})
    done = run_jobgen_text(tmp_path, "import", *words)

    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_copies_beside_manifests_name_the_option(tmp_path: Path) -> None:
    write(tmp_path, {"m/bert.yaml": JOB, "m/prod/bert.yaml": SEVERAL["gpus"]})
    done = run_jobgen_text(tmp_path, "init", "repo", "--from", "m")

    assert done.returncode == 1
    assert "import each folder as an environment with `--environment NAME=FOLDER`, or rename one of them" in done.stderr


def test_what_cannot_be_imported_is_listed_and_the_rest_is_imported(tmp_path: Path) -> None:
    broken = JOB.replace("image: registry", "imag: registry").replace("name: bert", "name: broken")
    write(tmp_path, {"m/dev/bert.yaml": JOB, "m/prod/bert.yaml": SEVERAL["gpus"], "m/prod/b.yaml": broken})
    done = run_jobgen_text(tmp_path, "init", "repo", "--from", "m")

    assert done.returncode == 1
    assert "m/prod/b.yaml:" in done.stderr
    assert "2 objects imported, 1 not imported\n" in done.stderr


def test_jobs_of_one_name_and_different_kinds_are_listed_and_the_others_are_imported(tmp_path: Path) -> None:
    other = CLEAN.replace("name: clean", "name: gpt")
    write(tmp_path, {"m/dev/bert.yaml": JOB, "m/prod/bert.yaml": SEVERAL["gpus"]})
    write(tmp_path, {"m/dev/gpt.yaml": OTHER, "m/prod/gpt.yaml": other})
    done = run_jobgen_text(tmp_path, "init", "repo", "--from", "m")

    assert done.returncode == 1
    assert "m/dev/gpt.yaml:1: not imported: " in done.stderr
    assert "m/prod/gpt.yaml:1: not imported: " in done.stderr
    assert "2 objects imported, 2 not imported\n" in done.stderr
    assert "bert" in jobgen(tmp_path / "repo", "render")
