"""While a line is half typed, the findings of the other lines of a document stay."""

import pytest
from test_lsp import JOB, OVERLAY
from test_lsp_faults import write

from jobgen.features.editor.context import GoodText, keep_findings
from jobgen.features.editor.workspace import Workspace

UNTAGGED = JOB.replace("train:1.2", "train")


@pytest.fixture
def show(tmp_path):
    """A function that returns the lines and rules that are shown for a text, when another one was good before."""
    files = {"jobs/bert.yaml": JOB, "overlays/prod/overlay.yaml": OVERLAY, "jobgen.yaml": "environments: [prod]\n"}
    workspace = Workspace(write(tmp_path, files))

    def lint(text):
        workspace.open(tmp_path / "jobs/bert.yaml", text)
        return workspace.lint_file("jobs/bert.yaml").own

    def show(good, text, *, all_shown=False):
        kept = keep_findings(GoodText(good, lint(good)), text, lint(text))
        # Most faults hide nothing, so nothing has to be kept.
        shown = lint(text) if kept is None and all_shown else kept
        return shown and sorted((each.location.line, each.rule) for each in shown)

    return show


@pytest.mark.parametrize(
    ("typed", "rule"),
    [
        ("  res", "yaml-syntax"),
        ("  restartPolicy: Nev", "invalid-value"),
        ('  shm: "', "yaml-syntax"),
        ("  env: {", "yaml-syntax"),
        ("  command: [a", "yaml-syntax"),
        ("  roles: work", "wrong-type"),
        ("  roles:\n    work", "wrong-type"),
        ("  env:\n    - name: A\n      val", "yaml-syntax"),
        ("  unknown: 1", "unknown-field"),
    ],
)
def test_findings_of_other_lines_stay_while_a_line_is_typed(show, typed, rule):
    image = UNTAGGED.splitlines().index("  image: registry.example.com/train") + 1
    below = f"{UNTAGGED}{typed}\n"
    line = len(below.splitlines())
    shown = show(f"{UNTAGGED}\n", below, all_shown=True)
    assert (image, "untagged-image") in shown
    assert rule in {name for at, name in shown if at >= line}
    assert len({name for _, name in shown}) == 2

    above = UNTAGGED.replace("spec:\n", f"spec:\n{typed}\n")
    assert (image + 1 + typed.count("\n"), "untagged-image") in show(UNTAGGED, above, all_shown=True)


def test_a_finding_of_the_line_that_is_typed_goes(show):
    assert show(UNTAGGED, UNTAGGED.replace("train\n", "train: x\n")) is None
    assert show(UNTAGGED, UNTAGGED.replace("image: ", "image ")) is None


@pytest.mark.parametrize(
    "text",
    [
        UNTAGGED,
        UNTAGGED + "  shm: 4Gi\n",
        UNTAGGED.replace("gpu: 1", "gpu: 2"),
        UNTAGGED + "  one\n  two\n  three\n  four\n",
        JOB,
    ],
)
def test_nothing_is_kept_in_complete_text_and_after_edits_of_several_lines(show, text):
    assert show(UNTAGGED, text) is None


def test_an_error_that_changes_is_not_kept_beside_the_new_one(show):
    before, after = f"{UNTAGGED}  roles:\n", f"{UNTAGGED}  roles:\n    w"
    assert show(before, after) is None
