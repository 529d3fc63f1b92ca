"""The page of a pull request: the same facts as the JSON of `diff`, for real repositories, and what the page does."""

import json
from base64 import b64decode
from collections import Counter

import pytest
from gitrepository import Repository
from jobgenprocess import run_here
from pagedata import PageData, find_data
from report_browser import URL, go, texts

from jobgen.features.page.page import Table, assemble_page, encode

GPU = "nvidia.com/gpu"
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {{name: {name}}}
spec:
  namespace: ml-{name}
  cluster: {{kueue: {{version: "0.19", frameworks: [kubeflow.org/pytorchjob]}}}}
  patches:
    - match: {{names: ["job-*"]}}
      merge: {{image: "registry.example.com/train:{tag}"}}
"""
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, labels: {{team: nlp, owner: ada}}}}
spec:
  framework: pytorch
  roles: {{worker: {{replicas: {replicas}}}}}
  {queue}
  image: registry.example.com/{name}:{tag}
  command: [python, train.py]
  resources: {{cpu: 2, memory: 8Gi, gpu: 4}}
  shm: 1Gi
"""


def make_job(name, replicas=1, tag="1.0.0", queue="queue: main", more=""):
    return JOB.format(name=name, replicas=replicas, tag=tag, queue=queue) + more


SWEEP = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: sweep, labels: {{team: vision}}}}
spec:
  framework: pytorch
  image: registry.example.com/vit:1.0.0
  command: [python, train.py, "--lr=${{{{ matrix.lr }}}}"]
  resources: {{cpu: 1, memory: 2Gi}}
  matrix: {{lr: {values}}}
"""
NOTES = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: notes}}\ndata: {{text: {text}}}\n"
DEADLINE = "  runPolicy: {{activeDeadlineSeconds: {}}}\n"
BASE = {
    "jobgen.yaml": "environments: [dev, prod]\n",
    "overlays/dev/overlay.yaml": OVERLAY.format(name="dev", tag="1.0.0"),
    "overlays/prod/overlay.yaml": "# Production\n" + OVERLAY.format(name="prod", tag="1.0.0"),
    **{f"jobs/job-{number:02}.yaml": make_job(f"job-{number:02}") for number in range(30)},
    "jobs/gone.yaml": make_job("gone", 2),
    "jobs/loose.yaml": make_job("loose", tag="latest"),
    "jobs/short.yaml": make_job("short", more=DEADLINE.format(3600)),
    "jobs/sweep.yaml": SWEEP.format(values="[1, 2, 3, 4]"),
    "jobs/notes.yaml": NOTES.format(text='"</script><img src=x onerror=window.hacked=1>"'),
}
CHANGES = {
    "overlays/dev/overlay.yaml": OVERLAY.format(name="dev", tag="2.0.0"),
    "overlays/prod/overlay.yaml": "# Production\n" + OVERLAY.format(name="prod", tag="2.0.0"),
    "jobs/gone.yaml": None,
    "jobs/loose.yaml": make_job("loose"),
    "jobs/short.yaml": make_job("short", tag="2.0.0", more=DEADLINE.format(3600)),
    "jobs/sweep.yaml": SWEEP.format(values="[1, 2]"),
    "jobs/notes.yaml": NOTES.format(text='"javascript:window.hacked=1"'),
    "jobs/<img src=x onerror=window.hacked=1>.yaml": make_job("new", 3, tag="latest"),
}


def write(folder, files):
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            (folder / path).unlink()
        else:
            (folder / path).write_text(content, "utf-8")
    return folder


def run(folder, *words):
    code, out, err = run_here(["-C", str(folder), *words])
    return code, b64decode(out).decode(), err


class Project:
    """A jobs repository under Git."""

    def __init__(self, folder, files):
        self.folder = folder
        folder.mkdir()
        self.git = Repository(folder, folder.parent)
        self.commit(files)

    def commit(self, files):
        write(self.folder, files)
        assert self.git.commit().returncode == 0

    def revision(self, name="HEAD"):
        return self.git.run("git", "rev-parse", name).stdout.strip()

    def diff(self, *words):
        """The page, and the JSON of the same comparison."""
        code, out, err = run(self.folder, "diff", *words, "--format", "json")
        assert (code, err) == (0, "")
        return PageData(find_data(self.write_page(*words))), json.loads(out)

    def write_page(self, *words):
        code, html, err = run(self.folder, "diff", *words, "--format", "html", "--repo-url", URL)
        assert (code, err) == (0, "")
        return html


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A repository with a pull request of everything: 60 jobs of two environments change by a line of each overlay."""
    made = Project(tmp_path_factory.mktemp("pull") / "jobs", BASE)
    made.commit(CHANGES)
    return made


@pytest.fixture(scope="module")
def compared(project):
    return project.diff("HEAD~1..HEAD")


def check_same_numbers(page, expected):
    """The page has every number of the JSON."""
    summary = expected["summary"]
    counts = {name: page.head[name] for name in ("added", "removed", "changed", "unchanged")}
    assert counts == {name: summary[name] for name in counts}
    assert (page.head["stoppedJobs"], page.head["stoppedGpus"]) == (summary["stops"]["jobs"], summary["stops"]["gpus"])
    rows = page.table("changes")
    assert Counter(row["effect"] for row in rows) == summary["effects"]
    assert [(row["effect"], row["environment"], row["gpusBefore"], row["gpusAfter"]) for row in rows] == [
        (each["effect"], each["env"], each["before"]["gpus"], each["after"]["gpus"]) for each in expected["objects"]
    ]
    totals = [(row["environment"], row["name"], row["gpusBefore"], row["gpusAfter"]) for row in page.table("totals")]
    assert totals == [
        (each["env"], each["name"], each["before"]["gpus"], each["after"]["gpus"]) for each in expected["totals"]
    ]


def test_numbers_and_causes_are_those_of_the_json(compared):
    page, expected = compared
    check_same_numbers(page, expected)
    causes, fields = page.table("causes"), page.table("fields")
    found = {
        (row["change"], fields[row["field"]]["field"].partition(",")[0], cause["layer"], cause["file"], cause["line"])
        for row in page.table("causedBy")
        for cause in [causes[row["cause"]]]
    }
    stated = {
        (number, field["field"], *(field["cause"][name] for name in ("layer", "file", "line")))
        for number, each in enumerate(expected["objects"])
        for field in each["fields"]
    }
    assert found == stated
    assert len({each[2:] for each in found}) == 5


def test_equal_changes_of_two_environments_are_one_group(compared):
    page, _ = compared
    members = Counter(row["group"] for row in page.table("changes"))
    groups = page.table("groups")
    assert [members[number] for number in range(len(groups))] == [row["members"] for row in groups]
    largest = max(groups, key=lambda row: row["members"])
    assert (largest["members"], largest["effect"]) == (60, "restart")
    lines = {(row["file"], row["line"], row["changes"]) for row in page.table("causes") if row["changes"] == 30}
    assert lines == {("overlays/dev/overlay.yaml", 9, 30), ("overlays/prod/overlay.yaml", 10, 30)}


def test_findings_are_those_that_lint_adds(project, compared):
    page, _ = compared
    new = {(row["rule"], row["severity"], row["file"], row["line"]) for row in page.table("findings")}
    _, out, _ = run(project.folder, "lint", "--since", "HEAD~1", "--format", "json")
    linted = [each for each in json.loads(out)["findings"] if each["rule"] != "running-job-deleted"]
    assert new == {(each["rule"], each["severity"], each["file"], each["line"]) for each in linted}
    assert ("mutable-image-tag", "warning", "jobs/<img src=x onerror=window.hacked=1>.yaml", 8) in new
    assert {row["file"] for row in page.table("fixed")} == {"jobs/gone.yaml", "jobs/loose.yaml"}


def make_pair(tmp_path, before, after):
    """A repository whose last commit changes some files of a small one."""
    files = {"overlays/dev/overlay.yaml": OVERLAY.format(name="dev", tag="1.0.0"), **before}
    made = Project(tmp_path / "jobs", files)
    made.commit(after)
    return made


QUOTA = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {"name": "whole"},
    "spec": {
        "namespaceSelector": {},
        "resourceGroups": [
            {
                "coveredResources": ["cpu", "memory", GPU],
                "flavors": [
                    {
                        "name": "h100",
                        "resources": [
                            {"name": "cpu", "nominalQuota": 100},
                            {"name": "memory", "nominalQuota": "1Ti"},
                            {"name": GPU, "nominalQuota": 16},
                        ],
                    }
                ],
            }
        ],
    },
}
FLAVOR = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "h100"}, "spec": {}}
LOCAL = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "LocalQueue",
    "metadata": {"name": "main", "namespace": "ml-dev"},
    "spec": {"clusterQueue": "whole"},
}
QUEUES = {f"jobs/queue-{number}.yaml": json.dumps(each) for number, each in enumerate((QUOTA, FLAVOR, LOCAL))}
RESOURCE_QUOTA = {
    "jobs/quota.yaml": json.dumps(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "gpus", "namespace": "ml-dev"},
            "spec": {"hard": {f"requests.{GPU}": 8}},
        }
    )
}
BUDGET = {
    "overlays/dev/overlay.yaml": OVERLAY.format(name="dev", tag="1.0.0").replace(
        "  cluster: {", "  cluster: {budgets: {teams: {nlp: {gpus: 8}}}, "
    )
}
PROD = {"overlays/prod/overlay.yaml": OVERLAY.format(name="prod", tag="1.0.0")}
BUMPED = {"overlays/dev/overlay.yaml": OVERLAY.format(name="dev", tag="2.0.0")}
LOOSE = "suspend: false"
"""A line in place of the queue."""
DAY, HOUR = DEADLINE.format(86400), DEADLINE.format(3600)
JOB_A = {"jobs/a.yaml": make_job("a")}
SCALED = {number: {"jobs/a.yaml": make_job("a", number)} for number in (2, 3, 5)}
FREE = {number: {"jobs/a.yaml": make_job("a", number, queue=LOOSE)} for number in (1, 2, 3)}
FLAGS = {
    "delete": ("deletes-running-job", {**JOB_A, **FREE[1], "jobs/b.yaml": make_job("b")}, {"jobs/b.yaml": None}),
    "restart without deadline": ("restarts-long-run", JOB_A, {"jobs/a.yaml": make_job("a", tag="2.0.0")}),
    "restart with a long deadline": (
        "restarts-long-run",
        {"jobs/a.yaml": make_job("a", more=DAY)},
        {"jobs/a.yaml": make_job("a", tag="2.0.0", more=DAY)},
    ),
    "suspend": ("suspends-running-job", FREE[1], {"jobs/a.yaml": make_job("a", queue="suspend: true")}),
    "reject": ("rejected", JOB_A, {"jobs/a.yaml": make_job("a", queue="queue: other")}),
    "queue": ("exceeds-quota", {**JOB_A, **QUEUES}, SCALED[5]),
    "quota of a namespace": ("exceeds-quota", {**FREE[1], **RESOURCE_QUOTA}, FREE[3]),
    "budget": ("exceeds-quota", {**JOB_A, **BUDGET}, SCALED[3]),
    "production": ("touches-production", {**JOB_A, **PROD}, SCALED[2]),
}
NO_FLAGS = {
    "delete": ("deletes-running-job", {**JOB_A, "jobs/notes.yaml": NOTES.format(text="a")}, {"jobs/notes.yaml": None}),
    "restart with a short deadline": (
        "restarts-long-run",
        {"jobs/a.yaml": make_job("a", more=HOUR)},
        {"jobs/a.yaml": make_job("a", tag="2.0.0", more=HOUR)},
    ),
    "suspend": ("suspends-running-job", {"jobs/a.yaml": make_job("a", queue="suspend: true")}, FREE[1]),
    "reject": ("rejected", FREE[1], {"jobs/a.yaml": make_job("a", tag="2.0.0", queue=LOOSE)}),
    "queue": ("exceeds-quota", {**JOB_A, **QUEUES}, SCALED[3]),
    "quota of a namespace": ("exceeds-quota", {**FREE[1], **RESOURCE_QUOTA}, FREE[2]),
    "budget": ("exceeds-quota", {**JOB_A, **BUDGET}, SCALED[2]),
    "less above the budget": (
        "exceeds-quota",
        {**SCALED[5], "jobs/b.yaml": make_job("b", 3), **BUDGET},
        {"jobs/a.yaml": None},
    ),
    "production": ("touches-production", {"jobs/job-1.yaml": make_job("job-1"), **PROD}, BUMPED),
}


@pytest.mark.parametrize("name", FLAGS)
def test_danger_is_flagged(tmp_path, name):
    code, before, after = FLAGS[name]
    page = PageData(find_data(make_pair(tmp_path, before, after).write_page("HEAD~1..HEAD")))
    assert code in {row["code"] for row in page.table("dangers")}


@pytest.mark.parametrize("name", NO_FLAGS)
def test_what_is_not_dangerous_is_not_flagged(tmp_path, name):
    code, before, after = NO_FLAGS[name]
    made = make_pair(tmp_path, before, after)
    page = PageData(find_data(made.write_page("HEAD~1..HEAD")))
    assert page.table("changes")
    assert code not in {row["code"] for row in page.table("dangers")}


def test_a_job_that_does_not_fit_is_linked_and_says_why(tmp_path):
    page = PageData(find_data(make_pair(tmp_path, {**JOB_A, **QUEUES}, SCALED[5]).write_page("HEAD~1..HEAD")))
    (danger,) = (row for row in page.table("dangers") if row["code"] == "exceeds-quota")
    assert page.table("changes")[danger["change"]]["name"] == "a"
    assert danger["message"].startswith("was `admitted` and now is never admitted: it requests `20` of")
    added = {"jobs/b.yaml": make_job("b", 5)}
    (tmp_path / "new").mkdir()
    page = PageData(find_data(make_pair(tmp_path / "new", {**JOB_A, **QUEUES}, added).write_page("HEAD~1..HEAD")))
    (danger,) = (row for row in page.table("dangers") if row["code"] == "exceeds-quota")
    assert danger["message"].startswith("is new and never admitted: it requests `20` of")


def test_environments_have_the_order_of_the_settings(tmp_path):
    before = {"jobgen.yaml": "environments: [prod, dev]\n", **JOB_A, **PROD}
    page = PageData(find_data(make_pair(tmp_path, before, SCALED[2]).write_page("HEAD~1..HEAD")))
    totals = [row["environment"] for row in page.table("totals") if row["by"] == "environment"]
    assert totals == [row["name"] for row in page.table("environments")] == ["prod", "dev"]


def test_a_change_of_a_comment_changes_nothing(tmp_path):
    made = make_pair(tmp_path, JOB_A, {"jobs/a.yaml": "# A comment.\n" + JOB_A["jobs/a.yaml"]})
    page, expected = made.diff("HEAD~1..HEAD")
    check_same_numbers(page, expected)
    assert (page.head["unchanged"], page.table("changes"), page.table("findings"), page.table("fixed")) == (
        1,
        [],
        [],
        [],
    )


def test_a_moved_file_changes_nothing_and_a_new_environment_adds_all(tmp_path):
    moved = {"jobs/a.yaml": None, "jobs/b/a.yaml": JOB_A["jobs/a.yaml"], **PROD}
    page, expected = make_pair(tmp_path, JOB_A, moved).diff("HEAD~1..HEAD")
    check_same_numbers(page, expected)
    assert [(row["action"], row["environment"]) for row in page.table("changes")] == [("added", "prod")]
    assert page.head["unchanged"] == 1
    assert page.table("fixed") == []


def test_each_side_has_its_own_revision_and_uncommitted_lines_have_no_link(tmp_path):
    made = make_pair(tmp_path, JOB_A, SCALED[2])
    made.commit(SCALED[3])
    page, _ = made.diff("HEAD~2..HEAD~1")
    assert (page.head["baseRevision"], page.head["headRevision"]) == (made.revision("HEAD~2"), made.revision("HEAD~1"))
    assert page.table("unlinked") == []
    write(made.folder, SCALED[5])
    page, _ = made.diff("HEAD")
    assert page.head["headRevision"] == made.revision()
    assert page.table("unlinked") == [{"old": 0, "file": "jobs/a.yaml"}]


def test_folders_have_their_own_places(tmp_path):
    made = Project(
        tmp_path / "jobs", {"old/jobs/a.yaml": JOB_A["jobs/a.yaml"], "new/jobs/a.yaml": SCALED[2]["jobs/a.yaml"]}
    )
    page, expected = made.diff("--folders", "old", "new")
    check_same_numbers(page, expected)
    assert (page.head["basePrefix"], page.head["headPrefix"]) == ("old", "new")
    assert page.table("unlinked") == []


def test_manifests_have_findings_too(tmp_path):
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: prod}\n"
    pod += "spec: {containers: [{name: a, image: b:%s}]}\n"
    made = Project(tmp_path / "manifests", {"pod.yaml": pod % "1.0.0"})
    made.commit({"pod.yaml": pod % "latest"})
    page, expected = made.diff("HEAD~1..HEAD")
    check_same_numbers(page, expected)
    assert "mutable-image-tag" in {row["rule"] for row in page.table("findings")}
    assert {row["code"] for row in page.table("dangers")} == {"touches-production"}


@pytest.mark.parametrize("broken", ["old", "new", "both"])
def test_a_side_that_cannot_be_rendered_is_a_page_with_its_errors(tmp_path, broken):
    wrong = {"jobs/a.yaml": JOB_A["jobs/a.yaml"].replace("worker", "captain")}
    more = {"jobs/b.yaml": "a: [\n"}
    before, after = (JOB_A, wrong) if broken == "new" else (wrong, {**(wrong if broken == "both" else JOB_A), **more})
    if broken == "old":
        after = JOB_A
    made = make_pair(tmp_path, before, after)
    code, html, err = run(made.folder, "diff", "HEAD~1..HEAD", "--format", "html", "--repo-url", URL)
    page = PageData(find_data(html))
    assert (code, page.head["failed"]) == (1, 1)
    assert "nothing was compared" in err
    assert bool(page.table("oldErrors")) == (broken != "new")
    assert bool(page.table("newErrors")) == (broken != "old")
    code, out, _ = run(made.folder, "diff", "HEAD~1..HEAD", "--format", "json")
    assert (code, out) == (1, "")


def test_queues_that_cannot_be_read_are_stated(tmp_path):
    state = {
        "overlays/dev/overlay.yaml": OVERLAY.format(name="dev", tag="1.0.0").replace(
            "{kueue:", "{state: cluster, kueue:"
        )
    }
    queues = json.dumps({"apiVersion": "v1", "kind": "List", "items": [QUOTA, FLAVOR, LOCAL]})
    made = make_pair(
        tmp_path, {**JOB_A, **state, "cluster/state.json": queues}, {**SCALED[2], "cluster/state.json": "{"}
    )
    page, expected = made.diff("HEAD~1..HEAD")
    errors = [error for each in expected["queues"] for error in each["errors"]]
    assert errors
    [note] = [row["text"] for row in page.table("notes") if row["isLimit"] and not row["text"].startswith("Governance")]
    assert errors[0] in note


@pytest.fixture(scope="module")
def pages(project, tmp_path_factory):
    """The pages that `visit` opens: one for each comparison, written once."""
    folder = tmp_path_factory.mktemp("pages")
    empty = Project(folder / "empty", {**JOB_A, **PROD, "overlays/dev/overlay.yaml": PROD_AS_DEV})
    broken = Project(folder / "broken", {"jobs/a.yaml": JOB_A["jobs/a.yaml"].replace("worker", "captain")})
    broken.commit(JOB_A)
    _, failed, _ = run(broken.folder, "diff", "HEAD~1..HEAD", "--format", "html", "--repo-url", URL)
    written = {
        "pull": project.write_page("HEAD~1..HEAD"),
        "empty": empty.write_page("HEAD"),
        "failed": failed,
        "large": make_large_page(),
    }
    for name, text in written.items():
        (folder / f"{name}.html").write_text(text, "utf-8")
    return lambda name: (folder / f"{name}.html").as_uri()


PROD_AS_DEV = OVERLAY.format(name="dev", tag="1.0.0")


def make_large_page():
    """A page of 5,000 changed objects in 1,000 groups."""
    amounts = ("gpusBefore", "gpusAfter", "cpuBefore", "cpuAfter", "memoryBefore", "memoryAfter")
    change = ("environment:environments", "action:text", "effect:text", "why:text", "stops", "kind:text")
    change = (*change, "namespace:text", "name:text", "was:text", "file:files", "line", *amounts, "group:groups")
    columns = ("action:text", "effect:text", "why:text", "members", "hidden", *amounts)
    field = ("group:groups", "field:text", "op:text", "old:text", "new:text", "effect:text", "why:text")
    caused = ("cause:causes", "change:changes", "field:fields")
    what = ("changed", "restart", "Kueue stops the job and queues it again")
    kind = (0, "PyTorchJob", "ml-prod")
    same = (8, 8, 0, 0, 0, 0)
    changes = [(at % 2, *what, *kind, f"job-{at}", "", f"jobs/{at}.yaml", 1, *same, at // 5) for at in range(5000)]
    tables = [
        Table("environments", ("name:text",), [("dev",), ("prod",)]),
        Table("changes", change, changes),
        Table("groups", columns, [(*what, 5, 0, *same) for _ in range(1000)]),
        Table("fields", field, [(at, "spec.image", "changed", "1", str(at), *what[1:]) for at in range(1000)]),
        Table(
            "causes",
            ("old", "layer:text", "file:files", "line", "changes"),
            [(0, "job", f"jobs/{at}.yaml", 8, 1) for at in range(5000)],
        ),
        Table("causedBy", caused, [(at, at, at // 5) for at in range(5000)]),
        Table(
            "dangers",
            ("code:text", "message:text", "change:changes"),
            [("restarts-long-run", "has no deadline", at) for at in range(5000)],
        ),
    ]
    counts = {"added": 0, "removed": 0, "changed": 5000, "unchanged": 0, "stoppedJobs": 0, "stoppedGpus": 0}
    return assemble_page("large", encode("changes", {"name": "jobs", "base": "a", "head": "b", **counts}, tables))


def test_browser_shows_flags_groups_and_lines_of_each_side(visit, project):
    page = visit("pull")
    old, new = project.revision("HEAD~1"), project.revision()
    assert texts(page, ".summary-line") == [
        "2 added, 6 removed, 66 changed, 4 unchanged, 2 new findings, 2 fixed",
        "This stops 70 jobs, which hold 272 GPUs.",
    ]
    tiles = dict(zip(texts(page, ".tile-text"), texts(page, ".tile-button .total-value"), strict=True))
    assert tiles == {
        "rejected": "0",
        "stops": "6",
        "restarts": "64",
        "starts": "2",
        "next run": "0",
        "applied in place": "2",
    }
    flags = dict(zip(texts(page, ".danger b"), texts(page, ".danger"), strict=True))
    assert list(flags) == ["Deletes running jobs", "Restarts long runs", "Touches production"]
    assert "62 objects, which hold 248 GPUs" in flags["Restarts long runs"]
    card = page.locator(".group", has_text="60 PyTorchJobs")
    assert texts(card, ".field-values code") == [
        'before "registry.example.com/train:1.0.0"',
        'after "registry.example.com/train:2.0.0"',
    ]
    assert texts(card, ".lines li") == [
        "overlays/dev/overlay.yaml:9beforepatch of dev30 objects",
        "overlays/prod/overlay.yaml:10beforepatch of prod30 objects",
    ]
    links = [each.get_attribute("href") for each in card.locator(".lines a").all()]
    assert links[:2] == [f"{URL}/blob/{revision}/overlays/dev/overlay.yaml#L9" for revision in (new, old)]
    card.get_by_text("All 60 objects").click()
    card.locator(".members li").nth(59).wait_for()
    assert card.locator(".members li").count() == 60
    fixed = page.locator(".panel", has_text="fixed finding").locator("a").first
    assert fixed.get_attribute("href").startswith(f"{URL}/blob/{old}/jobs/")
    removed = page.locator(".group", has_text="removed")
    removed.get_by_text("All 6 objects").click()
    removed.locator(".members li").nth(5).wait_for()
    assert f"{URL}/blob/{old}/jobs/gone.yaml#L1" in [each.get_attribute("href") for each in removed.locator("a").all()]


@pytest.mark.stress
def test_browser_filters_and_links_to_one_change(visit):
    page = visit("pull")
    page.keyboard.press("/")
    page.keyboard.type("job-07")
    assert texts(page, ".group-name") == ["2 PyTorchJobs of 60 changed in dev, prod"]
    page.select_option("select[aria-label=Environment]", "prod")
    assert texts(page, ".group-name") == ["PyTorchJob ml-prod/job-07 of 60 changed in prod"]
    assert page.evaluate("location.hash") == "#/changes?q=job-07&env=prod"
    page.reload()
    assert page.locator(".group").count() == 1
    page.get_by_role("button", name="Clear").click()
    page.get_by_role("button", name="stops").click()
    assert texts(page, ".group-name") == ["6 PyTorchJobs removed in dev, prod"]
    page.keyboard.press("Escape")
    assert page.locator(".group").count() > 4
    go(page, "#/changes/prod%2FPyTorchJob%2Fml-prod%2Fjob-29")
    assert page.locator(".is-target").inner_text().startswith("job-29")
    assert page.locator(".is-target").is_visible()
    go(page, "#/changes/nothing")
    assert page.get_by_text("This page has no change of").is_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.locator(".group.is-active").count() == 1
    page.fill("input[type=search]", "no such object")
    assert page.get_by_text("No change matches these filters").is_visible()


def test_browser_keeps_hostile_text_as_text(visit):
    page = visit("pull")
    page.fill("input[type=search]", "onerror")
    for summary in page.locator(".group > summary").all():
        summary.click()
    assert page.locator(".group[open]").count() == 2
    assert page.evaluate("window.hacked") is None
    assert page.locator("main :is(img, script, iframe)").count() == 0
    assert "jobs/<img src=x onerror=window.hacked=1>.yaml" in page.locator(".group").first.inner_text()
    addresses = page.evaluate("[...document.querySelectorAll('a')].map((each) => each.getAttribute('href'))")
    assert all(address.startswith(("#", "https://")) for address in addresses)


@pytest.mark.stress
def test_browser_says_when_nothing_changes_or_is_compared(visit):
    page = visit("empty")
    assert page.get_by_text("No object changes").is_visible()
    assert page.get_by_text("2 objects unchanged").is_visible()
    assert page.get_by_text("No danger flags").is_visible()
    page = visit("failed")
    assert page.get_by_text("cannot be rendered").is_visible()
    assert page.locator(".finding").count() >= 1
    assert page.locator(".finding a").first.get_attribute("href").startswith(f"{URL}/blob/")
    place = {"severity": "error", "rule": "r", "message": "m", "file": "jobs/a.yaml", "line": 3, "column": 1}
    several = [{**place, "environment": at, "envs": [env]} for at, env in ((2, "prod"), (0, "dev"))]
    merged = page.evaluate(
        "(found) => mergeEnvironments(found).map((each) => [each.line, each.envs])",
        [*several, {**several[0], "line": 4}],
    )
    assert merged == [[3, ["dev", "prod"]], [4, ["prod"]]]


@pytest.mark.stress
def test_browser_draws_a_part_of_5000_changes(visit):
    page = visit("large")
    assert page.evaluate("document.querySelectorAll('*').length") < 3000
    assert page.locator(".group").count() == 60
    go(page, "#/changes/prod%2FPyTorchJob%2Fml-prod%2Fjob-4999")
    assert page.locator(".is-target").inner_text().startswith("job-4999")


def test_browser_prints_every_change(visit):
    page = visit("pull")
    closed = page.locator(".group:not([open])").count()
    assert closed
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".group:not([open])").count() == 0
    assert page.locator(".group .members li, .group .all-members").count() >= page.locator(".group").count()
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator(".group:not([open])").count() == closed


def test_browser_fits_a_phone(visit):
    page = visit("pull", viewport={"width": 375, "height": 700})
    page.evaluate("document.querySelectorAll('.group').forEach((each) => { each.open = true; each.draw(); })")
    for element in ("html", "main"):
        assert page.locator(element).evaluate("(element) => element.scrollWidth") <= 375
