"""Snippets: whole documents to begin with. Each of them lints without findings where it is meant for."""

import pytest
from completioncases import ask, load_known

import jobgen
from jobgen.features.editor.completion.items import read_examples

OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n"
PLATFORMS = {"colossalai": "tensorstack", "mxnet": "kubeflow, operators: {training-operator: 1.8.1}"}


def write(folder, files):
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def lint(folder):
    return [f"{found.location.file}:{found.location.line}: {found.rule}" for found in jobgen.lint(folder).findings]


def make_overlay(framework, example):
    platform = example.partition("  platform: ")[2].partition("\n")[0]
    cluster = PLATFORMS.get(framework, platform or "kubeflow")
    defaults = (
        "  defaults: {runPolicy: {cleanPodPolicy: Running}}\n"
        if "cleanPodPolicy: null" in example or framework == "mpi"
        else ""
    )
    return OVERLAY + f"  namespace: ml\n  cluster: {{platform: {cluster}}}\n" + defaults


@pytest.mark.parametrize("framework", read_examples())
def test_snippet_of_each_framework_lints_clean(tmp_path, framework):
    write(
        tmp_path, {"jobgen.yaml": "", "overlays/prod/overlay.yaml": make_overlay(framework, read_examples()[framework])}
    )
    known = load_known(tmp_path)

    text = ask(known, "█", "jobs/new.yaml").accept(f"job: {framework}")
    write(tmp_path, {"jobs/new.yaml": text})

    assert f"framework: {framework}" in text
    assert lint(tmp_path) == []


def test_snippets_of_overlays_patches_and_policies_lint_clean(tmp_path):
    write(tmp_path, {"jobgen.yaml": "", "overlays/base/overlay.yaml": OVERLAY + "  namespace: ml\n"})
    known = load_known(tmp_path)
    job = ask(known, "█", "jobs/new.yaml").accept("job: pytorch")
    overlay = ask(known, "█", "overlays/prod/overlay.yaml").accept("overlay")
    patched = ask(known, OVERLAY + "  namespace: dev\n  patches:\n    - █\n", "overlays/dev/overlay.yaml").accept(
        "patch"
    )
    whole = ask(known, "over█", "overlays/test/overlay.yaml").accept("overlay with a patch")
    policy = ask(known, "█", "policies/team-label.yaml").accept("policy")
    files = {"jobs/new.yaml": job, "overlays/prod/overlay.yaml": overlay, "overlays/dev/overlay.yaml": patched}
    write(tmp_path, files | {"overlays/test/overlay.yaml": whole, "policies/team-label.yaml": policy})

    assert lint(tmp_path) == []
    (tmp_path / "jobs/new.yaml").write_text(job.replace("team:", "group:"))
    assert "jobs/new.yaml:5: team-label" in lint(tmp_path)


def test_snippet_has_the_name_of_the_file_and_what_the_clusters_support_comes_first(tmp_path):
    write(tmp_path, {"jobgen.yaml": "", "overlays/prod/overlay.yaml": OVERLAY + "  cluster: {platform: kubeflow}\n"})
    known = load_known(tmp_path)

    asked = ask(known, "█", "jobs/nlp/bert-large.yaml")
    assert "  name: bert-large\n" in asked.accept("job: pytorch")
    for file, text in (("jobs/Bert_1.yaml", "█"), ("jobs/bert.yaml", "kind: Pod\n---\n█\n")):
        assert "  name: pytorch-example\n" in ask(known, text, file).accept("job: pytorch"), file
    labels = [label for label in asked.labels if label.startswith("job: ")]
    assert labels.index("job: xgboost") < labels.index("job: colossalai") < labels.index("job: mxnet")
    assert asked.find("job: mxnet").deprecated


def test_snippets_are_offered_for_empty_documents_only(tmp_path):
    write(tmp_path, {"jobgen.yaml": ""})
    known = load_known(tmp_path)

    assert "job: jax" in ask(known, "job█", "jobs/a.yaml").labels
    assert "job: jax" in ask(known, "kind: Pod\napiVersion: v1\n---\n█\n", "jobs/a.yaml").labels
    assert "job: jax" not in ask(known, "kind: Pod\n█", "jobs/a.yaml").labels
    assert "job: jax" not in ask(known, "█", "overlays/a/overlay.yaml").labels
