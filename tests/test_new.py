"""`jobgen new`: a job to start from, which lints clean in every environment."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from command import run_jobgen_text

from jobgen.cli.starter import PLATFORMS, list_supported
from jobgen.rendering import config

KINDS = config.load_own(Path(__file__).parent / "nowhere").kinds


def make_repository(folder: Path, platform: str) -> Path:
    assert run_jobgen_text(folder, "init", "jobs-of-team", "--platform", platform).returncode == 0
    return folder / "jobs-of-team"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_job_lints_clean_in_every_environment(tmp_path, platform):
    root = make_repository(tmp_path, platform)
    frameworks = list_supported(platform, KINDS)
    assert frameworks

    for framework, gpus in zip(frameworks[:2], ("2", "0"), strict=False):
        done = run_jobgen_text(root, "new", f"{framework}-{gpus}", "--framework", framework, "--gpus", gpus)

        assert done.stderr == f"jobs/{framework}-{gpus}.yaml written\n"
        assert done.returncode == 0


def test_mpirun_starts_a_process_for_each_gpu_where_the_hosts_have_no_slots(tmp_path):
    root = make_repository(tmp_path, "volcano")
    assert run_jobgen_text(root, "new", "hvd", "--framework", "mpi", "--gpus", "8").returncode == 0

    roles = yaml.safe_load((root / "jobs/hvd.yaml").read_text())["spec"]["roles"]
    assert roles["launcher"]["command"] == ["mpirun", "-N", "8", "python", "train.py"]
    assert roles["worker"]["resources"]["gpu"] == 8


def test_the_job_has_the_name_the_devices_and_the_labels_of_its_neighbors(tmp_path):
    root = make_repository(tmp_path, "kubeflow")
    job = root / "jobs" / "pytorch.yaml"
    job.write_text(job.read_text().replace("{team: research}", "{team: vision, cost-center: x1}"))

    done = run_jobgen_text(root, "new", "vision/resnet", "--gpus", "8")

    text = (root / "jobs" / "vision" / "resnet.yaml").read_text()
    made = yaml.safe_load(text)
    assert done.returncode == 0
    assert text.startswith("# yaml-language-server: $schema=../../schemas/jobgen.dev/trainingjob_v1.json\n")
    assert made["metadata"] == {"name": "resnet", "labels": {"team": "vision", "cost-center": "x1"}}
    assert made["spec"]["resources"]["gpu"] == 8


def test_a_file_that_exists_is_kept_unless_it_is_replaced_on_purpose(tmp_path):
    root = make_repository(tmp_path, "kubeflow")
    assert run_jobgen_text(root, "new", "bert").returncode == 0
    job = root / "jobs" / "bert.yaml"
    before = job.read_bytes()

    refused = run_jobgen_text(root, "new", "bert")

    assert refused.returncode == 1
    assert job.read_bytes() == before
    assert run_jobgen_text(root, "new", "bert", "--gpus", "4", "--force").returncode == 0
    assert job.read_bytes() != before


def test_other_objects_of_a_file_are_kept_and_named(tmp_path):
    root = make_repository(tmp_path, "kubeflow")
    job = root / "jobs" / "pytorch.yaml"
    job.write_text(job.read_text() + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: keep}\n")
    overlay = root / "overlays/dev/overlay.yaml"
    overlay.write_text(overlay.read_text() + "---\n" + overlay.read_text().replace("name: dev", "name: own"))
    (root / "jobgen.yaml").write_text("environments: [dev]\n")
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}

    written = [run_jobgen_text(root, *each, "--force") for each in (["new", "pytorch"], ["init", ".", "--ci=none"])]

    assert [done.returncode for done in written] == [1, 1]
    assert before == {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    lost = "jobs/pytorch.yaml: `--force` would also delete ConfigMap `keep` (line "
    assert lost in written[1].stderr
    assert lost.replace("ConfigMap", "TrainingJob `pytorch-example` (line 2), ConfigMap") in written[0].stderr
    assert "overlays/dev/overlay.yaml: `--force` would also delete Overlay `own` (line " in written[1].stderr


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "X", "a_b", "-a", "a" * 64, "", "a/../../b", "a\nb"])
def test_other_names_are_refused(tmp_path, name):
    root = make_repository(tmp_path, "kubeflow")
    before = sorted(tmp_path.rglob("*"))

    done = run_jobgen_text(root, "new", "--", name)

    assert done.returncode == 2
    assert "is not the name of a job" in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cv/yolo.yaml", "`cv/yolo.yaml` is the name of a file; write the name of the job: `cv/yolo`"),
        ("Big_Yolo.yml", "is the name of a file; write the name of the job: `big-yolo`"),
        ("cv/Yolo_v5", "lower-case letters, digits and `-`, such as `cv/yolo-v5`"),
    ],
)
def test_a_name_that_is_refused_says_which_one_is_meant(tmp_path, name, words):
    done = run_jobgen_text(make_repository(tmp_path, "kubeflow"), "new", name)

    assert done.returncode == 2
    assert words in done.stderr


def test_a_framework_that_the_cluster_does_not_run_is_refused(tmp_path):
    root = make_repository(tmp_path, "ray")

    done = run_jobgen_text(root, "new", "x", "--framework", "paddle")

    assert done.returncode == 2
    assert "do not run `paddle`; use" in done.stderr


def test_nothing_is_written_if_the_settings_have_errors(tmp_path):
    root = make_repository(tmp_path, "kubeflow")
    (root / "jobgen.yaml").write_text("environments: [\n")

    done = run_jobgen_text(root, "new", "x")

    assert done.returncode == 2
    assert "nothing else was done" in done.stderr
    assert not (root / "jobs/x.yaml").exists()


def test_the_name_of_another_job_is_refused(tmp_path):
    root = make_repository(tmp_path, "kubeflow")

    done = run_jobgen_text(root, "new", "team/pytorch-example")

    assert done.returncode == 2
    assert "jobs/pytorch.yaml has a job `pytorch-example`; use another name" in done.stderr
    assert run_jobgen_text(root, "new", "jobs/other").stderr.startswith("jobs/other.yaml written\n")
