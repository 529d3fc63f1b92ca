"""`jobgen capture` writes and removes files only in its own folder: links, and names in its list, lead nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from command import run_jobgen
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws
from transcripts import files_below

from jobgen.api.errors import UsageError
from jobgen.features.live.capture import Captured
from jobgen.features.live.write_capture import write_capture

FOLDER = "cluster/prod"
JOBS = {"pytorchjobs.kubeflow.org.yaml": "a job\n", "nodes.yaml": "a job, too\n", "bert.yaml": "my job\n"}


def capture(*names, unread=()):
    """What was read of a cluster: a file for each name."""
    return Captured("2026-05-01", {name: f"{name}\n" for name in names}, 1, "1.33", {}, dict.fromkeys(unread, "denied"))


EVERYTHING = capture("nodes.yaml", "namespaces.yaml", ".running/pytorchjobs.kubeflow.org.yaml")
NOTHING = capture("namespaces.yaml")


@pytest.fixture
def repository(tmp_path):
    """A repository with jobs whose names are those of captured files, and a first capture."""
    make_repository(tmp_path)
    return tmp_path


def make_repository(root):
    (root / "jobs").mkdir()
    for name, text in JOBS.items():
        (root / "jobs" / name).write_text(text)
    write_capture(root, FOLDER, EVERYTHING)


def link(path, target):
    """Replace what is at a path by a link."""
    if path.is_dir() and not path.is_symlink():
        for below in sorted(path.rglob("*"), reverse=True):
            below.rmdir() if below.is_dir() else below.unlink()
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent) if Path(target).is_absolute() else target)


def list_files(root):
    return {path: (root / path).read_bytes() for path in map(str, sorted(files_below(root)))}


@pytest.mark.parametrize(
    ("place", "target"),
    [
        ("cluster/prod/.running", "jobs"),
        ("cluster/prod", "jobs"),
        ("cluster", "jobs"),
        ("cluster/prod/nodes.yaml", "jobs/bert.yaml"),
        ("cluster/prod/.running/pytorchjobs.kubeflow.org.yaml", "jobs/bert.yaml"),
        ("cluster/prod/capture.yaml", "jobs/bert.yaml"),
        ("cluster/prod/.running", "nowhere"),
        ("cluster/prod/nodes.yaml", "nowhere.yaml"),
    ],
)
@pytest.mark.parametrize("captured", [EVERYTHING, NOTHING], ids=["more", "less"])
def test_link_is_refused_and_nothing_changes(place, target, captured, repository):
    listed = (repository / FOLDER / "capture.yaml").read_text()
    link(repository / place, repository / target)
    if place in ("cluster", "cluster/prod"):
        # What the linked folder lists as captured is a job.
        home = repository / FOLDER
        home.mkdir(exist_ok=True)
        (home / "capture.yaml").write_text(listed)
    before = list_files(repository)

    with pytest.raises(UsageError) as error:
        write_capture(repository, FOLDER, captured)

    assert f"`{place}` is a link" in str(error.value)
    assert list_files(repository) == before


def test_link_that_leads_out_of_the_repository_is_refused(repository, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "pytorchjobs.kubeflow.org.yaml").write_text("not mine\n")
    link(repository / FOLDER / ".running", other)

    with pytest.raises(UsageError):
        write_capture(repository, FOLDER, NOTHING)

    assert list_files(other) == {"pytorchjobs.kubeflow.org.yaml": b"not mine\n"}


def test_repository_may_be_reached_through_a_link(repository, tmp_path_factory):
    """The folders above the repository are not part of it."""
    linked = tmp_path_factory.mktemp("above") / "linked"
    linked.symlink_to(repository)
    write_capture(linked, FOLDER, NOTHING)

    assert sorted(files_below(repository / FOLDER)) == ["capture.yaml", "namespaces.yaml"]


def test_own_link_in_the_folder_is_left_alone(repository):
    link(repository / FOLDER / "mine", repository / "jobs")
    write_capture(repository, FOLDER, NOTHING)

    assert (repository / FOLDER / "mine").is_symlink()
    assert {path.name: path.read_text() for path in (repository / "jobs").iterdir()} == JOBS


LISTED = ("../../jobs/bert.yaml", "/jobs/bert.yaml", "mine/bert.yaml", "./../../jobs/bert.yaml", "", ".", "Mine.yaml")


@laws(10)
@given(st.lists(st.one_of(st.sampled_from(LISTED), st.text("./abjos-", max_size=12)), max_size=6), st.booleans())
def test_whatever_the_list_says_other_files_stay(tmp_path_factory, listed, is_linked):
    root = tmp_path_factory.mktemp("listed")
    make_repository(root)
    if is_linked:
        link(root / FOLDER / "mine", root / "jobs")
    (root / FOLDER / "Mine.yaml").write_text("mine\n")
    index = root / FOLDER / "capture.yaml"
    document = yaml.safe_load(index.read_text())
    document["data"]["files"] += "".join(f"{name}\n" for name in listed)
    index.write_text(yaml.safe_dump(document))
    write_capture(root, FOLDER, NOTHING)

    assert {path.name: path.read_text() for path in (root / "jobs").iterdir()} == JOBS
    assert (root / FOLDER / "Mine.yaml").read_text() == "mine\n"
    assert not (root / FOLDER / "nodes.yaml").exists()


def test_command_refuses_a_link_before_it_asks_the_cluster(repository):
    overlay = f"apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {{cluster: {{state: {FOLDER}}}}}\n"
    (repository / "overlays/prod").mkdir(parents=True)
    (repository / "overlays/prod/overlay.yaml").write_text(overlay)
    (repository / "jobgen.yaml").write_text("environments: [prod]\n")
    link(repository / FOLDER / ".running", repository / "jobs")
    before = list_files(repository)
    done = run_jobgen(repository, "capture", "-e", "prod")

    assert done.returncode == 2
    assert b"`cluster/prod/.running` is a link" in done.stderr
    assert list_files(repository) == before
