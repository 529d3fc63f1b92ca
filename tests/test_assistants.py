"""What assistants read: llms.txt, the skill that `jobgen init --skill` writes, and JSON with the pages of rules."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from command import run_jobgen_text
from findings import without_infos

ROOT = Path(__file__).parent.parent
SKILL = ROOT / "jobgen/data/starter/SKILL.md"
LLMS = ROOT / "docs/llms.txt"
COPIES = [".agents/skills/jobgen/SKILL.md", ".claude/skills/jobgen/SKILL.md"]
BERT, LLAMA = "jobs/bert.yaml", "jobs/llama.yaml"
PASSWORD = "shm: 4Gi\n  env: {DB_PASSWORD: %s}"
MOUNTS = "replicas: 2\n  volumes: {a: {pvc: data, mountPath: /data}, b: {emptyDir: {}, mountPath: /%s}}"
TOTAL = "roles: {master: {}, worker: {replicas: 1}}\n  replicas: %d"
FAULTS = [
    (BERT, "replicas: 2", TOTAL % 3, TOTAL % 2, "replica-totals"),
    (BERT, "research/pytorch:1.0.0", "research/bert", "research/bert:1.0.0", "untagged-image"),
    (BERT, "memory: 16Gi", "memory: 16GB", "memory: 16G", "invalid-quantity"),
    (BERT, "shm: 4Gi", "shmm: 4Gi", "shm: 4Gi", "unknown-field"),
    (LLAMA, "train.py", "--nproc-per-node=8, train.py", "--nproc-per-node=4, train.py", "nproc-gpu-mismatch"),
    (LLAMA, "shm: 4Gi", PASSWORD % "hunter2-7Gx", PASSWORD % "{secretKeyRef: {name: db, key: pw}}", "plain-secret"),
    (LLAMA, "replicas: 2", MOUNTS % "data", MOUNTS % "cache", "duplicate-item"),
    ("jobs/horovod.yaml", "[mpirun, python", '[mpirun, -np, "8", python', "[mpirun, python", "mpi-slots-mismatch"),
    ("overlays/dev/overlay.yaml", "LOG_LEVEL: debug", "LOG_LEVEL: on", 'LOG_LEVEL: "on"', "ambiguous-scalar"),
    ("overlays/prod/overlay.yaml", "ml-prod", "ML_prod", "ml-prod", "invalid-value"),
]
"""File, right text, a fault, what its message says to write, and the rule."""


def replace(path: Path, old: str, new: str) -> int:
    """Replace text that occurs once, and return the number of the last line of the new text."""
    head, found, tail = path.read_text().partition(old)
    assert found
    assert old not in tail
    path.write_text(head + new + tail)
    return (head + new).count("\n") + 1


def test_ten_faults_are_found_explained_and_fixed_by_what_their_messages_say(tmp_path):
    run_jobgen_text(tmp_path, "init", "--skill")
    for name, *options in (("bert",), ("llama", "--gpus", "4"), ("horovod", "--framework", "mpi", "--gpus", "2")):
        assert run_jobgen_text(tmp_path, "new", name, *options).returncode == 0
    for file, right, wrong, _, _ in FAULTS:
        replace(tmp_path / file, right, wrong)
    # Replaced by themselves, because a later fault can move an earlier one.
    expected = {(file, replace(tmp_path / file, wrong, wrong), rule) for file, _, wrong, _, rule in FAULTS}

    done = run_jobgen_text(tmp_path, "lint", "--format", "json")
    found = without_infos(json.loads(done.stdout)["findings"])

    assert done.returncode == 1
    assert {(one["file"], one["line"], one["rule"]) for one in found} == expected
    for one in found:
        explained = run_jobgen_text(tmp_path, "explain", "--format", "json", one["rule"])
        assert one["page"].endswith(f"/docs/rules/{one['rule']}.md")
        assert json.loads(explained.stdout)["rule"]["page"] == one["page"]

    for file, _, wrong, fixed, _ in FAULTS:
        replace(tmp_path / file, wrong, fixed)
    clean = json.loads(run_jobgen_text(tmp_path, "lint", "--format", "json").stdout)

    assert without_infos(clean["findings"]) == []
    assert (clean["summary"]["suppressed"], clean["summary"]["environments"]) == (0, 2)


def test_a_policy_of_a_repository_has_no_page(tmp_path):
    run_jobgen_text(tmp_path, "init")
    replace(tmp_path / "jobs/pytorch.yaml", "{team: research}", "{}")
    found = json.loads(run_jobgen_text(tmp_path, "lint", "--format", "json").stdout)["findings"]
    explained = json.loads(run_jobgen_text(tmp_path, "explain", "--format", "json", "team-label").stdout)

    assert {(one["rule"], one.get("page")) for one in found} == {("team-label", None)}
    assert "page" not in explained["rule"]


def test_the_skill_is_written_for_all_assistants_and_can_be_added_later(tmp_path):
    run_jobgen_text(tmp_path, "init")
    assert not any((tmp_path / path).exists() for path in COPIES)
    replace(tmp_path / "README.md", "# Training jobs", "# Our jobs")
    added = run_jobgen_text(tmp_path, "init", "--skill")
    texts = {(tmp_path / path).read_text() for path in COPIES}
    _, head, body = texts.pop().split("---\n", 2)
    fields = yaml.safe_load(head)

    assert (added.returncode, texts) == (0, set())
    assert added.stderr.startswith("".join(f"{path} written\n" for path in COPIES) + "2 files; ")
    # What the format demands: the name is the folder, and the description has at most 1024 characters.
    assert (list(fields), fields["name"]) == (["name", "description"], "jobgen")
    assert len(fields["description"]) <= 1024
    assert "VERSION" not in body
    assert len(body.splitlines()) <= 70


def test_the_job_of_the_skill_has_no_findings(tmp_path):
    run_jobgen_text(tmp_path, "init")
    (tmp_path / "jobs/bert.yaml").write_text(re.search(r"```yaml\n(.*?)```", SKILL.read_text("utf-8"), re.DOTALL)[1])
    done = run_jobgen_text(tmp_path, "lint", "--format", "json", "jobs/bert.yaml")

    assert without_infos(json.loads(done.stdout)["findings"]) == []


@pytest.mark.parametrize("page", [SKILL, LLMS], ids=lambda page: page.name)
def test_commands_and_options_that_are_named_exist(page, tmp_path):
    named = re.findall(r"`jobgen ([a-z]+)([^`]*)`", page.read_text("utf-8"))

    assert named
    for name, rest in named:
        known = re.findall(r"(?<!\S)--?[a-z][a-z-]*", run_jobgen_text(tmp_path, name, "--help").stdout)
        assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", rest)) <= set(known), name


def test_llms_txt_has_the_shape_of_its_convention():
    title, summary, _, *sections = re.split(r"\n\n(?=[>#T])", LLMS.read_text("utf-8"))
    items = [line for section in sections for line in section.strip().split("\n\n")[1].split("\n")]

    assert title == "# jobgen"
    assert re.fullmatch(r"> .*", summary)
    assert [section.partition("\n")[0] for section in sections] == [
        f"## {name}" for name in ("Jobs", "Commands", "Findings", "Fixes", "Formats", "Optional")
    ]
    assert [line for line in items if not re.fullmatch(r"- \[[^]]+\]\([\w./]+\): \S.*[^.]", line)] == []
