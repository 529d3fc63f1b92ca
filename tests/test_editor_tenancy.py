"""Completion, hover and definitions in teams, tests of jobs, exceptions and packs of policies."""

import re

import pytest
from completioncases import ask
from editorfiles import JOB
from navigationfiles import find_mark

import jobgen
from jobgen.features.editor.completion.names import KnownCache
from jobgen.features.editor.context import make_context
from jobgen.features.editor.cursor import find_cursor
from jobgen.features.editor.definition import find_definitions, find_references
from jobgen.features.editor.hover import find_hover
from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.features.editor.workspace import Workspace

TEAM = """\
apiVersion: jobgen.dev/v1
kind: Team
metadata: {name: nlp}
spec:
  folders: [jobs/nlp]
  owners: ["@example/nlp"]
  namespaces: [nlp-*]
  queues: [team-a]
  kinds: [PyTorchJob]
  environments:
    prod: {namespaces: [nlp-prod]}
"""
TESTS = """\
apiVersion: jobgen.dev/v1
kind: JobTests
spec:
  - name: bert
    environments: [prod]
    jobs: [bert]
    given: {spec: {framework: pytorch, replicas: 1}}
    change: {replicas: 3}
    expect:
      values: {kind: {matches: Py*}}
      findings: [mutable-image-tag]
"""
SETTINGS = """\
policies: [cost]
teams:
  vision: {folders: [jobs/vision]}
exceptions:
  - rule: mutable-image-tag
    teams: [nlp]
    jobs: [bert]
    environments: [prod]
    reason: soon
    owner: "@example/nlp"
    expires: "2027-01-31"
"""
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  namespace: nlp-{}\n"
PROD = OVERLAY.format("prod") + "  patches:\n    - {match: {teams: [nl*, vision]}, merge: {priority: low}}\n"
FILES = {
    "jobgen.yaml": SETTINGS,
    "jobs/nlp/bert.yaml": JOB.format(
        name="bert", team="nlp", framework="pytorch", tag="latest", gpus=8, seed=1, replicas=4
    ),
    "overlays/dev/overlay.yaml": OVERLAY.format("dev"),
    "overlays/prod/overlay.yaml": PROD,
    "teams/nlp.yaml": TEAM,
    "tests/bert.yaml": TESTS,
}
OWN = "overlays/prod/overlay.yaml"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repository")
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    workspace = Workspace(folder)
    workspace.take(WorkspaceLinter(folder).lint({}, lambda *_: None))
    return workspace


@pytest.fixture(scope="module")
def known(workspace):
    return KnownCache().find(workspace)


@pytest.mark.parametrize(
    ("file", "marked", "expected"),
    [
        ("teams/nlp.yaml", "folders: [█]", {"jobs", "jobs/nlp"}),
        ("teams/nlp.yaml", "kinds: [█]", {"PyTorchJob", "TrainJob"}),
        ("teams/nlp.yaml", "platforms: [█]", {"kubeflow"}),
        ("teams/nlp.yaml", "namespaces: [█]", {"nlp-prod", "nlp-dev"}),
        ("teams/nlp.yaml", "environments: {█}", {"dev", "prod"}),
        ("teams/nlp.yaml", "defaults: {█}", {"nodeSelector", "image"}),
        ("tests/bert.yaml", "- environments: [█]", {"dev", "prod"}),
        ("tests/bert.yaml", "- jobs: [█]", {"bert"}),
        ("tests/bert.yaml", "- given: {spec: {█}}", {"framework", "replicas"}),
        ("tests/bert.yaml", "- given: {spec: {framework: █}}", {"pytorch"}),
        ("tests/bert.yaml", "- change: {█}", {"replicas", "image"}),
        ("tests/bert.yaml", "- expect: {findings: [█]}", {"mutable-image-tag"}),
        ("tests/bert.yaml", "- expect: {effect: █}", {"new-run", "rejected"}),
        ("tests/bert.yaml", "- expect: {values: {kind: {█}}}", {"matches", "present", "oneOf"}),
        ("jobgen.yaml", "policies: [█]", {"cost", "pss-baseline"}),
        ("jobgen.yaml", "policies: [cost, █]", {"kueue"}),
        ("jobgen.yaml", "exceptions: [{█}]", {"rule", "teams", "owner", "expires"}),
        ("jobgen.yaml", "exceptions:\n  - rule: █", {"mutable-image-tag", "max-gpus"}),
        ("jobgen.yaml", "exceptions:\n  - teams: [█]", {"nlp", "vision"}),
        ("jobgen.yaml", "exceptions:\n  - jobs: [█]", {"bert"}),
        ("jobgen.yaml", "exceptions:\n  - environments: [█]", {"dev", "prod"}),
        ("jobgen.yaml", "teams:\n  a:\n    kinds: [█]", {"PyTorchJob"}),
        (OWN, "patches: [{match: {teams: [█]}}]", {"nlp", "vision"}),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(sorted(value)),
)
def test_names_and_fields_are_offered(known, file, marked, expected):
    head = "" if file == "jobgen.yaml" else FILES[file].partition("spec:\n")[0] + "spec:\n  "
    labels = ask(known, head + marked + "\n", file).labels

    assert expected <= {*labels}
    assert len(labels) == len({*labels})


def test_a_pack_that_is_on_is_not_offered_again(known):
    assert "cost" not in ask(known, "policies: [cost, █]\n", "jobgen.yaml").labels


def test_snippets_are_valid(known, tmp_path):
    texts = {
        "jobgen.yaml": ask(known, "exceptions:\n  - █\n", "jobgen.yaml").accept("exception"),
        "teams/nlp.yaml": ask(known, "█", "teams/nlp.yaml").accept("team"),
        "tests/a.yaml": ask(known, "te█", "tests/a.yaml").accept("tests"),
        "jobs/nlp/bert.yaml": FILES["jobs/nlp/bert.yaml"],
        OWN: OVERLAY.format("prod"),
    }
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    project = jobgen.load(tmp_path, today="2026-11-01")

    assert "folders: [jobs/nlp]" in texts["teams/nlp.yaml"]
    assert project.findings == ()
    assert not jobgen.run_tests(project).failed
    assert "mutable-image-tag" not in [each.rule for each in jobgen.lint(project, today="2026-11-01").findings]


def find_context(workspace, file, marked):
    line, column = find_mark(FILES[file], marked)
    return make_context(workspace, file, find_cursor(FILES[file], line, column, file))


NLP = (
    "**team `nlp`**: owns `jobs/nlp`; reviewed by `@example/nlp`; defined in teams/nlp.yaml:1@teams/nlp.yaml:1\n\n"
    "| environment | may use |\n| --- | --- |\n"
    "| dev | namespaces `nlp-*`; queues `team-a`; kinds `PyTorchJob` |\n"
    "| prod | namespaces `nlp-prod`; queues `team-a`; kinds `PyTorchJob` |"
)


@pytest.mark.parametrize(
    ("file", "marked", "expected"),
    [
        ("teams/nlp.yaml", "fold¦ers", "**`folders`**: list of string, required\n\nThe folders that the team owns."),
        ("teams/nlp.yaml", "  pr¦od:", "**overlay `prod`**"),
        ("teams/nlp.yaml", "[PyTorch¦Job]", "**PyTorchJob** of `kubeflow.org/v1`"),
        ("tests/bert.yaml", "exp¦ect", "**`expect`**: mapping, required\n\nWhat must be true of each object."),
        ("tests/bert.yaml", "frame¦work", "**`framework`**: string"),
        ("tests/bert.yaml", "change: {repl¦icas", "**`replicas`**: integer"),
        ("tests/bert.yaml", "[mutable-im¦age-tag]", "**mutable-image-tag**: warning (image)"),
        ("tests/bert.yaml", "environments: [pr¦od]", "**overlay `prod`**"),
        ("tests/bert.yaml", "jobs: [be¦rt]", "Matches 1 job"),
        ("jobgen.yaml", "rule: mutable-im¦age-tag", "**mutable-image-tag**: warning (image)"),
        ("jobgen.yaml", "teams: [nl¦p]", NLP),
        ("jobgen.yaml", "[co¦st]", "node pools and overcommitment\n\nPolicies: `deadlines`, `limit-ratio`, "),
        ("jobgen.yaml", "exp¦ires", "**`expires`**: string, required"),
        (OWN, "[nl¦*, vision]", "Matches 1 team: `nlp`"),
        (OWN, "vis¦ion]", "**team `vision`**: owns `jobs/vision`; defined in jobgen.yaml:3@jobgen.yaml:3"),
    ],
    ids=str,
)
def test_hover(workspace, file, marked, expected):
    found = find_hover(find_context(workspace, file, marked))
    shown = found.markdown.replace(workspace.root.as_uri() + "/", "")

    assert expected in re.sub(r"\[([^\]]*)\]\(([^)#]*)#L(\d+)\)", r"\1@\2:\3", shown)


def test_patterns_of_a_team_are_no_names_of_objects(workspace):
    found = find_hover(find_context(workspace, "teams/nlp.yaml", "namespaces: [nlp¦-*]"))

    assert "not defined" not in found.markdown


@pytest.mark.parametrize(
    ("file", "marked", "expected"),
    [
        ("jobgen.yaml", "teams: [nl¦p]", ["teams/nlp.yaml:1"]),
        ("tests/bert.yaml", "environments: [pr¦od]", [f"{OWN}:1"]),
        ("tests/bert.yaml", "jobs: [be¦rt]", ["jobs/nlp/bert.yaml:1"]),
        (OWN, "vis¦ion]", ["jobgen.yaml:3"]),
    ],
)
def test_definitions(workspace, file, marked, expected):
    found = find_definitions(find_context(workspace, file, marked))

    assert [f"{place.file}:{place.line}" for place in found] == expected


def test_references_of_a_team_are_the_overlays_that_name_it(workspace):
    # At the name in the settings, which an exception has.
    text = SETTINGS.replace("teams: [nlp]", "teams: [vision]")
    cursor = find_cursor(text, 6, 15, "jobgen.yaml")
    found = find_references(make_context(workspace, "jobgen.yaml", cursor))

    assert cursor.text == "vision"
    assert [f"{place.file}:{place.line}" for place in found] == [f"{OWN}:6"]
