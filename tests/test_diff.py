"""`jobgen diff`: what a merge does.

A transcript in diff/ holds two repositories, `old` and `new`, the report about them in each format, and the findings of
`lint --since`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import click
import jsonschema
import pytest
from command import run_jobgen
from growth import grows_with_the_square
from transcripts import find_transcripts, read_transcript

from jobgen.api.diff import format_names as api_formats
from jobgen.cli.commands.diff import command, diff_states
from jobgen.compare.change_rules import check_change
from jobgen.compare.formats import FORMATS as DIFF_FORMATS
from jobgen.compare.formats import markdown
from jobgen.compare.operator_behavior import Effect
from jobgen.model.builtin_rules import CHANGE_RULES
from jobgen.repo import git
from jobgen.reports.entries import format_findings

ROOT = Path(__file__).parent.parent
TRANSCRIPTS = {path.stem: read_transcript(path) for path in find_transcripts("diff")}
SCHEMA = json.loads((ROOT / "docs/diff_v1.json").read_text())
# Deltas state the same once more, for Python: tests/test_delta.py.
FORMATS = sorted({*DIFF_FORMATS.names()} - {"delta"}, reverse=True)
GPU = "nvidia.com/gpu"
WHO = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
}
SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, labels: {{team: {team}}}}}
spec:
  framework: pytorch
  image: registry.example.com/{image}
  roles: {{worker: {{replicas: {replicas}, resources: {{gpu: {gpus}}}}}}}
"""
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {cluster: {gitops: argocd}, namespace: ml}\n"


def spec(name="bert", image="x:1", replicas=2, gpus=1, team="nlp"):
    return SPEC.format(name=name, image=image, replicas=replicas, gpus=gpus, team=team)


def write(folder, path, content):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(content)


def run(folder, *words):
    done = subprocess.run(["git", *words], cwd=folder, check=True, env={**os.environ, **WHO}, capture_output=True)
    return done.stdout.decode()


def commit(folder):
    run(folder, "add", "-A")
    run(folder, "commit", "-q", "--allow-empty", "-m", "x")


def between(home, *folders, format_="text", envs=(), exit_code=False):
    return diff_states(home, "", envs, folders=folders or ("old", "new"), format_=format_, exit_code=exit_code)


def since(root, revisions="", *, format_="json", envs=(), exit_code=False):
    return diff_states(root, revisions, envs, format_=format_, exit_code=exit_code)


def told(result):
    """What happens to which object."""
    assert result.err == ""
    return sorted(
        (one["happening"], one["effect"], one["env"], (one["object"] or one["was"])["name"])
        for one in json.loads(result.out)["objects"]
    )


@pytest.fixture
def repository(tmp_path):
    run(tmp_path, "init", "-q", "-b", "main")
    write(tmp_path, "overlays/prod/o.yaml", OVERLAY)
    write(tmp_path, "jobs/bert.yaml", spec())
    commit(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """The folders that hold `old` and `new` of each transcript."""
    folders = {name: tmp_path_factory.mktemp(name) for name in TRANSCRIPTS}
    for name, transcript in TRANSCRIPTS.items():
        transcript.write_repository(folders[name])
    return folders


@pytest.fixture(params=TRANSCRIPTS)
def case(request, cases):
    return cases[request.param]


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_diff_transcript(name, cases, accept):
    transcript, folder = TRANSCRIPTS[name], cases[name]
    results = {format_: between(folder, format_=format_) for format_ in FORMATS}
    sections = {format_: result.out for format_, result in results.items()}
    sections["findings"] = format_findings(check_change(folder / "old", folder / "new"))
    output = {section: content.encode() for section, content in sections.items()}
    if accept:
        transcript = transcript.accept([output])

    assert [(result.code, result.err) for result in results.values()] == [(0, "")] * len(FORMATS)
    assert output == transcript.expected


def test_findings_of_a_folder_are_those_of_its_repository(cases, tmp_path):
    case = cases["every-effect"]
    here = check_change(case / "old/jobs", case / "new/jobs")

    assert here == check_change(case / "old", case / "new") != []
    assert check_change(case / "old", tmp_path) == []
    assert check_change(tmp_path, case / "new") == []


def test_settings_change_the_severity_of_two_sided_rules(cases, tmp_path):
    shutil.copytree(cases["every-effect"] / "new", tmp_path / "new")
    write(tmp_path, "new/jobgen.yaml", "rules: {edit-without-effect: off, running-job-deleted: error}\n")
    found = check_change(cases["every-effect"] / "old", tmp_path / "new")

    assert {(one.rule, one.severity.value) for one in found} == {
        ("queue-changed", "error"),
        ("running-job-deleted", "error"),
    }


def test_transcripts_have_every_effect_and_every_rule():
    expected = [transcript.expected for transcript in TRANSCRIPTS.values()]
    effects = {one["effect"] for sections in expected for one in json.loads(sections["json"])["objects"]}
    rules = {
        rule
        for sections in expected
        for rule in re.findall(r"\[([a-z-]+)\]$", sections["findings"].decode(), re.MULTILINE)
    }

    assert effects == {effect.value for effect in Effect}
    # That a side cannot be rendered is no case of a comparison.
    governance = {"backdated-commit", "governance-change", "weaker-governance"}
    assert rules == CHANGE_RULES - {"change-not-analyzed"} - governance


def test_json_matches_its_schema(case):
    report = json.loads(between(case, format_="json").out)

    assert [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(report)] == []


def rendered(root, *words):
    """What `jobgen render` prints; it may write a tree, too."""
    done = run_jobgen(root, "render", *words)
    done.check_returncode()
    return done.stdout


def counted(root):
    """Accelerators by environment and namespace, counted in the rendered manifests without any of our knowledge."""
    counts = Counter()
    for env in sorted(path.name for path in (root / "overlays").iterdir()):
        for made in json.loads(rendered(root, "-e", env, "--format", "json"))["items"]:
            counts[env, made["metadata"]["namespace"]] += gpus_below(made.get("spec", {}))
    return +counts


def gpus_below(node, replicas=1):
    if isinstance(node, list):
        return sum(gpus_below(child, replicas) for child in node)
    if not isinstance(node, dict):
        return 0
    here = replicas * node.get("replicas", node.get("numNodes", 1))
    return sum(
        here * int(child.get(GPU, 0)) if key == "limits" else gpus_below(child, here) for key, child in node.items()
    )


def test_totals_match_the_rendered_manifests(case):
    totals = json.loads(between(case, format_="json").out)["totals"]
    for side, folder in (("before", "old"), ("after", "new")):
        found = {(one["env"], one["name"]): one[side]["gpus"] for one in totals if one["by"] == "namespace"}
        sums = {one["env"]: one[side]["gpus"] for one in totals if one["by"] == "environment"}
        expected = counted(case / folder)

        assert +Counter(found) == expected
        assert +Counter(sums) == sum((Counter({env: count}) for (env, _), count in expected.items()), Counter())


def test_causes_point_at_the_line_with_the_value(case):
    told_of = 0
    for one in json.loads(between(case, format_="json").out)["objects"]:
        for field in one["fields"]:
            for folder, cause, value in (("new", field["cause"], field["new"]), ("old", field["was"], field["old"])):
                if cause and not cause["file"].startswith("built-in:") and not isinstance(value, (dict, list)):
                    line = (case / folder / cause["file"]).read_text().splitlines()[cause["line"] - 1]
                    told_of += 1
                    # The hash of a run is of all its lines.
                    written = re.sub(r"-[0-9a-f]{8}$", "", value) if field["field"] == "metadata.name" else value
                    assert str(written).lower() in line.lower(), field

    assert told_of > 10


def test_diff_of_rendered_trees_equals_diff_of_their_repositories(case, tmp_path):
    for folder in ("old", "new"):
        rendered(case / folder, "-o", tmp_path / folder)
    # A tree knows no clusters of its own; a repository around it does.
    write(tmp_path, "jobgen.yaml", "")
    for path in (case / "new/overlays").rglob("*.yaml"):
        write(tmp_path, f"overlays/{path.relative_to(case / 'new/overlays')}", path.read_text())
    here, there = told(between(tmp_path, format_="json")), told(between(case, format_="json"))
    # Without jobs/, only an annotation shows that one object replaces another.
    moved = {name for *_, name in there if name in ("moved", "queued-job")}

    assert [one for one in here if one[-1] not in moved] == [one for one in there if one[-1] not in moved]


def test_environment_of_a_tree_is_its_folder(tmp_path):
    for folder, image in (("old", "x:1"), ("new", "x:2")):
        write(tmp_path, f"{folder}-repo/overlays/prod/o.yaml", OVERLAY)
        write(tmp_path, f"{folder}-repo/jobs/bert.yaml", spec(image=image))
        rendered(tmp_path / f"{folder}-repo", "-o", tmp_path / folder)
    entry = json.loads(between(tmp_path, format_="json").out)["objects"][0]

    assert (entry["env"], entry["effect"]) == ("prod", "no-effect")
    assert entry["fields"][0]["cause"]["file"] == "prod/ml/pytorchjob-bert.yaml"


def test_folders_of_manifests_need_no_repository(tmp_path):
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{x: {}}}\n"
    write(tmp_path, "old/a.yaml", manifest.format("'1'"))
    write(tmp_path, "new/b/renamed.yaml", manifest.format("'2'"))

    assert told(between(tmp_path, format_="json")) == [("changed", "in-place", "", "a")]


def test_reason_of_a_change_is_that_of_the_spec_if_metadata_has_the_same_effect(tmp_path):
    for folder, replicas in (("old", 1), ("new", 3)):
        job = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "a", "namespace": "ml", "annotations": {"workers": str(replicas)}},
            "spec": {
                "pytorchReplicaSpecs": {"Worker": {"replicas": replicas, "template": {"spec": {"containers": []}}}}
            },
        }
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "job.json").write_text(json.dumps(job))

    result = between(tmp_path, tmp_path / "old", tmp_path / "new")

    assert "pods are added or removed" in result.out.split("\n")[1]


def test_single_revision_is_compared_with_the_work_tree(repository):
    write(repository, "jobs/bert.yaml", spec(image="x:2"))
    before = run(repository, "status", "--porcelain"), sorted(os.listdir(repository / ".git"))

    assert told(since(repository, "HEAD")) == [("changed", "no-effect", "prod", "bert")]
    assert (run(repository, "status", "--porcelain"), sorted(os.listdir(repository / ".git"))) == before


def test_diff_of_two_commits_ignores_the_work_tree(repository):
    write(repository, "jobs/gpt.yaml", spec("gpt"))
    commit(repository)
    (repository / "jobs/gpt.yaml").unlink()

    assert told(since(repository, "HEAD~1..HEAD")) == [("added", "new-run", "prod", "gpt")]
    assert told(since(repository, "HEAD..HEAD~1")) == [("removed", "stops-running", "prod", "gpt")]
    assert told(since(repository, "HEAD~1..")) == told(since(repository, "HEAD~1..HEAD"))


def branched(repository):
    """A branch with one job of its own, while main went on."""
    run(repository, "checkout", "-q", "-b", "topic")
    write(repository, "jobs/mine.yaml", spec("mine"))
    commit(repository)
    run(repository, "checkout", "-q", "main")
    write(repository, "jobs/theirs.yaml", spec("theirs"))
    commit(repository)
    run(repository, "checkout", "-q", "topic")


def test_three_dots_use_the_merge_base(repository):
    branched(repository)

    assert told(since(repository, "main...topic")) == [("added", "new-run", "prod", "mine")]
    assert ("removed", "stops-running", "prod", "theirs") in told(since(repository, "main..topic"))


def test_default_base_is_the_merge_base_with_the_default_branch(repository, tmp_path_factory):
    branched(repository)
    clone = tmp_path_factory.mktemp("clone")
    run(repository, "checkout", "-q", "main")
    run(clone, "clone", "-q", f"file://{repository}", ".")
    run(clone, "checkout", "-q", "topic")
    run(clone, "branch", "-q", "-D", "main")

    assert told(since(clone)) == [("added", "new-run", "prod", "mine")]
    run(repository, "checkout", "-q", "topic")
    assert told(since(repository)) == [("added", "new-run", "prod", "mine")]
    run(repository, "branch", "-q", "-D", "main")
    assert told(since(repository)) == []


def test_repository_in_a_subfolder_of_git(repository):
    for path in ("jobs/bert.yaml", "overlays/prod/o.yaml"):
        write(repository, f"team/{path}", (repository / path).read_text())
    commit(repository)
    write(repository, "team/jobs/bert.yaml", spec(replicas=3))
    [entry] = json.loads(since(repository / "team", "HEAD").out)["objects"]

    assert (entry["effect"], entry["fields"][-1]["cause"]["file"]) == ("in-place", "jobs/bert.yaml")


def test_outputs_are_the_printed_formats_and_need_both_sides(repository):
    write(repository, "jobs/bert.yaml", spec(replicas=3))
    outputs = [(name, f"out/{name}") for name in api_formats()]
    result = diff_states(repository, "HEAD", (), format_="text", exit_code=False, outputs=outputs)
    printed = {name: since(repository, "HEAD", format_=name).out for name in api_formats()}
    write(repository, "jobs/bert.yaml", "kind: [")
    broken = [(name, f"broken.{name}") for name in api_formats()]
    refused = diff_states(repository, "HEAD", (), format_="text", exit_code=False, outputs=broken)

    assert (result.code, result.out) == (0, printed["text"])
    assert {name: (repository / path).read_text() for name, path in outputs} == printed
    assert len(printed) == 5
    assert (refused.code, refused.out) == (1, "")
    # Without a comparison there is only the page, which has the errors.
    assert [path.name for path in repository.glob("broken.*")] == ["broken.html"]
    assert '"failed":1' in (repository / "broken.html").read_text()


@pytest.mark.parametrize("value", ["pdf=x", "html", "html=", "=x", "diff.pdf", ".md"])
def test_an_output_is_a_file_whose_name_says_the_format(value, repository):
    with pytest.raises(click.UsageError, match=f"`-o {value}` names no format; write a file that ends in `.md`, "):
        command.main(["HEAD", "--output", value], standalone_mode=False, obj=repository)


def test_the_extension_of_an_output_is_its_format(repository):
    for name, file in {"markdown": "a=b.md", "html": "out/page.html", "json": "diff.json", "text": "diff.txt"}.items():
        done = command.main(["HEAD", "-o", file], standalone_mode=False, obj=repository)

        assert done.code == 0
        assert (repository / file).read_text() == since(repository, "HEAD", format_=name).out


@pytest.mark.parametrize(
    ("value", "file", "instead"),
    [
        ("markdown=diff.md", "diff.md", "write `-o diff.md`"),
        ("html=page", "page", "write `-o page.html`"),
        ("delta=changes.json", "changes.json", "write `--format delta > changes.json`"),
    ],
)
def test_a_format_and_a_file_is_deprecated(value, file, instead, repository):
    message = f"`-o {value}` is deprecated: `-o` is a file, and its extension the format; {instead}"
    with pytest.warns(UserWarning, match=re.escape(message)):
        done = command.main(["HEAD", "-o", value], standalone_mode=False, obj=repository)

    assert done.code == 0
    assert (repository / file).is_file()


@pytest.mark.parametrize(
    ("revisions", "words"),
    [("nowhere", "there is no revision `nowhere`"), ("HEAD..-x", "`-x` is not a revision"), ("a...b", "`a`")],
)
def test_unknown_revision_is_a_usage_error(revisions, words, repository):
    result = since(repository, revisions)

    assert result.code == 2
    assert words in result.err


def test_shallow_clone_reports_what_to_fetch(repository, tmp_path_factory):
    commit(repository)
    clone = tmp_path_factory.mktemp("clone")
    run(repository, "clone", "-q", "--depth=1", f"file://{repository}", str(clone))
    first = git.resolve_commit(repository, "HEAD~1")
    result = since(clone, first)

    assert result.code == 2
    assert f"`git fetch --depth=1 origin {first}`" in result.err


def test_shallow_clone_without_the_default_branch_is_a_usage_error(repository, tmp_path_factory):
    run(repository, "checkout", "-q", "-b", "topic")
    commit(repository)
    clone = tmp_path_factory.mktemp("clone")
    run(repository, "clone", "-q", "--depth=1", "--branch=topic", f"file://{repository}", str(clone))
    run(clone, "remote", "set-head", "origin", "-d")
    result = since(clone)

    assert result.code == 2
    assert result.err == "jobgen: this shallow clone does not have the default branch; fetch it, or name the base\n"


def test_revisions_need_a_git_repository(tmp_path):
    write(tmp_path, "jobs/a.yaml", spec())
    result = since(tmp_path)

    assert result.code == 2
    assert "not a Git repository" in result.err


def test_changes_set_the_exit_code_only_on_request(repository):
    assert since(repository, "HEAD", exit_code=True).code == 0
    write(repository, "jobs/bert.yaml", spec(image="x:2"))

    assert since(repository, "HEAD").code == 0
    assert since(repository, "HEAD", exit_code=True).code == 1


def test_empty_folders_have_nothing_to_compare(tmp_path):
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()

    assert between(tmp_path).code == 3
    assert between(tmp_path, "old", "nowhere").err == "jobgen: there is no folder `nowhere`; check the path\n"
    (tmp_path / "old/a.yaml").touch()
    assert "`old/a.yaml` is a file; name its folder: `old`\n" in between(tmp_path, "old/a.yaml", "new").err


def test_side_that_cannot_be_rendered_is_reported(repository):
    write(repository, "jobs/bert.yaml", "a: [\n")
    result = since(repository, "HEAD")

    assert (result.code, result.out) == (1, "")
    assert result.err.endswith("jobgen: 1 error in work tree; nothing was compared\n")
    assert "jobs/bert.yaml:" in result.err


def test_diff_of_selected_environments(repository):
    write(repository, "overlays/dev/o.yaml", OVERLAY)

    assert told(since(repository, "HEAD")) == [("added", "new-run", "dev", "bert")]
    assert told(since(repository, "HEAD", envs=("dev",))) == [("added", "new-run", "dev", "bert")]
    assert told(since(repository, "HEAD", envs=("prod",))) == []
    assert "there is no environment `prud` in either state" in since(repository, "HEAD", envs=("prud",)).err


HASHED = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: {name}, annotations: {{jobgen.dev/job: {job}}}}}
spec: {{pytorchReplicaSpecs: {{Master: {{template: {{spec: {{containers: [{{name: pytorch, image: "{image}"}}]}}}}}}}}}}
"""


def test_runs_are_matched_by_an_unambiguous_job_name(repository):
    write(repository, "jobs/runs.yaml", HASHED.format(name="a-1", job="a", image="x:1"))
    commit(repository)
    write(repository, "jobs/runs.yaml", HASHED.format(name="a-2", job="a", image="x:2"))
    [entry] = json.loads(since(repository, "HEAD").out)["objects"]

    assert (entry["effect"], entry["stops"], entry["was"]["name"]) == ("new-run", True, "a-1")
    both = [HASHED.format(name=name, job="a", image="x:2") for name in ("a-2", "a-3")]
    write(repository, "jobs/runs.yaml", "---\n".join(both))
    assert [one[0] for one in told(since(repository, "HEAD"))] == ["added", "added", "removed"]


def test_renamed_job_is_added_and_removed(repository):
    write(repository, "jobs/bert.yaml", spec("bart"))

    assert told(since(repository, "HEAD")) == [
        ("added", "new-run", "prod", "bart"),
        ("removed", "stops-running", "prod", "bert"),
    ]


def test_job_moved_to_another_file_is_unchanged(repository, tmp_path_factory):
    trees = tmp_path_factory.mktemp("trees")
    rendered(repository, "-o", trees / "old")
    (repository / "jobs/bert.yaml").rename(repository / "jobs/other.yaml")
    rendered(repository, "-o", trees / "new")
    paths = [(trees / side / "prod/ml/pytorchjob-bert.yaml").read_text() for side in ("old", "new")]

    assert paths[0].replace("jobs/bert.yaml", "jobs/other.yaml") == paths[1] != paths[0]
    assert told(since(repository, "HEAD")) == told(between(trees, format_="json")) == []
    assert json.loads(since(repository, "HEAD").out)["summary"]["unchanged"] == 1


def test_moved_file_has_no_effect_on_a_job_that_any_change_restarts(tmp_path):
    options = "annotations: {argocd.argoproj.io/sync-options: 'Force=true,Replace=true'}, labels"
    content = spec().replace("labels", options) + "  run: {onChange: forbid}\n"
    for folder, path, text_ in (
        ("old", "bert.yaml", content),
        ("new", "nlp/bert.yaml", content),
        ("edited", "nlp/bert.yaml", content.replace("team: nlp", "team: vision")),
    ):
        write(tmp_path, f"{folder}/overlays/prod/o.yaml", OVERLAY)
        write(tmp_path, f"{folder}/jobs/{path}", text_)

    assert check_change(tmp_path / "old", tmp_path / "new") == []
    assert [one.rule for one in check_change(tmp_path / "old", tmp_path / "edited")] == ["forbidden-change"]


def test_moved_and_changed_job_reports_the_change_only(repository):
    (repository / "jobs/bert.yaml").unlink()
    write(repository, "jobs/other.yaml", spec(image="x:2"))
    [entry] = json.loads(since(repository, "HEAD").out)["objects"]

    assert {field["field"].rpartition(".")[2] for field in entry["fields"]} == {"image"}


def test_a_repository_of_manifests_needs_no_settings(tmp_path):
    run(tmp_path, "init", "-q", "-b", "main")
    write(tmp_path, "k8s/job.yaml", HASHED.format(name="a", job="a", image="x:1"))
    write(tmp_path, "values.yaml", "replicas: 3\n")
    write(tmp_path, "list.yaml", "[]\n")
    commit(tmp_path)
    write(tmp_path, "k8s/job.yaml", HASHED.format(name="a", job="a", image="x:2"))
    [entry] = json.loads(since(tmp_path, "HEAD").out)["objects"]

    assert (entry["effect"], entry["fields"][0]["cause"]["file"]) == ("no-effect", "k8s/job.yaml")


MANY = 200


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return write_changes(tmp_path_factory.mktemp("many"), MANY)


def write_changes(home, count):
    """Many jobs, each changed in a way of its own."""
    for side, folder in enumerate(("old", "new")):
        write(home, f"{folder}/overlays/prod/o.yaml", OVERLAY)
        for number in range(count):
            content = spec(f"job-{number}", f"x:{number}.{side}", number % 7 + side + 1, side + 1, f"t{number % 5}")
            write(home, f"{folder}/jobs/{number}.yaml", content)
    return home


@pytest.mark.parametrize("format_", FORMATS)
def test_diff_of_many_changed_jobs_takes_linear_time(format_, tmp_path):
    def prepare(count):
        home = write_changes(tmp_path / str(count), count)
        return lambda: between(home, format_=format_)

    assert not grows_with_the_square(prepare, 12)


@pytest.mark.parametrize("name", [*TRANSCRIPTS, "many"])
def test_markdown_comment_fits_the_size_limit(name, cases, many):
    comment = between({**cases, "many": many}[name], format_="markdown").out
    tables = re.findall(r"(?:^\|.*\n)+", comment, re.MULTILINE)

    assert len(comment) <= markdown.MAX_LENGTH
    assert comment.count("<details>") == comment.count("</details>") == comment.count("<summary>")
    assert all(len({row.count("|") for row in table.splitlines()}) == 1 for table in tables)
    if name == "many":
        left = int(re.search(r"<summary>(\d+) more, by name", comment)[1])
        named = len(re.findall("^- changed", comment, re.MULTILINE))
        assert comment.count("<b>changed</b>") + left == MANY
        assert named + int((re.search(r"^- … and (\d+) more", comment, re.MULTILINE) or [0, 0])[1]) == left


def test_change_of_one_line_in_many_jobs_is_reported_once(many, tmp_path):
    for folder in ("old", "new"):
        shutil.copytree(many / "old/jobs", tmp_path / folder / "jobs")
        layer = OVERLAY.replace("namespace: ml", f"defaults: {{env: {{A: {folder}}}}}")
        write(tmp_path, f"{folder}/overlays/prod/o.yaml", layer)
    out = between(tmp_path).out

    assert out.count("changed PyTorchJob") == 1
    assert f"{MANY} in total" in out
    assert "overlays/prod/o.yaml:3" in out
    assert len(check_change(tmp_path / "old", tmp_path / "new")) == 1


@pytest.fixture
def two_environments(tmp_path):
    """A sweep in dev only, a job in prod only, and a job in both, each with an image of its own."""
    run(tmp_path, "init", "-q", "-b", "main")
    for env, name in (("dev", "lr"), ("prod", "zz")):
        selected = f"jobs: {{paths: [jobs/{name}.yaml, jobs/both.yaml]}}"
        write(tmp_path, f"overlays/{env}/o.yaml", OVERLAY.replace("namespace: ml", f"namespace: ml, {selected}"))
    sweep = spec("lr", team="lab") + "  matrix: {lr: ['1', '2', '3']}\n  args: ['${{ matrix.lr }}']\n"
    write(tmp_path, "jobs/lr.yaml", sweep)
    write(tmp_path, "jobs/zz.yaml", spec("zz", team="nlp"))
    write(tmp_path, "jobs/both.yaml", spec("both", team="both"))
    commit(tmp_path)
    return tmp_path


@pytest.mark.parametrize("format_", ["text", "markdown"])
def test_removal_in_an_environment_is_not_folded_under_another(format_, two_environments):
    for path in ("jobs/lr.yaml", "jobs/zz.yaml"):
        (two_environments / path).unlink()
    lines = [re.sub("</?b>", "", line) for line in since(two_environments, "HEAD", format_=format_).out.splitlines()]

    assert any("removed PyTorchJob ml/zz in prod" in line for line in lines), lines
    assert not [line for line in lines if "dev" in line and "prod" in line]


@pytest.mark.parametrize("format_", ["text", "markdown"])
def test_change_of_an_environment_is_not_folded_under_another(format_, two_environments):
    for path in sorted((two_environments / "jobs").iterdir()):
        path.write_text(path.read_text().replace("x:1", "x:2"))
    lines = [re.sub("</?b>", "", line) for line in since(two_environments, "HEAD", format_=format_).out.splitlines()]
    headlines = [line for line in lines if "changed PyTorchJob" in line]

    found = [re.search(r" in ([a-z, ]+?)(?=:| and)", line) for line in headlines]
    assert sorted(each[1] for each in found) == ["dev", "dev, prod", "prod"]
    assert not [line for line in lines if "also affected" in line and "prod" in line]


def test_hostile_values_do_not_break_diff_formats(repository):
    hostile = "a|b`<!--\\n### x </details>\\u001b[31m \\u2028 &#124; [x](y) @all"
    write(repository, "jobs/bert.yaml", spec() + f'  description: "{hostile}"\n')
    comment = since(repository, "HEAD", format_="markdown").out
    shown = since(repository, "HEAD", format_="text").out

    assert [row.count("|") for row in comment.splitlines() if "description" in row] == [6]
    assert comment.count("</details>") == 1
    assert "\x1b" not in comment + shown
    assert "@all" not in comment
    assert json.loads(since(repository, "HEAD").out)["objects"][0]["fields"][0]["new"].startswith("a|b`<!--\n")


def test_diff_page_shows_the_printed_report():
    page = (ROOT / "docs/diff.md").read_text()
    shown = re.search(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
    printed = TRANSCRIPTS["every-effect"].expected["text"].decode()

    assert all(story in printed for story in shown.split("\n\n...\n\n")[0].split("\n\n"))
    assert printed.endswith(shown.split("\n\n...\n\n")[1])


def test_diff_page_lists_every_effect():
    page = (ROOT / "docs/diff.md").read_text()

    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE) == [effect.value for effect in reversed(Effect)]
