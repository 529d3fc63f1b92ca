"""`lint --since REV` is the difference of two lints, for changes of jobs, overlays, policies and settings."""

import json
import os
import random
import subprocess
from collections import Counter

import pytest
from findings import without_infos
from linting import lint_paths
from sampling import sample

from jobgen.api.lint_files import LintRequest
from jobgen.api.lint_run import find_findings
from jobgen.api.since import findings_since
from jobgen.compare import change_rules
from jobgen.engine import workers as parallel
from jobgen.engine.store import Store
from jobgen.model.builtin_rules import CHANGE_RULES
from jobgen.repo import git
from jobgen.repo.commit import open_commit

SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  framework: pytorch
  image: registry.example.com/{image}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: ml-{env}
  defaults: {{{defaults}}}
"""
WHO = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def run(folder, *words):
    return subprocess.run(["git", *words], cwd=folder, check=True, env={**os.environ, **WHO}, capture_output=True)


def commit(folder):
    run(folder, "add", "-A")
    run(folder, "commit", "-q", "--allow-empty", "-m", "x")


def write(folder, path, text):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)


def found(folder, **options):
    out = lint_paths(folder, (), (), format_="json", **options).out
    entries = without_infos(json.loads(out)["findings"]) if out else []
    return Counter(
        (entry["rule"], entry["severity"], entry["message"], entry["file"], str(entry["object"]), entry["env"])
        for entry in entries
        if entry["rule"] not in CHANGE_RULES
    )


@pytest.fixture
def repository(tmp_path):
    run(tmp_path, "init", "-q")
    write(tmp_path, "jobs/a.yaml", SPEC.format(name="a", image="a:latest"))
    commit(tmp_path)
    return tmp_path


def test_since_reports_new_findings_only(repository):
    assert found(repository, since="HEAD") == Counter()
    write(repository, "jobs/b.yaml", SPEC.format(name="b", image="b:latest"))

    assert {(rule, file) for rule, _, _, file, _, _ in found(repository, since="HEAD")} == {
        ("mutable-image-tag", "jobs/b.yaml")
    }


def test_since_reports_old_jobs_changed_by_an_overlay(repository):
    write(repository, "jobs/c.yaml", SPEC.format(name="c", image="c:1"))
    commit(repository)
    patch = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  patches:\n    - match: {names: [c]}\n      merge:\n"
    write(repository, "overlays/prod/o.yaml", patch + "        image: c:main\n")

    assert ("mutable-image-tag", "overlays/prod/o.yaml") in {
        (rule, file) for rule, _, _, file, _, _ in found(repository, since="HEAD")
    }


def test_since_reports_findings_of_a_rule_turned_on(repository):
    write(repository, "jobgen.yaml", "rules: {mutable-image-tag: off}\n")
    commit(repository)
    (repository / "jobgen.yaml").unlink()

    assert [key[0] for key in found(repository, since="HEAD", policy_from=".")] == ["mutable-image-tag"]


def test_since_reports_a_base_that_cannot_be_rendered(repository):
    write(repository, "jobs/broken.yaml", SPEC.format(name="broken", image="x:1") + "  imag: y\n")
    commit(repository)
    write(repository, "jobs/broken.yaml", SPEC.format(name="broken", image="x:1"))
    out = json.loads(lint_paths(repository, (), (), format_="json", since="HEAD").out)["findings"]

    assert [(entry["rule"], entry["file"]) for entry in without_infos(out)] == [
        ("change-not-analyzed", "jobs/broken.yaml")
    ]


def test_another_syntax_error_is_new(repository):
    write(repository, "jobs/broken.yaml", "a: [1\nb: 2\n")
    commit(repository)
    write(repository, "jobs/broken.yaml", "a: 1\nfoo: 3\nc: [7\n")
    assert [rule for rule, *_ in found(repository, since="HEAD")] == ["yaml-syntax"]


def test_another_number_in_a_message_is_new(repository):
    text = SPEC.format(name="nodes", image="n:1") + "  command: [torchrun, --nnodes=4, train.py]\n"
    write(repository, "jobs/n.yaml", text + "  roles: {worker: {replicas: 2}}\n")
    commit(repository)
    assert found(repository, since="HEAD") == Counter()
    write(repository, "jobs/n.yaml", text + "  roles: {worker: {replicas: 3}}\n")
    assert "nnodes-mismatch" in {rule for rule, *_ in found(repository, since="HEAD")}


def test_since_leaves_work_tree_and_index_unchanged(repository):
    write(repository, "jobs/b.yaml", SPEC.format(name="b", image="b:latest"))
    before = run(repository, "status", "--porcelain").stdout, sorted(os.listdir(repository / ".git"))
    found(repository, since="HEAD")

    assert (run(repository, "status", "--porcelain").stdout, sorted(os.listdir(repository / ".git"))) == before


def test_since_ignores_export_attributes(repository):
    write(repository, ".gitattributes", "jobs/a.yaml export-ignore\n")
    commit(repository)

    assert found(repository, since="HEAD") == Counter()


@pytest.mark.parametrize(
    ("revision", "words"), [("nowhere", "there is no revision `nowhere`"), ("-x", "is not a revision")]
)
def test_unknown_revision_is_a_usage_error(revision, words, repository):
    result = lint_paths(repository, (), (), format_="text", since=revision)

    assert result.code == 2
    assert words in result.err


def test_shallow_clone_reports_what_to_fetch(repository, tmp_path_factory):
    commit(repository)
    clone = tmp_path_factory.mktemp("clone")
    run(repository, "clone", "-q", "--depth=1", f"file://{repository}", str(clone))
    first = git.resolve_commit(repository, "HEAD~1")
    result = lint_paths(clone, (), (), format_="text", since=first)

    assert result.code == 2
    assert f"`git fetch --depth=1 origin {first}`" in result.err


def test_revisions_need_a_git_repository(tmp_path):
    write(tmp_path, "jobs/a.yaml", SPEC.format(name="a", image="a:1"))
    result = lint_paths(tmp_path, (), (), format_="text", since="HEAD")

    assert result.code == 2
    assert "not a Git repository" in result.err


POD = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: a, namespace: ml}}
spec:
  pytorchReplicaSpecs:
    Master: {{replicas: 1, template: {{spec: {{containers: [{master}]}}}}}}
    Worker: {{replicas: 2, template: {{spec: {{containers: [{worker}]}}}}}}
"""
GOOD, BAD = "{name: pytorch, image: 'r.example.com/a:1'}", "{name: pytorch, image: 'r.example.com/a:latest'}"
LIST = """\
apiVersion: batch.tensorstack.dev/v1beta1
kind: PyTorchTrainingJob
metadata: {{name: a, namespace: ml}}
spec:
  replicaSpecs:
    - {{type: master, replicas: 1, template: {{spec: {{containers: [{master}]}}}}}}
    - {{type: worker, replicas: 2, template: {{spec: {{containers: [{worker}]}}}}}}
"""


IGNORED = CHANGE_RULES | {"mixed-image-versions"}


def new_rules(folder, *paths, **options):
    """The rule and the file of each finding since HEAD, besides those about the change itself."""
    out = json.loads(lint_paths(folder, paths, (), format_="json", since="HEAD", **options).out)["findings"]
    return [(entry["rule"], entry["file"]) for entry in without_infos(out) if entry["rule"] not in IGNORED]


@pytest.mark.parametrize("path", ["jobs/m.yaml", "manifests/m.yaml"])
@pytest.mark.parametrize("template", [POD, LIST])
def test_fault_that_moves_to_another_role_is_new(template, path, repository):
    write(repository, path, template.format(master=BAD, worker=GOOD))
    commit(repository)
    write(repository, path, template.format(master=GOOD, worker=BAD))

    assert new_rules(repository, path) == [("mutable-image-tag", path)]


def test_fault_that_moves_to_another_role_of_a_spec_is_new(repository):
    spec = SPEC.format(name="s", image="s:1")
    write(repository, "jobs/s.yaml", f"{spec}  roles: {{master: {{imag: x}}, worker: {{}}}}\n")
    commit(repository)
    assert new_rules(repository) == []
    write(repository, "jobs/s.yaml", f"{spec}  roles: {{master: {{}}, worker: {{imag: x}}}}\n")

    assert new_rules(repository) == [("unknown-field", "jobs/s.yaml")]


def test_fault_that_moves_to_another_container_is_new(repository):
    containers = "{{name: pytorch, image: 'r.example.com/a:{}'}}, {{name: side, image: 'r.example.com/a:{}'}}"
    write(repository, "jobs/m.yaml", POD.format(master=containers.format("latest", "1"), worker=GOOD))
    commit(repository)
    write(repository, "jobs/m.yaml", POD.format(master=containers.format("1", "latest"), worker=GOOD))

    assert new_rules(repository) == [("mutable-image-tag", "jobs/m.yaml")]


@pytest.mark.parametrize("path", ["jobs/m.yaml", "manifests/m.yaml"])
def test_items_before_a_fault_do_not_make_it_new(path, repository):
    write(repository, path, POD.format(master=BAD, worker=GOOD))
    commit(repository)
    more = "{name: first, image: 'r.example.com/b:1'}, {name: second, image: 'r.example.com/c:1'}, "
    write(repository, path, POD.format(master=more + BAD, worker=GOOD))

    assert new_rules(repository, path) == []


def test_items_before_an_invalid_field_do_not_make_it_new(repository):
    fields = "  podTemplate: {{spec: {{containers: [{}{{name: pytorch, imag: x}}]}}}}\n  imag: y\n"
    write(repository, "jobs/s.yaml", SPEC.format(name="s", image="s:1") + fields.format(""))
    commit(repository)
    write(
        repository,
        "jobs/s.yaml",
        SPEC.format(name="first", image="s:1")
        + "---\n"
        + SPEC.format(name="s", image="s:1")
        + "  env: {A: b}\n"
        + fields.format("{name: side, image: 'x:1'}, "),
    )

    assert new_rules(repository) == []


@pytest.mark.parametrize(
    "text", [SPEC.format(name="m", image="m:latest"), SPEC.format(name="m", image="m:1") + "  a: b\n"]
)
def test_faults_of_a_moved_file_are_old(text, repository):
    write(repository, "jobs/m.yaml", text)
    write(repository, "manifests/m.yaml", POD.format(master=BAD, worker=GOOD) + "  unknown: 1\n")
    commit(repository)
    (repository / "jobs/team").mkdir()
    run(repository, "mv", "jobs/m.yaml", "jobs/team/renamed.yaml")
    run(repository, "mv", "manifests", "other")
    write(repository, "jobs/team/renamed.yaml", f"# moved\n{text}")

    assert new_rules(repository) == []
    assert new_rules(repository, "jobs/team/renamed.yaml") == []
    assert new_rules(repository, "other") == []
    assert new_rules(repository, str(repository / "other/m.yaml")) == []


def test_very_large_commit_is_not_searched_for_moved_files(repository, monkeypatch):
    write(repository, "manifests/m.yaml", POD.format(master=BAD, worker=GOOD))
    commit(repository)
    monkeypatch.setattr("jobgen.api.since._MAX_SEARCHED", 2)

    assert new_rules(repository, "manifests/m.yaml") == []
    run(repository, "mv", "manifests", "other")
    assert new_rules(repository, "other") == [("mutable-image-tag", "other/m.yaml")]


def test_fault_of_an_unrelated_new_file_is_new(repository):
    write(repository, "jobs/m.yaml", SPEC.format(name="m", image="m:1") + "  unknown: 1\n")
    commit(repository)
    (repository / "jobs/m.yaml").unlink()
    write(repository, "jobs/n.yaml", "# other\n" * 20 + SPEC.format(name="n", image="n:1") + "  unknown: 1\n")

    assert ("unknown-field", "jobs/n.yaml") in new_rules(repository)


def test_fault_of_a_job_that_moves_to_another_file_is_old(repository):
    write(repository, "jobs/b.yaml", SPEC.format(name="b", image="b:1"))
    commit(repository)
    write(
        repository,
        "jobs/b.yaml",
        SPEC.format(name="b", image="b:1") + "---\n" + (repository / "jobs/a.yaml").read_text(),
    )
    (repository / "jobs/a.yaml").write_text(SPEC.format(name="c", image="c:1"))

    assert new_rules(repository) == []


def test_fault_of_a_manifest_with_the_same_name_in_another_file_is_new(repository):
    for folder, container in (("dev", BAD), ("prod", GOOD)):
        write(repository, f"{folder}/m.yaml", POD.format(master=container, worker=GOOD))
    commit(repository)
    for folder, container in (("dev", GOOD), ("prod", BAD)):
        write(repository, f"{folder}/m.yaml", POD.format(master=container, worker=GOOD))

    assert new_rules(repository, "dev", "prod") == [("mutable-image-tag", "prod/m.yaml")]


def test_fault_of_a_job_with_a_hashed_name_stays_old(repository):
    spec = SPEC.format(name="h", image="h:latest") + "  run: {identity: hash}\n"
    write(repository, "jobs/h.yaml", spec)
    commit(repository)
    write(repository, "jobs/h.yaml", spec + "  env: {A: b}\n")

    assert new_rules(repository) == []


def test_fault_of_a_sweep_stays_old_if_members_are_added(repository):
    spec = SPEC.format(name="s", image="s:latest")
    for values in ("'1', '2'", "'0', '1', '2'"):
        commit(repository)
        write(repository, "jobs/s.yaml", f"{spec}  matrix: {{lr: [{values}]}}\n  args: ['${{{{ matrix.lr }}}}']\n")

    assert new_rules(repository) == []


def test_fault_of_several_jobs_stays_old_when_another_job_is_the_largest(repository):
    budgets = "budgets: {teams: {nlp: {gpus: 4}}, sweeps: {gpus: 1}}"
    cluster = f"  cluster: {{state: cluster/prod, kueue: {{version: '0.16'}}, {budgets}}}\n"
    quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: gpus, namespace: ml-prod}\n"
    write(repository, "cluster/prod/quota.yaml", quota + "spec: {hard: {requests.nvidia.com/gpu: '4'}}\n")
    write(repository, "overlays/prod/o.yaml", OVERLAY.format(env="prod", defaults="") + cluster)
    for name, gpus in (("large", 8), ("small", 6), ("sweep", 1)):
        spec = SPEC.format(name=name, image="a:1").replace(f"name: {name}", f"name: {name}, labels: {{team: nlp}}")
        spec += f"  queue: gpus\n  resources: {{cpu: 1, memory: 1Gi, gpu: {gpus}}}\n"
        sweep = "  matrix: {lr: ['1', '2', '3']}\n  args: ['${{ matrix.lr }}']\n" if name == "sweep" else ""
        write(repository, f"jobs/{name}.yaml", spec + sweep)
    commit(repository)
    rules = {"exceeds-quota", "gpu-budget-exceeded", "queue-support-ending", "sweep-too-large"}
    assert rules <= {each["rule"] for each in read_findings(repository)}

    (repository / "jobs/large.yaml").unlink()
    sweep = (repository / "jobs/sweep.yaml").read_text()
    write(repository, "jobs/sweep.yaml", sweep.replace("'1', '2', '3'", "'2', '3'"))

    assert rules <= {each["rule"] for each in read_findings(repository)}
    assert {each["rule"] for each in read_findings(repository, since="HEAD")} & rules == set()


def test_fault_of_several_jobs_is_new_for_another_owner(repository):
    budgets = "  cluster: {budgets: {teams: {nlp: {gpus: 4}, vision: {gpus: 4}}}}\n"
    write(repository, "overlays/prod/o.yaml", OVERLAY.format(env="prod", defaults="") + budgets)
    for name, team in (("a", "nlp"), ("b", "vision")):
        commit(repository)
        spec = SPEC.format(name=name, image="a:1").replace(f"name: {name}", f"name: {name}, labels: {{team: {team}}}")
        write(repository, f"jobs/{name}.yaml", spec + "  resources: {cpu: 1, memory: 1Gi, gpu: 8}\n")

    found_now = [each for each in read_findings(repository, since="HEAD") if each["rule"] == "gpu-budget-exceeded"]
    assert [each["file"] for each in found_now] == ["jobs/b.yaml"]


def test_change_is_one_entry_for_all_environments_and_jobs(repository):
    base = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  defaults: {{env: {{A: '{value}'}}}}\n"
    write(repository, "overlays/base/o.yaml", base.format(value=1))
    for env in ("dev", "prod"):
        write(repository, f"overlays/{env}/o.yaml", OVERLAY.format(env=env, defaults="") + "  extends: [base]\n")
    for name in ("b", "c"):
        write(repository, f"jobs/{name}.yaml", SPEC.format(name=name, image="b:1"))
    commit(repository)
    write(repository, "overlays/base/o.yaml", base.format(value=2))
    text = lint_paths(repository, (), (), format_="text", since="HEAD").out
    (line,) = (line for line in text.splitlines() if "[edit-without-effect]" in line)
    assert line.startswith("overlays/base/o.yaml:")
    assert "; affects `PyTorchJob a` and 2 more (in dev, prod) [edit-without-effect]" in line
    listed = json.loads(lint_paths(repository, (), (), format_="json", since="HEAD").out)["findings"]
    assert [(one["env"], one["object"]["namespace"]) for one in listed] == [("dev", "ml-dev"), ("prod", "ml-prod")]


def read_findings(folder, **options):
    return json.loads(lint_paths(folder, (), (), format_="json", **options).out)["findings"]


def test_other_fault_at_the_same_place_is_new(repository):
    write(repository, "jobs/m.yaml", POD.format(master="{name: pytorch}", worker=GOOD))
    commit(repository)
    write(repository, "jobs/m.yaml", POD.format(master="{image: 'r.example.com/a:1'}", worker=GOOD))

    assert ("missing-field", "jobs/m.yaml") in new_rules(repository)


@pytest.mark.parametrize("seed", sample(range(6), 3))
def test_since_is_the_difference_of_two_lints_on_random_histories(seed, tmp_path):
    chance = random.Random(seed)
    run(tmp_path, "init", "-q")
    states = []
    for _ in range(4):
        for _ in range(chance.randint(1, 3)):
            _change(tmp_path, chance)
        commit(tmp_path)
        states.append((git.resolve_commit(tmp_path, "HEAD"), found(tmp_path)))
    _change(tmp_path, chance)
    now = found(tmp_path)
    for revision, then in states:
        assert found(tmp_path, since=revision, policy_from=".") == now - then


TRAINJOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: {name}, namespace: ml}}
spec:
  runtimeRef: {{name: torch}}
  trainer: {{image: "registry.example.com/{image}", numNodes: 2}}
"""
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: claim, namespace: ml}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu.nvidia.com, count: {count}}}}}]}}}}}}
"""
A, B, B2 = (SPEC.format(name=name, image=image) for name, image in (("a", "a:1"), ("b", "b:1"), ("b", "b:2")))
DATED = SPEC.format(name="c", image="c:1") + "  run: {expires: 2020-06-01}\n"
EDITS = {
    "one job": ({"jobs/a.yaml": A, "jobs/b.yaml": B}, {"jobs/b.yaml": B2}),
    "job removed": ({"jobs/a.yaml": A, "jobs/b.yaml": B}, {"jobs/b.yaml": ""}),
    "job moved": ({"jobs/a.yaml": A, "jobs/b.yaml": B}, {"jobs/b.yaml": "", "jobs/c/b.yaml": B2}),
    "the same job twice": ({"jobs/a.yaml": A, "jobs/b.yaml": B}, {"jobs/b.yaml": B2, "jobs/c.yaml": A}),
    "a job that cannot be rendered": ({"jobs/a.yaml": "a: [\n", "jobs/b.yaml": B}, {"jobs/b.yaml": B2}),
    "the old job cannot be rendered": ({"jobs/a.yaml": A, "jobs/b.yaml": "a: [\n"}, {"jobs/b.yaml": B2}),
    "overlay": (
        {"jobs/a.yaml": A, "jobs/b.yaml": B, "overlays/dev/o.yaml": OVERLAY.format(env="dev", defaults="")},
        {"overlays/dev/o.yaml": OVERLAY.format(env="dev", defaults="env: {A: 1}"), "jobs/b.yaml": B2},
    ),
    "overlay, and a job moved": (
        {"jobs/a.yaml": A, "jobs/b.yaml": B, "overlays/dev/o.yaml": OVERLAY.format(env="dev", defaults="")},
        {
            "overlays/dev/o.yaml": OVERLAY.format(env="dev", defaults="env: {A: 1}"),
            "jobs/b.yaml": "",
            "jobs/c/b.yaml": B2,
        },
    ),
    "overlay, and a claim": (
        {
            "jobs/a.yaml": A,
            "jobs/b.yaml": B,
            "jobs/claim.yaml": CLAIM.format(count=1),
            "overlays/dev/o.yaml": OVERLAY.format(env="dev", defaults=""),
        },
        {
            "overlays/dev/o.yaml": OVERLAY.format(env="dev", defaults="env: {A: 1}"),
            "jobs/b.yaml": B2,
            "jobs/claim.yaml": CLAIM.format(count=2),
        },
    ),
    "expired in the meantime": ({"jobs/b.yaml": B, "jobs/c.yaml": DATED}, {"jobs/b.yaml": B2}),
    "claim": (
        {"jobs/a.yaml": A, "jobs/b.yaml": B, "jobs/claim.yaml": CLAIM.format(count=1)},
        {"jobs/b.yaml": B2, "jobs/claim.yaml": CLAIM.format(count=2)},
    ),
    "runtime": (
        {"jobs/a.yaml": TRAINJOB.format(name="a", image="a:1"), "jobs/b.yaml": TRAINJOB.format(name="b", image="b:1")},
        {"jobs/b.yaml": TRAINJOB.format(name="b", image="b:2")},
    ),
}


@pytest.mark.parametrize("processes", ["one process", "several processes"])
@pytest.mark.parametrize("name", sample(EDITS, 6))
def test_since_is_the_same_with_and_without_results_in_memory(name, processes, tmp_path, monkeypatch):
    """What is equal at both revisions is processed once; findings about the change read changed files only."""
    if processes == "several processes":
        monkeypatch.setattr(parallel, "_MIN_ITEMS", 1)
        monkeypatch.setattr(parallel, "PIECE", 1)
        monkeypatch.setattr(change_rules, "_SHARE", 1)
        monkeypatch.setattr(parallel, "_count_cores", lambda: 2)
    old, new = EDITS[name]
    run(tmp_path, "init", "-q")
    for day, files in (("2020-01-01", old), ("2021-01-01", {})):
        for path, text in files.items():
            write(tmp_path, path, text)
        run(tmp_path, "add", "-A")
        dates = {"GIT_AUTHOR_DATE": f"{day}T00:00:00Z", "GIT_COMMITTER_DATE": f"{day}T00:00:00Z"}
        command = ["git", "commit", "-q", "--allow-empty", "-m", "x"]
        subprocess.run(command, cwd=tmp_path, check=True, env={**os.environ, **WHO, **dates})
    for path, text in new.items():
        write(tmp_path, path, text)
        if not text:
            (tmp_path / path).unlink()
    request, store = LintRequest(tmp_path), Store()
    expected = findings_since(request, "HEAD~", find_findings(request), Store()).new
    found = findings_since(request, "HEAD~", find_findings(request, store), store).new

    assert found._replace(contents=None) == expected
    assert bool(expected.findings) == (name != "a job that cannot be rendered")


def test_contents_differ_in_changed_files_only(repository):
    write(repository, "jobs/b.yaml", B)
    commit(repository)
    write(repository, "jobs/b.yaml", B2)
    request, store = LintRequest(repository), Store()
    now = find_findings(request, store).contents
    with open_commit(repository, git.resolve_commit(repository, "HEAD")) as old:
        before = find_findings(request._replace(committed=old), store).contents

    assert now is not None
    assert before is not None
    assert {path for path in now.digests if now.digests[path] != before.digests[path]} == {"jobs/b.yaml"}


def _change(folder, chance):
    kind = chance.choice(["job", "job", "gone", "overlay", "settings", "broken"])
    name = chance.choice("abc")
    path = folder / f"jobs/{name}.yaml"
    if kind == "job":
        text = SPEC.format(name=name, image=chance.choice(["x:1", "x:latest", "x", "x:main"]))
        write(folder, f"jobs/{name}.yaml", "# moved\n" * chance.randint(0, 5) + text)
    elif kind == "gone" and path.exists():
        path.unlink()
    elif kind == "overlay":
        defaults = chance.choice(["", "image: 'y:main'", "hostNetwork: true", "env: {A: 1}"])
        env = chance.choice(["dev", "prod"])
        write(folder, f"overlays/{env}/o.yaml", OVERLAY.format(env=env, defaults=defaults))
    elif kind == "settings":
        write(
            folder,
            "jobgen.yaml",
            chance.choice(["", "rules: {mutable-image-tag: error}\n", "rules: {mutable-image-tag: off}\n"]),
        )
    elif kind == "broken":
        write(folder, f"jobs/{name}.yaml", "a: [\n")
