"""The seed manifests: every spec under jobs/ renders to one of them, and is half as long."""

from pathlib import Path

import pytest
import yaml

from jobgen.rendering import config
from jobgen.rendering.render_task import render_jobs

HERE = Path(__file__).parent
ROOT = HERE.parent
SEEDS = {
    path.stem: yaml.load(path.read_text("utf-8"), yaml.CSafeLoader) for path in sorted((HERE / "seeds").glob("*.yaml"))
}
# Lines of each manifest as it was published, without comments, and the share of them that its spec may have.
LINES = {
    "mnist": (42, 0.5),
    "mxnet-job": (77, 0.5),
    "mxnet-single-job": (35, 0.5),
    "paddle-distributed-job": (24, 0.6),
    "paddle-simple-cpu": (22, 0.6),
    "pytorch-simple": (33, 0.5),
    "tensorflow-benchmarks": (65, 0.5),
}


@pytest.fixture(scope="module")
def objects():
    """What jobs/ renders to: for the Kubeflow base, and for TensorStack."""
    run = render_jobs(config.load_own(ROOT), ["base", "t9k"])
    made = {(rendered.env, rendered.identity.name): rendered.object for rendered in run.objects}
    assert run.findings == []
    return made


def test_specs_and_seeds_match():
    specs = {path.stem for path in (ROOT / "jobs").rglob("*.yaml")}

    assert specs == set(SEEDS) == set(LINES)


@pytest.mark.parametrize("name", SEEDS)
def test_spec_renders_to_its_seed(name, objects):
    made = objects["t9k" if name == "mnist" else "base", name]

    assert typed(made) == typed(SEEDS[name])


@pytest.mark.parametrize("name", SEEDS)
def test_spec_is_half_as_long_as_its_seed(name):
    [path] = (ROOT / "jobs").rglob(f"{name}.yaml")
    written = [line for line in path.read_text("utf-8").splitlines() if line.strip() and line.lstrip()[0] != "#"]
    lines, share = LINES[name]

    assert len(written) <= lines * share


def typed(tree):
    """The tree with the type of every scalar beside it, for Python takes 1 and True for the same."""
    if isinstance(tree, dict):
        return {key: typed(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [typed(value) for value in tree]
    return type(tree).__name__, tree
