"""Jobs and overlays to manifests: a case is a folder, its whole input beside its whole output.

`job*.yaml` stand under jobs/, `overlay*.yaml` under overlays/env/; larger cases are laid out as repositories.
What is found wrong is in findings.txt. `pytest --accept` writes both outputs.
"""

import shutil
from pathlib import Path

import pytest

from jobgen import catalogue
from jobgen.emit import to_yaml
from jobgen.pipeline import Run
from jobgen.report import text

CASES = sorted((Path(__file__).parent / "render").iterdir())
PLACES = {"job": "jobs", "overlay": "overlays/env"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_jobs_of_a_case_render_to_what_stands_beside_them(case, tmp_path, request):
    lay_out(case, tmp_path)
    shelf = catalogue.load(tmp_path)
    run = Run(shelf, shelf.environments())
    objects = list(run)
    outputs = {"expected.yaml": stream(objects), "findings.txt": text.render(run.findings)}

    if request.config.getoption("--accept", default=False):
        accept(case, outputs)
    for name, output in outputs.items():
        assert output == ((case / name).read_text("utf-8") if (case / name).exists() else "")


def lay_out(case, root):
    """Make a repository of a case."""
    (root / "jobgen.yaml").write_text("{}\n")
    for entry in case.iterdir():
        if entry.is_dir():
            shutil.copytree(entry, root / entry.name)
        elif entry.name not in ("expected.yaml", "findings.txt"):
            folder = root / PLACES.get(entry.stem.split("-")[0], "")
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(entry, folder)


def stream(objects):
    """All objects, environment by environment, under its name if there are several."""
    environments = sorted({made.env for made in objects})
    documents = []
    for env in environments:
        heading = f"# {env}\n" if len(environments) > 1 else ""
        documents += [heading + to_yaml(made.object) for made in objects if made.env == env]
    return "---\n".join(documents)


def accept(case, outputs):
    for name, output in outputs.items():
        (case / name).unlink(missing_ok=True)
        if output:
            (case / name).write_text(output, "utf-8")
