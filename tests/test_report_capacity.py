"""Capacity in the HTML page: the numbers of `jobgen queue`, limits of namespaces, and costs of jobs with a deadline."""

import json
import re
from pathlib import Path

import pytest
from capacity_repository import FILES, GPU, PRICES, make_job, write
from command import run_jobgen_text
from growth import FACTOR
from pagedata import PageData
from report_browser import measure_cpu, settle, wait_until

from jobgen.api.errors import UsageError
from jobgen.api.lint import lint
from jobgen.features.page.capacity import PriceTarget, read_prices
from jobgen.features.page.page import Table, assemble_page, encode
from jobgen.features.page.report import QUOTA, WORKLOAD, report
from jobgen.model.finding import Finding
from jobgen.model.quantity import to_milli
from jobgen.repo.files import File

DOCS = Path(__file__).parent.parent / "docs"
NAMES = ("kind", "namespace", "name", "queue", "clusterQueue", "decision", "reason", "evictedBy")


def run(folder, *words):
    done = run_jobgen_text(folder, *words)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("capacity") / "capacity", {**FILES, "prices.yaml": PRICES})


@pytest.fixture(scope="module")
def page(folder):
    return PageData(report(folder, prices="prices.yaml").data)


@pytest.fixture(scope="module")
def decided(folder):
    """What `jobgen queue` prints about the environments with queues."""
    code, out, err = run(folder, "queue", "-e", "prod", "-e", "dev", "--format", "json")
    assert code == 0, err
    return json.loads(out)["environments"]


def test_the_repository_has_every_decision(decided):
    found = {each["decision"] for env in decided for each in env["workloads"]}
    assert found == {"admitted", "preempts", "waits", "never", "unmanaged"}
    assert {total["kind"] for env in decided for total in env["totals"]} == {"ClusterQueue", "Cohort"}


def test_totals_are_those_of_queue(page, decided):
    rows = page.table("quotas")
    totals = [(env["environment"], total) for env in decided for total in env["totals"]]
    assert len(rows) == len(totals) > 20
    for row, (env, total) in zip(rows, totals, strict=True):
        names = ("kind", "name", "flavor", "resource")
        assert (row["environment"], *(row[name] for name in names)) == (env, *(total[name] for name in names))
        scale = 1 if row["resource"] == "cpu" else 1000
        for name in ("nominal", "used", "borrowed", "lent", "waiting"):
            assert row[name] * scale == to_milli(total[name]), (row, name)


def test_answers_are_those_of_queue(page, decided):
    rows = page.table("workloads")
    answers = [(env["environment"], each) for env in decided for each in env["workloads"]]
    assert [(row["environment"], *(row[name] for name in NAMES)) for row in rows] == [
        (env, *(each[name] for name in NAMES)) for env, each in answers
    ]
    assert [row["behind"] for row in rows] == [", ".join(each["behind"]) for _, each in answers]
    assert [row["change"] for row in rows] == [(each["obstacle"] or {"change": ""})["change"] for _, each in answers]
    assert [row["obstacle"] for row in rows] == [(each["obstacle"] or {"code": ""})["code"] for _, each in answers]
    evicted = next(row for row in rows if row["evictedBy"])
    assert (evicted["name"], evicted["evictedBy"], evicted["decision"]) == ("a-first", "ml/b-owner", "waits")
    jobs, cells = page.table("jobs"), page.table("cells")
    assert [jobs[cells[row["cell"]]["job"]]["name"] for row in rows] == [row["name"] for row in rows]


def test_cohorts_are_nested_and_limits_are_stated(page):
    rows = {(row["kind"], row["name"], row["flavor"], row["resource"]): row for row in page.table("quotas")}
    assert rows["ClusterQueue", "team-a", "h100", GPU]["cohort"] == "research"
    assert rows["Cohort", "research", "h100", GPU]["cohort"] == "company"
    assert rows["Cohort", "company", "h100", GPU]["cohort"] == ""
    assert rows["ClusterQueue", "team-a", "h100", GPU]["borrowingLimit"] == 16
    assert rows["ClusterQueue", "team-b", "h100", GPU]["lendingLimit"] == 12
    assert rows["ClusterQueue", "platform", "a100", GPU]["borrowingLimit"] == -1


def test_notes_are_those_of_queue(page, folder):
    code, out, err = run(folder, "queue", "-e", "prod", "-e", "dev")
    assert code == 0, err
    printed = {line.strip() for line in out.splitlines()}
    notes = page.table("notes")
    assert {row["level"] for row in notes} == {"note"}
    assert {row["environment"] for row in notes} == {"prod", "dev"}
    assert {row["text"] for row in notes} <= printed
    assert any(text.startswith("not simulated:") for text in (row["text"] for row in notes))


def test_what_cannot_be_read_is_an_error_of_the_page(tmp_path):
    files = {**FILES, "cluster/dev/state.json": "{", "jobs/a-huge.yaml": FILES["jobs/a-small.yaml"]}
    del files["cluster/prod/state.json"]
    found = PageData(report(write(tmp_path, files)).data)
    errors = {row["environment"]: row["text"] for row in found.table("notes") if row["level"] == "error"}
    assert errors["prod"].startswith("overlays/prod/overlay.yaml:6: there is no folder `cluster/prod`")
    assert errors["dev"].startswith("cluster/dev/state.json:1: ")
    assert found.table("quotas") == []


def test_limits_are_those_of_lint(page, folder):
    rows = {(row["environment"], row["owner"], row["resource"]): row for row in page.table("limits")}
    gpus = rows["prod", "namespace ml", f"requests.{GPU}"]
    assert (gpus["kind"], gpus["name"], gpus["limit"]) == ("ResourceQuota", "compute", "80")
    messages = [finding.message for finding in lint(folder).findings if finding.env == "prod"]
    excess = next(text for text in messages if "but quota `compute`" in text and GPU in text)
    assert f"take `{gpus['used']}` together" in excess
    assert gpus["share"] == -(-int(gpus["used"]) * 1000 // 80) > 1000
    assert (rows["prod", "namespace ml", "requests.cpu"]["limit"], rows["prod", "namespace ml", "pods"]["used"]) == (
        "200",
        "15",
    )
    budget = rows["prod", "namespace ml", "GPUs"]
    assert (budget["kind"], budget["limit"]) == ("budget", "40")
    exceeded = next(text for text in messages if "above its budget of 40" in text)
    assert f"request {budget['used']} GPUs" in exceeded
    assert (rows["dev", "team b-team", "GPUs"]["used"], rows["dev", "team b-team", "GPUs"]["share"]) == ("16", 160)
    assert not [key for key in rows if key[0] == "local"]


def find_runs(page):
    return {(cell["name"], cell["environment"]): cell for cell in page.table("cells")}


def test_costs_are_upper_bounds(page):
    runs = find_runs(page)
    cost = {key: run["cost"] for key, run in runs.items()}
    assert page.head["currency"] == "EUR"
    # It waits, so it can get h100 or a100; the more expensive one counts: 16 GPUs for an hour.
    assert (runs["a-first", "prod"]["gpuSeconds"], cost["a-first", "prod"]) == (16 * 3600, 51_200)
    assert cost["a-first", "dev"] == 24_000
    # By the node labels of the flavor that it is admitted with: 8 GPUs for an hour, 4 GPUs for an hour and a half.
    assert cost["c-other", "prod"] == 12_000
    assert (runs["a-small", "dev"]["deadline"], cost["a-small", "dev"]) == (5400, 9_000)
    assert cost["d-alone", "local"] == 100


def test_what_is_not_known_is_not_zero(page):
    runs = find_runs(page)
    assert (runs["b-next", "prod"]["deadline"], runs["b-next", "prod"]["gpuSeconds"]) == (0, -1)
    assert runs["b-next", "prod"]["cost"] == -1
    assert (runs["d-alone", "prod"]["gpuSeconds"], runs["d-alone", "prod"]["cost"]) == (3600, -1)
    totals = {(row["environment"], row["by"], row["name"]): row for row in page.table("costs")}
    whole = totals["prod", "environment", "prod"]
    assert (whole["jobs"], whole["bounded"], whole["priced"], whole["scheduled"]) == (7, 5, 4, 0)


def test_sums_are_those_of_the_jobs(page):
    cells = page.table("cells")
    counted = [cells[row["cell"]] for row in page.table("runs")]
    for total in page.table("costs"):
        own = [
            cell
            for cell in counted
            if cell["environment"] == total["environment"] and cell[total["by"]] == total["name"]
        ]
        assert total["jobs"] == len(own) > 0
        assert total["bounded"] == sum(cell["deadline"] > 0 for cell in own)
        assert total["priced"] == sum(cell["cost"] >= 0 for cell in own)
        assert total["gpuSeconds"] == sum(max(cell["gpuSeconds"], 0) for cell in own)
        assert total["cost"] == sum(max(cell["cost"], 0) for cell in own)
    assert {total["by"] for total in page.table("costs")} == {"environment", "team", "queue"}


def test_without_prices_there_are_hours_and_no_costs(folder):
    found = PageData(report(folder, environments=["prod"]).data)
    assert found.head["currency"] == ""
    assert {row["cost"] for row in found.table("costs")} == {-1}
    whole = next(row for row in found.table("costs") if row["by"] == "environment")
    assert whole["gpuSeconds"] == (16 + 8 + 8 + 1) * 3600 + 4 * 5400


MANIFESTS = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: ml}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      activeDeadlineSeconds: 1800
      backoffLimit: 6
      template: &template
        spec:
          restartPolicy: Never
          containers:
            - name: main
              image: registry.example.com/a:1.0.0
              resources: {requests: {cpu: 500m, memory: 3Gi}, limits: {nvidia.com/gpu: 2}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set, namespace: ml}
spec:
  failurePolicy: {maxRestarts: 2}
  replicatedJobs:
    - {name: a, replicas: 1, template: {spec: {activeDeadlineSeconds: 600, template: *template}}}
    - {name: b, replicas: 1, template: {spec: {activeDeadlineSeconds: 900, template: *template}}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: endless, namespace: ml}
spec:
  replicatedJobs:
    - {name: a, replicas: 1, template: {spec: {activeDeadlineSeconds: 600, template: *template}}}
    - {name: b, replicas: 1, template: {spec: {template: *template}}}
---
apiVersion: batch/v1
kind: Job
metadata:
  {name: labelled, namespace: ml, labels: {kueue.x-k8s.io/queue-name: q, kueue.x-k8s.io/max-exec-time-seconds: "60"}}
spec: {activeDeadlineSeconds: 1800, template: *template}
---
apiVersion: batch/v1
kind: Job
metadata: {name: without-queue, namespace: ml, labels: {kueue.x-k8s.io/max-exec-time-seconds: "60"}}
spec: {activeDeadlineSeconds: 1800, template: *template}
---
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: ray, namespace: ml}
spec:
  activeDeadlineSeconds: 100
  backoffLimit: 3
  entrypoint: python a.py
  rayClusterSpec:
    headGroupSpec: {rayStartParams: {}, template: *template}
"""
THREE_PRICES = """\
prices:
  - {resource: nvidia.com/gpu, hourly: 1.1}
  - {resource: cpu, hourly: 0.02}
  - {resource: memory, hourly: 0.000001}
"""


def spread_anchors(text):
    """Return documents that share an anchor, each with its own copy."""
    anchor = re.search(r"&template\n(.*?)(?=^---)", text, re.MULTILINE | re.DOTALL)[1]
    container = "{name: main, image: 'registry.example.com/a:1.0.0', resources: {requests: {cpu: 500m, memory: 3Gi}"
    inline = f"{{spec: {{restartPolicy: Never, containers: [{container}, limits: {{nvidia.com/gpu: 2}}}}}}]}}}}"
    return text.replace("&template\n" + anchor, inline + "\n").replace("*template", inline)


def test_deadlines_of_kinds(tmp_path):
    files = {"jobgen.yaml": "", "jobs/all.yaml": spread_anchors(MANIFESTS), "prices.yaml": THREE_PRICES}
    found = PageData(report(write(tmp_path, files), prices="prices.yaml").data)
    cells = found.table("cells")
    deadlines = {cell["name"]: cell["deadline"] for cell in cells}
    assert deadlines == {
        "nightly": 1800,
        "set": 900 * 3,
        "endless": 0,
        "labelled": 60,
        "without-queue": 1800,
        "ray": 400,
    }
    scheduled = [cells[row["cell"]]["name"] for row in found.table("runs") if row["scheduled"]]
    assert scheduled == ["nightly"]
    assert found.head["currency"] == "USD"
    # Half an hour of 2 GPUs, half a CPU and 3 GiB, exactly, rounded up to thousandths: 1.1 + 0.005 + 0.0000015
    assert next(cell for cell in cells if cell["name"] == "nightly")["cost"] == 1106
    whole = next(row for row in found.table("costs") if row["by"] == "environment")
    assert (whole["jobs"], whole["bounded"], whole["priced"], whole["scheduled"]) == (6, 5, 5, 1)


def test_a_job_without_gpus_counts_if_its_resources_have_a_price(tmp_path):
    hour = "  runPolicy: {activeDeadlineSeconds: 3600}\n"
    overlay = FILES["overlays/local/overlay.yaml"]
    files = {"overlays/local/overlay.yaml": overlay, "jobs/a.yaml": make_job("cheap", "", 1, 0, rest=hour)}
    cpu = "prices: [{resource: cpu, hourly: 0.5}]\n"
    gpu = "prices: [{resource: nvidia.com/gpu, hourly: 0.5}]\n"
    write(tmp_path, {**files, "cpu.yaml": cpu, "gpu.yaml": gpu})
    priced = PageData(report(tmp_path, prices="cpu.yaml").data)
    assert [(row["jobs"], row["cost"]) for row in priced.table("costs") if row["by"] == "environment"] == [(1, 1000)]
    assert PageData(report(tmp_path, prices="gpu.yaml").data).table("costs") == []


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1", "a price file is one document with a list `prices`"),
        ("currency: EUR\n", "1", "the price file needs `prices`"),
        ("prices: {}\n", "1", "`prices` is a mapping, and must be a list"),
        ("prices: 3\n", "1", "`prices` is `3`, and must be a list"),
        ("prices: [3]\n", "1", "is `3`, and must be a mapping"),
        ("- 3\n", "1", "a document must be a mapping"),
        ("price: []\n", "1", "`price` is not a field of the price file; did you mean `prices`?"),
        ("prices:\n- {resource: cpu}\n", "2", "a price needs `hourly`"),
        ("prices:\n- {hourly: 1}\n", "2", "a price needs `resource`"),
        ("prices:\n- {resource: gpu, hourly: 1}\n", "2", "must be the name of a resource such as `nvidia.com/gpu`"),
        ("prices:\n- {resource: cpu, hourly: -1}\n", "2", "`hourly` is `-1`, and must be at least 0"),
        ("prices:\n- {resource: cpu, hourly: 1e300}\n", "2", "and must be at most 1000000"),
        ("prices:\n- {resource: cpu, hourly: .inf}\n", "2", "`.inf` is not a number"),
        ("prices:\n- {resource: cpu, hourly: .nan}\n", "2", "`.nan` is not a number"),
        ("prices:\n- {resource: cpu, hourly: 0.1234567}\n", "2", "at most 6 digits after the point"),
        ("prices:\n- {resource: cpu, hourly: '2'}\n", "2", "`hourly` is `2`, and must be a number"),
        ("prices:\n- {resource: cpu, hourly: true}\n", "2", "and must be a number"),
        ("prices:\n- {resource: cpu, hourly: null}\n", "2", "and must be a number"),
        ("prices:\n- {resource: cpu, hourly: 1, match: 3}\n", "2", "`match` is `3`, and must be a mapping"),
        (
            "prices:\n- {resource: cpu, hourly: 1, match: {team: a}}\n",
            "2",
            "`team` is not a field of `match` of a price",
        ),
        ("prices:\n- {resource: cpu, hourly: 1, match: {nodeSelector: {a: 1}}}\n", "2", "must be a string; quote it"),
        ("prices:\n- {resource: cpu, hourly: 1, match: {environment: prd}}\n", "2", "did you mean `prod`?"),
        ("prices:\n- {resource: cpu, hourly: 1}\n- {resource: cpu, hourly: 2}\n", "3", "`prices[1]` is never used"),
        ("prices: []\n---\nprices: []\n", "3", "a price file is one document"),
        ("a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(f"c{n}: &c{n} [*b, *b]\n" for n in range(40)), "", ""),
        ("prices: [\n", "", ""),
        ("prices: []\nprices: []\n", "2", "prices"),
        ("\x00", "1", ""),
    ],
)
def test_errors_of_the_price_file_have_a_location(text, place, message):
    findings: list[Finding] = []
    prices = read_prices(File("prices.yaml", text.encode()), ["prod", "dev"], findings)
    assert prices.entries == ()
    assert findings
    assert findings[0].location.file == "prices.yaml"
    assert message in findings[0].message
    if place:
        assert str(findings[0].location.line) == place


def test_the_first_price_that_matches_applies():
    text = """\
prices:
  - {resource: cpu, match: {environment: prod, queue: fast}, hourly: 1}
  - {resource: cpu, match: {namespace: ml, nodeSelector: {a: b, c: d}}, hourly: 2}
  - {resource: cpu, match: {flavor: spot}, hourly: 3}
  - {resource: cpu, hourly: 2.3}
"""
    findings: list[Finding] = []
    prices = read_prices(File("prices.yaml", text.encode()), ["prod"], findings)
    assert findings == []

    def find(*target):
        return prices.find("cpu", PriceTarget(*target))

    assert find("prod", "ml", "fast", "spot", {}) == 1_000_000
    assert find("dev", "ml", "fast", "spot", {"a": "b", "c": "d", "e": "f"}) == 2_000_000
    assert find("dev", "ml", "fast", "spot", {"a": "b"}) == 3_000_000
    assert find("dev", "other", "", "", {}) == 2_300_000
    assert prices.find("memory", PriceTarget("dev", "", "", "", {})) is None


@pytest.mark.parametrize("path", ["missing.yaml", "jobs", "../prices.yaml/x"])
def test_a_price_file_that_cannot_be_read(folder, path):
    with pytest.raises(UsageError, match="there is no file"):
        report(folder, prices=path)


def test_documented_prices(folder, tmp_path):
    blocks = re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", (DOCS / "prices.md").read_text(), re.MULTILINE | re.DOTALL)
    files = {name: f"# {name}\n{text}" for name, text in blocks}
    found = PageData(report(write(tmp_path, {**FILES, **files}), prices="prices.yaml").data)
    assert find_runs(found)["c-other", "prod"]["cost"] == 12_000 + 2 * 30 + 4 * 4
    shown = re.search(
        r"^```text\n\$ jobgen (.*?)\n(.*?)^```$", (DOCS / "prices.md").read_text(), re.MULTILINE | re.DOTALL
    )
    code, out, err = run(tmp_path, *shown[1].split())
    assert (code, out) == (2, "")
    assert err == shown[2]
    assert not (tmp_path / "site").exists()


@pytest.fixture(scope="module")
def open_page(browser, tmp_path_factory):
    """Open a page at the view of capacity; every error of the console fails the test."""
    folder, opened, problems = tmp_path_factory.mktemp("pages"), [], []

    def visit(html, route="#/capacity", **options):
        path = folder / f"{len(opened)}.html"
        path.write_text(html, "utf-8")
        page = browser.new_page(**{"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", **options})
        opened.append(page)
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(path.as_uri() + route)
        page.wait_for_selector("html[data-ready]")
        return page

    yield visit
    for page in opened:
        page.close()
    assert problems == []


@pytest.fixture(scope="module")
def html(folder):
    return report(folder, prices="prices.yaml").page


def find_queue(page, name):
    return page.locator(".queues > .queue", has=page.get_by_role("heading", name=name, exact=True))


def test_the_page_shows_the_tree_of_cohorts(open_page, html, page):
    shown = open_page(html)
    company = shown.locator(".cohorts > .cohort")
    assert company.count() == 1
    assert company.locator("> summary h2").inner_text() == "Cohort company"
    research = company.locator("> .fold-content > .cohort")
    assert research.locator("> summary h2").inner_text() == "Cohort research"
    assert research.locator(".queues > .queue > h3").all_inner_texts() == ["team-a", "team-b"]
    for row in page.table("quotas"):
        if row["environment"] == "prod" and row["resource"] == GPU and row["kind"] == "ClusterQueue":
            quota = find_queue(shown, row["name"]).locator(".quota", has_text=GPU).filter(has_text=row["flavor"])
            assert f"{row['used']} of {row['nominal']}" in quota.inner_text()
    team_a = find_queue(shown, "team-a").inner_text()
    assert "borrows at most 16, 16 waiting" in team_a
    assert "lends at most 12" in find_queue(shown, "team-b").inner_text()


@pytest.mark.stress
def test_a_job_that_kueue_ignores_is_unmanaged(open_page, tmp_path):
    unmanaged = make_job("tf", "team-a", 1, 4, framework="tensorflow")
    shown = open_page(report(write(tmp_path, {**FILES, "jobs/tf.yaml": unmanaged})).page)
    assert "1 unmanaged" in shown.locator(".lead").inner_text()
    group = shown.locator("details.decision", has_text="unmanaged").first
    assert "so it starts at once" in group.locator(".workload", has_text="tf").inner_text()
    shown.evaluate("location.hash = '#/fleet?decision=unmanaged'")
    shown.wait_for_selector(".row")
    assert shown.locator(".row .job-name").all_inner_texts() == ["tf"]
    assert "unmanaged" in shown.locator(".row .cell-more").first.inner_text()


def test_the_page_says_why_jobs_wait_and_links_them(open_page, html, decided):
    shown = open_page(html)
    counts = decided[0]["summary"]
    lead = shown.locator(".lead").inner_text()
    assert lead.startswith("prod · 7 workloads: ")
    assert f"{counts['waits']} waiting" in lead
    waiting = shown.locator(".workload", has_text="ml/b-owner evicts it")
    assert "it lacks 12 of nvidia.com/gpu in flavor h100" in waiting.inner_text()
    assert "ml/b-next" in waiting.locator(".workload-behind").inner_text()
    assert shown.get_by_text("not simulated: time, autoscaling").is_visible()
    limit = shown.locator(".limits .quota", has_text=f"requests.{GPU}")
    assert limit.inner_text().endswith("109 of 80\n\nResourceQuota compute exceeded")
    assert shown.get_by_text("Kueue 0.19, without fair sharing").is_visible()
    waiting.locator("a").click()
    shown.wait_for_selector(".page.job")
    assert shown.locator("h1").inner_text() == "a-first"


@pytest.mark.stress
def test_the_search_keeps_queues_and_workloads(open_page, html):
    shown = open_page(html)
    shown.keyboard.press("/")
    shown.keyboard.type("team-b h100")
    assert shown.locator(".queues > .queue > h3").all_inner_texts() == ["team-b"]
    assert shown.url.endswith("#/capacity?q=team-b+h100")
    shown.keyboard.press("Escape")
    assert shown.locator(".queues > .queue > h3").all_inner_texts() == ["team-a", "team-b", "platform"]
    shown.fill("input[type=search]", "b-owner")
    assert shown.locator(".workload-name a").all_inner_texts() == ["b-owner"]


def test_costs_are_shown_as_bounds(open_page, html):
    shown = open_page(html)
    rows = shown.locator(".costs tbody tr").all_inner_texts()
    assert rows[0].split("\t") == ["prod environment", "7", "3", "39", "108.00"]
    assert ["d-team team", "1", "1", "1", "unknown"] in [text.split("\t") for text in rows]
    assert "2 of 7 jobs have no deadline and are excluded." in shown.locator(".costs").inner_text()
    unknown = shown.locator(".costs details", has_text="with unknown cost")
    assert "d-alone\n1 GPU · no price for its resources" in unknown.inner_text()
    assert "b-next\n8 GPUs · no deadline" in unknown.inner_text()
    known = shown.locator(".costs details", has_text="with a deadline")
    known.locator("summary").click()
    assert known.locator("li").first.inner_text() == "a-first\n16 GPUs · at most 1 h · 16 GPU hours\n51.20 EUR"


def test_an_environment_without_queues_says_how_to_add_them(open_page, html):
    shown = open_page(html)
    shown.get_by_role("group", name="Environment").get_by_role("button", name="local").click()
    shown.wait_for_selector("text=No quota data for local")
    assert "docs/kueue.md" in shown.locator(".empty").inner_text()
    assert shown.locator(".costs").is_visible()


def test_errors_of_the_state_are_shown(open_page, tmp_path):
    shown = open_page(report(write(tmp_path, {**FILES, "cluster/prod/state.json": "{"})).page)
    assert "cluster/prod/state.json:1:" in shown.locator(".queue-errors").inner_text()
    assert not shown.get_by_text("No quota data").is_visible()


def make_large(queues, workloads):
    """Return a page with many queues in nested cohorts, of six flavors and four resources each, and many workloads."""
    resources = ("cpu", "memory", GPU, "example.com/nic")
    quotas = [
        (
            *(0, "ClusterQueue", f"queue-{number}", f"cohort-{number % 10}", f"flavor-{flavor}", resource),
            *(64000, 8000, 0, 0, 0, -1, -1),
        )
        for number in range(queues)
        for flavor in range(6)
        for resource in resources
    ]
    quotas += [
        (0, "Cohort", f"cohort-{number}", "top", "flavor-0", GPU, 64000, 8000, 0, 0, 0, -1, -1) for number in range(10)
    ]
    rows = [
        (0, -1, "Job", "ml", f"job-{number}", "q", f"queue-{number % queues}", "waits", "no quota", "", "", "", "")
        for number in range(workloads)
    ]
    tables = [
        Table("environments", ("name:text",), [("prod",)]),
        Table("quotas", QUOTA, quotas),
        Table("workloads", WORKLOAD, rows),
    ]
    return assemble_page("large", encode("fleet", {"name": "large", "revision": "", "currency": ""}, tables))


@pytest.mark.stress
def test_many_queues_and_workloads_stay_usable(open_page):
    few, shown = open_page(make_large(50, 2_500)), open_page(make_large(200, 10_000))
    draw = (
        "() => { goTo(['capacity'], {q: 'x'}); dispatchEvent(new Event('hashchange'));"
        " goTo(['capacity'], {}); dispatchEvent(new Event('hashchange')) }"
    )
    small, large = (
        min(measure_cpu(each, lambda each=each: each.evaluate(draw)) for _ in range(3)) for each in (few, shown)
    )
    assert large < FACTOR**1.5 * small
    wait_until(shown, "document.querySelectorAll('.cohort').length === 1")
    assert shown.locator("main *").count() < 1000
    shown.locator(".cohort > summary").first.click()
    shown.locator(".cohort .cohort > summary").first.click()
    assert find_queue(shown, "queue-0").locator(".quota").count() == 6
    find_queue(shown, "queue-0").locator("summary").click()
    assert find_queue(shown, "queue-0").locator(".quota").count() == 24
    shown.locator(".decision > summary").click()
    assert shown.locator(".workload").count() == 100
    shown.get_by_role("button", name="Show 100 more of 10,000").click()
    assert shown.locator(".workload").count() == 200
    shown.fill("input[type=search]", "queue-17 flavor-3")
    assert {"queue-17", "queue-170"} < set(shown.locator(".queues > .queue > h3").all_inner_texts())


def test_cohorts_in_a_cycle_are_shown(open_page):
    rows = [
        (0, "Cohort", name, parent, "f", GPU, 8, 0, 0, 0, 0, -1, -1)
        for name, parent in (("a", "b"), ("b", "a"), ("c", "c"))
    ]
    tables = [Table("environments", ("name:text",), [("prod",)]), Table("quotas", QUOTA, rows)]
    shown = open_page(
        assemble_page("cycle", encode("fleet", {"name": "cycle", "revision": "", "currency": ""}, tables))
    )
    assert shown.locator(".cohort > summary h2").all_inner_texts() == ["Cohort a", "Cohort b", "Cohort c"]


def test_paper_and_a_phone(open_page, html):
    shown = open_page(html, viewport={"width": 375, "height": 700}, color_scheme="dark")
    assert shown.locator("main").evaluate("(element) => element.scrollWidth") <= 375
    assert shown.locator(".decision:not([open])").count() > 0
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown.emulate_media(media="print")
    assert shown.locator("details:not([open])").count() == 0
    assert shown.locator(".workload").count() == 7
    assert not shown.locator("input[type=search]").is_visible()


FAULTY = "faulty-with-quite-a-long-name-of-a-job-in-this-fleet"
CUT = """() => [...document.querySelectorAll("body *")].filter((element) => {
  const { overflowX, textOverflow } = getComputedStyle(element);
  const cuts = overflowX === "hidden" || overflowX === "clip" || textOverflow === "ellipsis";
  const isShown = element.clientWidth > 1 && !element.closest("svg, .hidden-text");
  return isShown && cuts && element.scrollWidth > element.clientWidth + 1;
}).map((element) => `${element.className}: ${element.textContent}`)"""
GOOD = """() => [...document.querySelectorAll("main .tone-text-good, main .tone-good")].map((element) => {
  const near = element.closest(".cell, .workload, .cells li, .decision, .panel");
  return near ? near.textContent : "";
})"""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """The page of a repository with a job that has an error, and one that is never admitted."""
    job = make_job(FAULTY, "team-a", 1, 1, rest="  podTemplate: {spec: {dnsPolicy: Wrong}}\n")
    files = {**FILES, "jobs/faulty.yaml": job, "jobs/small.yaml": make_job("small", "team-a", 1, 1)}
    return report(write(tmp_path_factory.mktemp("faulty"), files)).page


VIEWS = ("fleet", "gpus", "findings", "capacity", f"job/{FAULTY}", "job/a-huge")


def test_no_job_with_errors_and_none_that_is_never_admitted_looks_good(open_page, faulty):
    shown = open_page(faulty)
    for view in VIEWS:
        shown.evaluate("(view) => { location.hash = `#/${view}`; }", view)
        settle(shown)
        shown.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        settle(shown)
        for text in shown.evaluate(GOOD):
            assert not any(bad in text for bad in (FAULTY, "a-huge", "error", "never admitted")), (view, text)
    shown.evaluate("location.hash = '#/fleet'")
    row = shown.locator(".row", has_text=FAULTY)
    assert row.locator(".cell:not(.is-absent) .tone-text-bad").first.is_visible()
    assert shown.locator(".row", has_text="small").locator(".tone-text-good").count() > 0


@pytest.mark.stress
def test_all_texts_are_readable_on_a_phone(open_page, faulty):
    shown = open_page(faulty, viewport={"width": 390, "height": 844})
    for view in VIEWS:
        shown.evaluate("(view) => { location.hash = `#/${view}`; }", view)
        settle(shown)
        assert shown.evaluate("document.documentElement.scrollWidth") <= 390, view
        assert shown.locator("main").evaluate("(element) => element.scrollWidth") <= 390, view
        assert shown.evaluate(CUT) == [], view
        for total in shown.locator(".totals .total, .lead, .workload-reason, .cell-more").all():
            box = total.bounding_box()
            assert not box or box["x"] + box["width"] <= 390, (view, total.inner_text())
        for row in shown.locator(".row").all():
            assert row.evaluate("(element) => element.scrollHeight <= element.clientHeight + 1"), row.inner_text()
