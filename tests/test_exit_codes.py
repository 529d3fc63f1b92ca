"""Exit codes and small faults: wrong arguments, closed and full outputs, limits of the system."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobgen
from jobgen.cli.commands.render import render

ROOT = Path(__file__).parent.parent
SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: ml}}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.2.3
"""
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n"


def write_files(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@pytest.fixture
def repository(tmp_path):
    files = {"jobgen.yaml": "", "jobs/bert.yaml": SPEC.format(name="bert"), "jobs/c.yaml": SPEC.format(name="c")}
    return write_files(tmp_path / "repository", files)


# --- The Python API ---


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda root: jobgen.render(root, "bert"), "`jobs` must be a list of strings, got one string; write ['bert']"),
        (lambda root: jobgen.render(root, environments="dev"), "`environments` must be a list of strings, got one"),
        (lambda root: jobgen.render(root, [1]), "`jobs` must be a list of strings, got 1 in it"),
        (lambda root: jobgen.render(root, None), "`jobs` must be a list of strings, got NoneType"),
        (lambda root: jobgen.lint(root, "jobs"), "`paths` must be a list of strings, got one string; write ['jobs']"),
        (lambda root: jobgen.lint(root, environments="dev"), "`environments` must be a list of strings"),
        (lambda root: jobgen.explain(root, "bert", environments="dev"), "`environments` must be a list of strings"),
        (lambda root: jobgen.diff(root, environments="dev"), "`environments` must be a list of strings"),
    ],
)
def test_arguments_of_wrong_types_are_type_errors(call, error, repository):
    with pytest.raises(TypeError) as raised:
        call(repository)
    assert error in str(raised.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda root: jobgen.render(root, format="x"),
        lambda root: jobgen.diff(root, format="x"),
        lambda root: jobgen.lint(root).to_text("x"),
    ],
)
def test_unknown_format_is_a_value_error(call, repository):
    with pytest.raises(ValueError, match="there is no format `x` \\(known: ") as raised:
        call(repository)
    assert isinstance(raised.value, jobgen.UsageError)


# --- What render prints ---


def test_unfiltered_stream_names_its_environments(repository):
    write_files(repository, {f"overlays/{env}/o.yaml": OVERLAY for env in ("dev", "prod")})
    dev, prod = (render(repository, (), [env], None, format_="yaml").out for env in ("dev", "prod"))

    assert "# environment" not in dev + prod
    both = render(repository, (), (), None, format_="yaml").out
    assert both == f"# environment: dev\n{dev}---\n# environment: prod\n{prod}"
    assert render(repository, (), ["dev", "prod"], None, format_="yaml").out == f"{dev}---\n{prod}"


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        ("{state: done}", "`bert` is done: its `run.state` is `done`"),
        ("{state: paused}", "`bert` is paused: its `run.state` is `paused`"),
        ("{expires: 2026-01-01}", "`bert` expired on `2026-01-01`; it is `2026-02-01`, the date of the commit or"),
    ],
)
def test_job_that_is_not_rendered_gets_a_reason(run, reason, repository):
    write_files(repository, {"jobs/bert.yaml": SPEC.format(name="bert") + f"  run: {run}\n"})
    result = render(repository, ("bert",), (), None, format_="yaml", today="2026-02-01")

    assert result.code == 3
    assert result.err.startswith(f"jobgen: {reason}")
    write_files(repository, {"overlays/dev/o.yaml": OVERLAY})
    assert " in dev\n" in render(repository, ("be*",), (), None, format_="yaml", today="2026-02-01").err


def test_image_of_the_plugin_has_git():
    lines = (ROOT / "deploy/argocd/Dockerfile").read_text().splitlines()
    last = max(number for number, line in enumerate(lines) if line.startswith("FROM "))

    assert any("apt-get install" in line and " git " in line for line in lines[last:])
