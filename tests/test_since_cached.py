"""`lint --since` and `diff` use what earlier runs stored; the result is that of a fresh run without any of it."""

import os
import random
import subprocess
from itertools import combinations

import pytest
from linting import lint_paths
from sampling import sample

from jobgen import cache, diff
from jobgen.api.errors import JobgenError
from jobgen.api.lint import lint_twice
from jobgen.api.lint_answers import ask_findings
from jobgen.api.lint_files import LintRequest, open_judge
from jobgen.api.lint_run import find_findings
from jobgen.api.since import findings_since
from jobgen.compare.snapshot import snapshot_repository
from jobgen.engine.store import Store
from jobgen.rendering import config
from jobgen.rendering.load_layers import digest_layers
from jobgen.repo import git
from jobgen.repo.commit import open_commit
from jobgen.repo.layout import Layers, own_layers
from jobgen.repo.root import open_store

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, labels: {{team: nlp}}}}
spec:
  framework: {framework}
  image: registry.example.com/{image}
  resources: {{cpu: 1, memory: 1Gi, gpu: {gpus}}}
"""
CLAIMING = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: claiming, labels: {team: nlp}}
spec:
  framework: pytorch
  image: registry.example.com/a:1
  podTemplate:
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: claim}]
      containers: [{name: pytorch, resources: {claims: [{name: gpu}]}}]
"""
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: claim, namespace: ml-{env}}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu.nvidia.com, count: {count}}}}}]}}}}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: gpu.nvidia.com}}
spec: {{extendedResourceName: nvidia.com/gpu}}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: ml-{env}
  cluster: {{state: {state}, kubernetes: "1.34", budgets: {{teams: {{nlp: {{gpus: {budget}}}}}}}}}
  defaults: {{{defaults}}}
"""
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: own}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], operations: [CREATE]}}]
  validations: [{{expression: "!object.metadata.name.startsWith('{start}')", message: no {start}}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: own}}
spec: {{policyName: own, validationActions: [Deny]}}
"""
QUEUES = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: gpus}
spec: {namespaceSelector: {}}
"""
GIT = {
    **{f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def run_git(folder, *words):
    subprocess.run(["git", *words], cwd=folder, check=True, env={**os.environ, **GIT}, capture_output=True)


def commit(folder):
    run_git(folder, "add", "-A")
    run_git(folder, "commit", "-q", "--allow-empty", "-m", "x")


def write(folder, path, text):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)


@pytest.fixture
def stored(tmp_path):
    """The folder of the cache, which is enabled until the test ends."""
    folder = tmp_path / "cache"
    cache.enable(folder, "test")
    yield folder
    cache.disable()


def without_cache(stored, work):
    cache.disable()
    try:
        return work()
    finally:
        cache.enable(stored, "test")


JUDGES = (".", "HEAD")
"""Whose settings decide: those of the folder, or those of the commit, as in `jobgen lint --since HEAD`."""


def lint_since(folder, judge):
    """Lint with a store, as `jobgen lint --since` does."""
    store = open_store(folder)
    with open_judge(LintRequest(folder, is_compared=True), judge) as request:
        found = findings_since(request, "HEAD", ask_findings(request, store), store).new
    store.save()
    return found._replace(contents=None, opinions=())


def lint_fresh(folder, judge):
    with open_judge(LintRequest(folder), judge) as request:
        return findings_since(request, "HEAD", find_findings(request), Store()).new._replace(opinions=())


def lint_judged(lint, folder):
    return [lint(folder, judge) for judge in JUDGES]


def lint_both(folder):
    """Lint as `jobgen report --since` does: from the cache if nothing has changed."""
    try:
        return lint_twice(LintRequest(folder), "HEAD")
    except JobgenError as error:
        return type(error), str(error)


def compare(folder, formats=("text", "json")):
    try:
        found = diff(folder, "HEAD", format=formats[0], more_formats=formats[1:])
    except JobgenError as error:
        return type(error), str(error)
    return found._replace(texts=dict(found.texts))


def start(folder, chance):
    run_git(folder, "init", "-q")
    for name in "abcd":
        write(folder, f"jobs/{name}.yaml", JOB.format(name=name, framework="pytorch", image="x:1", gpus=1))
    for _ in range(3):
        change(folder, chance)
    commit(folder)


def change(folder, chance):
    """Change one thing at random."""
    edits = (
        *(edit_job, edit_job, edit_job, remove_job, rename_job, break_job, add_dated),
        *(edit_overlay, edit_overlay, remove_overlay, extend_overlay, edit_settings),
        *(edit_policy, edit_state, edit_claim, edit_queue, edit_comment),
    )
    chance.choice(edits)(folder, chance)


def list_jobs(folder):
    return sorted((folder / "jobs").rglob("*.yaml"))


def edit_job(folder, chance):
    name, image = chance.choice("abcde"), chance.choice(["x:1", "x:latest", "y:2"])
    text = JOB.format(
        name=name, framework=chance.choice(["pytorch", "tensorflow"]), image=image, gpus=chance.choice([1, 8])
    )
    write(folder, f"jobs/{name}.yaml", text)


def remove_job(folder, chance):
    if len(list_jobs(folder)) > 1:
        chance.choice(list_jobs(folder)).unlink()


def rename_job(folder, chance):
    if list_jobs(folder):
        chance.choice(list_jobs(folder)).rename(folder / f"jobs/moved-{chance.randint(0, 3)}.yaml")


def break_job(folder, chance):
    if chance.random() < 0.3:
        write(
            folder,
            "jobs/broken.yaml",
            chance.choice(["a: [\n", JOB.format(name="f", framework="f", image="x", gpus=1)]),
        )


def add_dated(folder, chance):
    day = chance.choice(["2020-01-01", "2099-01-01"])
    job = JOB.format(name="dated", framework="pytorch", image="x:1", gpus=2)
    write(folder, "jobs/dated.yaml", f"{job}  run: {{expires: {day}}}\n")


def edit_overlay(folder, chance):
    env, budget = chance.choice(["dev", "prod"]), chance.choice([1, 4, 40])
    state = chance.choice(["cluster/a", "&here cluster/a", '"cluster/\\x61"'])
    defaults = chance.choice(["", "env: {A: '1'}", "image: 'z:main'"])
    write(folder, f"overlays/{env}/o.yaml", OVERLAY.format(env=env, state=state, budget=budget, defaults=defaults))


def remove_overlay(folder, chance):
    (folder / f"overlays/{chance.choice(['dev', 'prod', 'more'])}/o.yaml").unlink(missing_ok=True)


def extend_overlay(folder, chance):
    """Write an overlay that takes another one out of the environments."""
    base = chance.choice(["dev", "prod"])
    if (folder / f"overlays/{base}/o.yaml").exists():
        text = f"apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {{extends: [{base}], namespace: ml}}\n"
        write(folder, "overlays/more/o.yaml", text)


def edit_settings(folder, chance):
    severity, named = chance.choice(["error", "off", "info"]), chance.choice(["", "dev", "prod", "dev, prod", "lost"])
    environments = f"environments: [{named}]\n" if named else ""
    write(folder, "jobgen.yaml", f"{environments}rules: {{mutable-image-tag: {severity}}}\n")


def edit_policy(folder, chance):
    write(folder, "policies/own.yaml", POLICY.format(start=chance.choice("abc")))


def edit_state(folder, chance):
    write(folder, "cluster/a/claim.yaml", CLAIM.format(env=chance.choice(["dev", "prod"]), count=chance.choice([1, 8])))


def edit_claim(folder, chance):
    write(folder, "jobs/claiming.yaml", CLAIMING)
    if chance.random() < 0.5:
        write(folder, "jobs/claim.yaml", CLAIM.format(env="dev", count=chance.choice([1, 8])))


def edit_queue(folder, chance):
    write(folder, "jobs/queue.yaml", QUEUES + chance.choice(["", "# more\n"]))


def edit_comment(folder, chance):
    if list_jobs(folder):
        path = chance.choice(list_jobs(folder))
        path.write_text(path.read_text() + "# seen\n")


@pytest.mark.parametrize("seed", sample(range(6), 6))
def test_random_edits_give_the_result_of_a_fresh_run(seed, tmp_path, stored):
    chance, folder = random.Random(seed), tmp_path / "repository"
    folder.mkdir()
    start(folder, chance)
    for _ in range(3):
        lint_paths(folder, (), (), format_="text")
        change(folder, chance)
        if chance.random() < 0.3:
            commit(folder)
        change(folder, chance)
        fresh = without_cache(stored, lambda: (*lint_judged(lint_fresh, folder), compare(folder), lint_both(folder)))

        for _ in range(2):
            assert (*lint_judged(lint_since, folder), compare(folder), lint_both(folder)) == fresh
            assert lint_both(folder) == fresh[-1]


LAYERS = (edit_overlay, remove_overlay, extend_overlay, edit_settings, edit_policy, edit_state)


@pytest.mark.parametrize("seed", sample(range(8), 8))
def test_layers_with_one_digest_are_one_project_whoever_judges(seed, tmp_path):
    chance, folder = random.Random(seed), tmp_path / "repository"
    folder.mkdir()
    start(folder, chance)
    for _ in range(12):
        before = {path: path.read_bytes() for path in folder.rglob("*.yaml")}
        chance.choice(LAYERS)(folder, chance)
        found, rules = [describe_layers(own_layers(folder))], {each.rule for each in config.load_own(folder).findings}
        with open_commit(folder, git.resolve_commit(folder, "HEAD")) as old:
            found += map(describe_layers, (own_layers(old), Layers(folder, old)))
        for one, other in combinations(found, 2):
            # That the settings name an environment that nobody has is an error unless others judge.
            assert one[0] != other[0] or one[1] == other[1] or "unknown-overlay" in rules
        if before == {path: path.read_bytes() for path in folder.rglob("*.yaml")}:
            assert len({digest for digest, _ in found}) == 1, (
                "layers that are equal to those that judge have their digest"
            )
        commit(folder)


def describe_layers(layers):
    """Return the digest of layers, and what these mean to jobs."""
    project = config.load(layers)
    names = project.environments()
    environments = [project.environment(name, []) for name in names]
    return digest_layers(layers), repr((names, environments, project.settings, project.teams.all))


@pytest.mark.parametrize("state", ["cluster/a", "&here cluster/a"])
def test_exported_state_that_changes_is_noticed(state, tmp_path, stored):
    folder = tmp_path / "repository"
    folder.mkdir()
    run_git(folder, "init", "-q")
    write(folder, "jobs/claiming.yaml", CLAIMING)
    write(folder, "overlays/prod/o.yaml", OVERLAY.format(env="prod", state=state, budget=4, defaults=""))
    write(folder, "cluster/a/claim.yaml", CLAIM.format(env="prod", count=1))
    commit(folder)
    assert "gpu-budget-exceeded" not in lint_paths(folder, (), (), format_="text").out
    write(folder, "cluster/a/claim.yaml", CLAIM.format(env="prod", count=8))

    assert "gpu-budget-exceeded" in lint_paths(folder, (), (), format_="text").out
    own, judged = (lint_paths(folder, (), (), format_="text", since="HEAD", policy_from=each).out for each in (".", ""))
    assert "gpu-budget-exceeded" in own
    assert "gpu-budget-exceeded" not in judged, "the state of HEAD judges"
    assert "[weaker-governance]" in judged


def test_unchanged_files_are_compared_by_their_summaries(tmp_path, stored):
    folder = tmp_path / "repository"
    folder.mkdir()
    start(folder, random.Random(0))
    for path in list_jobs(folder):
        path.unlink()
    for name in "abcd":
        write(folder, f"jobs/{name}.yaml", JOB.format(name=name, framework="pytorch", image="x:1", gpus=1))
    commit(folder)
    lint_paths(folder, (), (), format_="text")
    write(folder, "jobs/b.yaml", JOB.format(name="b", framework="pytorch", image="x:2", gpus=1))
    equal = frozenset(f"jobs/{name}.yaml" for name in "acd")
    snapshot = snapshot_repository(folder, "new", store=open_store(folder), summarized=equal)

    rendered = {one.location.file for one in snapshot.objects if isinstance(one.object, dict)}
    assert rendered == {"jobs/b.yaml"}
    summaries = [one for one in snapshot.objects if not isinstance(one.object, dict)]
    assert {one.location.file for one in summaries} == equal
    whole = {one[2:]: one for one in snapshot_repository(folder, "whole").objects}
    for one in summaries:
        assert one.object.totals == snapshot.sum_resources(whole[one[2:]])
        assert one.object.groups == snapshot.list_groups(whole[one[2:]])
