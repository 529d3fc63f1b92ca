"""The language server in a real editor: Neovim without a screen opens files, hovers and applies a code action."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from terminalpicture import draw_screen

ROOT = Path(__file__).parent.parent
SESSION = ROOT / "tests/neovim/session.lua"
FILES = {
    "jobgen.yaml": "environments: [dev, prod]\n",
    "overlays/base/overlay.yaml": """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  cluster: {platform: kubeflow}
  defaults: {labels: {team: nlp}}
""",
    "overlays/dev/overlay.yaml": """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  extends: [base]
  namespace: ml-dev
""",
    "overlays/prod/overlay.yaml": """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  extends: [base]
  namespace: ml-prod
  patches:
    - match: {names: [bert]}
      merge: {roles: {worker: {replicas: 8}}}
""",
    "jobs/bert.yaml": """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  image: registry.example.com/train:1.2
  resources: {cpu: 4, memory: 16Gi, gpus: 1}
  roles:
    master: {}
    worker: {replicas: 2}
""",
    # An é and an emoji before the fault: Neovim counts bytes, the protocol UTF-16 units.
    "jobs/wide.yaml": """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: wide, annotations: {note: "é 🚀"}, lables: {a: b}}
spec: {framework: pytorch, image: registry.example.com/train:1.2}
""",
}
_CONFIG_VERSION = 11
"""The minor version of Neovim that has `vim.lsp.config`."""
DRAWN_VERSION = 7
"""Debian 12 has it."""
PICTURES = {
    "findings.svg": "Neovim shows a finding beside its line while the file is edited",
    "hover.svg": "Neovim shows the value of a field in each environment, and what sets it",
}
FAULTS = ["unknown-resource"]
STEPS = [
    {"step": "open", "file": "jobs/bert.yaml"},
    {"step": "findings", "rules": FAULTS},
    {"step": "screen"},
    {"step": "type", "from": "gpus", "to": "gpu"},
    {"step": "findings", "rules": []},
    {"step": "undo"},
    {"step": "findings", "rules": FAULTS},
    {"step": "cursor", "text": "gpus"},
    {"step": "code_action", "title": "rename to `gpu`"},
    {"step": "findings", "rules": []},
    {"step": "buffer"},
    {"step": "complete", "line": 6, "text": "  res"},
    {"step": "findings", "rules": ["yaml-syntax"]},
    {"step": "undo"},
    {"step": "findings", "rules": []},
    {"step": "cursor", "text": "replicas"},
    {"step": "hover"},
    {"step": "screen"},
    {"step": "close_floats"},
    {"step": "rendered", "command": "JobgenRendered prod"},
    {"step": "lens"},
    {"step": "cursor", "text": "replicas"},
    {"step": "definition"},
    {"step": "findings", "rules": ["unknown-field"], "file": "jobs/wide.yaml"},
    {"step": "open", "file": "jobs/wide.yaml"},
    {"step": "findings", "rules": ["unknown-field"]},
]


def find_minor_version(nvim: str) -> int:
    printed = subprocess.run([nvim, "--version"], capture_output=True, text=True, check=True).stdout
    return int(re.match(r"NVIM v0\.(\d+)", printed)[1])


def find_configuration(nvim: str) -> str:
    """Return the configuration that docs/editors.md has for the version of Neovim."""
    page = (ROOT / "docs/editors.md").read_text().partition("## Neovim")[2]
    newest, older, commands = re.findall(r"^```lua\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[:3]
    return (newest if find_minor_version(nvim) >= _CONFIG_VERSION else older) + commands


def run_session(folder: Path, steps: list[dict]) -> list[dict]:
    """Run the steps in Neovim, and return what each of them saw."""
    nvim = shutil.which("nvim")
    if nvim is None:
        pytest.skip("nvim is not installed")
    for path, text in FILES.items():
        (folder / "repository" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "repository" / path).write_text(text)
    (folder / "init.lua").write_text(find_configuration(nvim))
    settings = {"root": str(folder / "repository"), "config": str(folder / "init.lua"), "steps": steps}
    (folder / "steps.json").write_text(json.dumps(settings))
    variables = {
        "SESSION_STEPS": str(folder / "steps.json"),
        "SESSION_RESULT": str(folder / "result.json"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        # Its log and state must not be those of the user.
        **{name: str(folder / name) for name in ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")},
    }
    done = subprocess.run(
        [nvim, "--headless", "--clean", "-n", "-S", SESSION],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "result.json").read_text())


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    results = run_session(tmp_path_factory.mktemp("neovim"), STEPS)

    assert [(each["step"], each["value"]) for each in results if not each["ok"]] == []
    assert len(results) == len(STEPS)
    return results


def seen(session: list[dict], step: str) -> list:
    return [each["value"] for each in session if each["step"] == step]


def test_documented_configuration_starts_one_server_for_a_repository(session):
    opened = seen(session, "open")

    assert {each["client"] for each in opened} == {"jobgen"}
    assert [Path(each["name"]).name for each in opened] == ["bert.yaml", "wide.yaml"]
    assert {Path(each["root"]).name for each in opened} == {"repository"}


@pytest.mark.stress
def test_findings_are_shown_on_their_text_and_follow_the_buffer(session):
    first, fixed, again, *_ = seen(session, "findings")

    assert [(each["rule"], each["line"], each["text"]) for each in first] == [("unknown-resource", 7, "gpus")]
    assert first[0]["message"].endswith("write `gpu` (in dev, prod)")
    assert fixed == []
    assert again == first


def test_findings_after_wide_characters_are_on_their_text_before_and_after_the_file_is_opened(session):
    *_, closed, opened = seen(session, "findings")

    assert [(each["line"], each["text"]) for each in closed] == [(3, "lables")]
    assert opened == closed


def test_screen_shows_the_finding_beside_its_line(session):
    rows = ["".join(text for text, _ in runs) for runs in seen(session, "screen")[0]["rows"]]
    (line,) = [row for row in rows if "gpus: 1" in row]

    assert line.startswith("E ")
    assert "containers cannot request the resource `gpus`" in line


def test_code_action_of_a_finding_edits_the_buffer(session):
    (titles,) = seen(session, "code_action")
    (lines,) = seen(session, "buffer")
    _, _, _, after, *_ = seen(session, "findings")

    assert any("rename to `gpu`" in title for title in titles)
    assert any(title.startswith("Suppress unknown-resource") for title in titles)
    assert "\n".join(lines) + "\n" == FILES["jobs/bert.yaml"].replace("gpus", "gpu")
    assert after == []


def test_hover_shows_the_value_in_each_environment(session):
    (lines,) = seen(session, "hover")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]

    assert cells[0] == ["environment", "value", "set by"]
    assert [row[:2] for row in cells[2:]] == [["dev", "`2`"], ["prod", "`8`"]]
    assert cells[3][2].startswith("patch of prod, overrides `2` of job")
    assert len({line.index("|", 1) for line in lines if line.startswith("|")}) == 1


def test_definition_of_a_value_is_the_patch_that_sets_it(session):
    ((path, line, text),) = seen(session, "definition")

    assert path.endswith("overlays/prod/overlay.yaml")
    assert (line, text.strip()) == (8, "merge: {roles: {worker: {replicas: 8}}}")


def test_documented_command_shows_the_rendered_manifest(session):
    ((text, filetype, is_modifiable),) = seen(session, "rendered")

    assert "kind: PyTorchJob" in text
    assert "namespace: ml-prod" in text
    assert "replicas: 8" in text
    assert (filetype, is_modifiable) == ("yaml", False)


def test_lens_opens_the_rendered_manifest(session):
    ((title, text),) = seen(session, "lens")

    assert title.startswith("dev: ")
    assert "namespace: ml-dev" in text


def test_completion_offers_the_fields_of_a_job(session):
    labels, omnifunc = seen(session, "complete")[0]
    assert omnifunc == "v:lua.vim.lsp.omnifunc"

    assert {"command", "queue"} <= set(labels)
    # Fields that the job has already are not offered again.
    assert "image" not in labels


def test_pictures_of_the_page_are_up_to_date(session, accept):
    """The pictures in docs/editors/ are drawn here, from what Debian's Neovim shows: `pytest --accept`."""
    drawn = dict(zip(PICTURES, map(draw_screen, seen(session, "screen"), PICTURES.values()), strict=True))
    page = (ROOT / "docs/editors.md").read_text()
    if accept:
        for name, picture in drawn.items():
            (ROOT / "docs/editors" / name).write_text(picture)
    if find_minor_version(shutil.which("nvim")) != DRAWN_VERSION:
        pytest.skip("another version of Neovim draws other screens")

    assert {path.name: path.read_text() for path in (ROOT / "docs/editors").iterdir()} == drawn
    assert [name for name in drawn if f"(editors/{name})" not in page] == []
