"""The data of the HTML page: the same numbers as the JSON of `lint`, `diff` and `queue`, and safe in any page."""

import json
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from gitrepository import Repository
from hypothesis import given
from hypothesis import strategies as st
from jobgenprocess import run_here
from pagedata import PageData, apply_changes, decode_numbers, find_data, to_signed

from jobgen import cache
from jobgen.api.errors import UsageError
from jobgen.engine import workers as parallel
from jobgen.features.page import report as page_report
from jobgen.features.page.page import Table, assemble_page, encode, encode_distances, find_changes
from jobgen.features.page.pull_request import is_production
from jobgen.features.page.report import report
from jobgen.model.quantity import to_milli

GPU = "nvidia.com/gpu"
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>&amp;&lt;",
    "\u2028\u2029",
    "\u202eevil\u2066",
    "quote\"'`\\",
    "\x00\x07\x1b[31m\x7f\x9f",
    "{{data}} {{policy}}",
    "${x} \\u003c",
    "ümlaut 漢字 😀",
)

OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {{name: {name}}}
spec:
  namespace: ml-{name}
  cluster: {{state: cluster, kueue: {{version: "0.19", frameworks: [kubeflow.org/pytorchjob]}}}}
  defaults: {{labels: {{env: {name}}}}}
  patches:
    - match: {{names: [bert]}}
      merge: {{resources: {{gpu: {gpus}}}}}
"""
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, labels: {{team: {team}, owner: ada}}}}
spec:
  framework: pytorch
  roles: {{worker: {{replicas: {replicas}}}}}
  queue: main
  image: registry.example.com/{name}:{tag}
  command: [python, train.py]
  resources: {{cpu: 2, memory: 8Gi, gpu: 4}}
  shm: 1Gi
"""
SWEEP = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: sweep, labels: {team: vision}}
spec:
  framework: pytorch
  image: registry.example.com/vit:1.0.0
  command: [python, train.py, "--lr=${{ matrix.lr }}"]
  env: {API_TOKEN: hunter2-hunter2-s3cr3t}
  resources: {cpu: 1, memory: 2Gi}
  runPolicy: {activeDeadlineSeconds: 7200}
  matrix: {lr: [1, 2]}
"""
QUEUES = [
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "whole"},
        "spec": {
            "namespaceSelector": {},
            "cohortName": "company",
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
    },
    {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "h100"}, "spec": {}},
    *(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "LocalQueue",
            "metadata": {"name": "main", "namespace": f"ml-{env}"},
            "spec": {"clusterQueue": "whole"},
        }
        for env in ("dev", "prod")
    ),
]
FILES = {
    "jobgen.yaml": "environments: [dev, prod]\n",
    "overlays/dev/overlay.yaml": OVERLAY.format(name="dev", gpus=1),
    "overlays/prod/overlay.yaml": OVERLAY.format(name="prod", gpus=8),
    "cluster/state.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": QUEUES}),
    "jobs/bert.yaml": JOB.format(name="bert", team="nlp", replicas=2, tag="latest"),
    "jobs/gpt.yaml": JOB.format(name="gpt", team="nlp", replicas=3, tag="1.0.0"),
    "jobs/paused.yaml": JOB.format(name="paused", team="nlp", replicas=1, tag="1.0.0") + "  run: {state: paused}\n",
    "jobs/broken.yaml": JOB.format(name="broken", team="vision", replicas=2, tag="1.0.0").replace("worker", "captain"),
    "jobs/sweep.yaml": SWEEP,
    "jobs/notes.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata: {a: b}\n",
}
"""A repository with a state of each sort. `jobs/broken.yaml` cannot be rendered, so commands leave it out."""


def write(folder, files):
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, "utf-8")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("fleet") / "fleet", FILES)


@pytest.fixture(scope="module")
def fleet(folder):
    return PageData(report(folder).data)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """The same repository without the job that cannot be rendered, under Git."""
    found = {path: text for path, text in FILES.items() if path != "jobs/broken.yaml"}
    folder = write(tmp_path_factory.mktemp("healthy") / "healthy", found)
    git = Repository(folder, folder.parent)
    git.commit()
    return folder


def run(folder, *words):
    code, out, err = run_here(["-C", str(folder), *words])
    return code, b64decode(out).decode(), err


def read_json(folder, *words):
    code, out, err = run(folder, *words, "--format", "json")
    assert out, (code, err)
    return json.loads(out)


def test_findings_are_those_of_lint(folder, fleet):
    expected = read_json(folder, "lint")["findings"]
    names = ("rule", "category", "severity", "message", "file", "line", "column")

    found = [(*(row[name] for name in names), row["environment"]) for row in fleet.table("findings")]

    assert found == [(*(each[name] for name in names), each["env"]) for each in expected]
    assert found


def test_cells_count_the_findings_of_their_job(folder, fleet):
    jobs, cells = fleet.table("jobs"), fleet.table("cells")

    counted = {(jobs[cell["job"]]["name"], cell["environment"]): cell["warnings"] + cell["errors"] for cell in cells}

    for (job, env), count in counted.items():
        lines = [
            row
            for row in fleet.table("findings")
            if row["severity"] != "info"
            and row["job"] >= 0
            and jobs[row["job"]]["name"] == job
            and row["environment"] in ("", env)
        ]
        assert count == len(lines), (job, env)
    assert counted["bert", "prod"]
    assert counted["broken", "prod"]


def test_totals_are_those_of_diff(healthy):
    page = PageData(report(healthy).data)
    expected = read_json(healthy, "diff", "HEAD")["totals"]

    found = {(row["environment"], row["by"], row["name"]): row for row in page.table("totals")}

    assert len(found) == len(expected)
    for total in expected:
        row = found[total["env"], total["by"], total["name"]]
        after = total["after"]
        assert (row["gpus"], row["cpu"]) == (after["gpus"], to_milli(after["cpu"]))
        assert row["memory"] * 1000 == to_milli(after["memory"])


def test_queues_are_those_of_queue(healthy):
    page = PageData(report(healthy).data)
    answers = {each["environment"]: each for each in read_json(healthy, "queue")["environments"]}

    names = ("kind", "namespace", "name", "queue", "clusterQueue", "decision", "reason")
    decided = [(row["environment"], *(row[name] for name in names)) for row in page.table("workloads")]

    assert decided == [
        (env, *(each[name] for name in names)) for env, found in answers.items() for each in found["workloads"]
    ]
    totals = [(each["environment"], total) for each in answers.values() for total in each["totals"]]
    rows = page.table("quotas")
    assert len(rows) == len(totals)
    assert rows
    for row, (env, total) in zip(rows, totals, strict=True):
        assert (row["environment"], row["kind"], row["name"], row["flavor"], row["resource"]) == (
            *(env, total["kind"], total["name"], total["flavor"], total["resource"]),
        )
        scale = 1 if row["resource"] == "cpu" else 1000
        for name in ("nominal", "used", "borrowed", "lent", "waiting"):
            assert row[name] * scale == to_milli(total[name]), (row, name)
    assert {row["cohort"] for row in rows if row["kind"] == "ClusterQueue"} == {"company"}
    assert {row["text"] for row in page.table("notes")} >= {
        "not simulated: time, autoscaling, admission checks, MultiKueue"
    }
    cells = page.table("cells")
    for row in page.table("workloads"):
        cell = cells[row["cell"]]
        assert (cell["environment"], cell["name"], cell["decision"]) == (
            row["environment"],
            row["name"],
            row["decision"],
        )


def test_states(fleet):
    jobs = fleet.table("jobs")
    states = {(jobs[cell["job"]]["name"], cell["environment"]): cell["state"] for cell in fleet.table("cells")}

    assert states["bert", "prod"] == "active"
    assert states["paused", "dev"] == "inactive"
    assert states["broken", "dev"] == "broken"
    assert [job["sweep"] for job in jobs if job["name"].startswith("sweep")] == ["sweep", "sweep"]
    assert {job["name"]: job["isJob"] for job in jobs}["notes"] == 0
    prod = next(cell for cell in fleet.table("cells") if cell["name"] == "bert" and cell["environment"] == "prod")
    assert (prod["kind"], prod["namespace"], prod["queue"]) == ("PyTorchJob", "ml-prod", "main")
    assert (prod["team"], prod["owner"], prod["pods"], prod["gpus"]) == ("nlp", "ada", 2, 16)


def test_manifests_are_those_of_render(healthy):
    page = PageData(report(healthy).data)
    jobs, cells = page.table("jobs"), page.table("cells")

    for number, row in enumerate(page.table("manifests")):
        cell = cells[row["cell"]]
        name = jobs[cell["job"]]["name"]
        _, out, _ = run(healthy, "render", name, "-e", cell["environment"])
        lines = [text for text, _ in page.lines("manifests", number)]
        masked = out.replace("hunter2-hunter2-s3cr3t", "…")
        assert "\n".join(lines) + "\n" == masked.removeprefix("---\n"), (name, cell["environment"])
    assert len(page.table("manifests")) == len([cell for cell in cells if cell["state"] == "active"])


def test_sources_are_those_of_explain(healthy):
    page = PageData(report(healthy).data)
    jobs, cells = page.table("jobs"), page.table("cells")
    number, cell = next(
        (number, cells[row["cell"]])
        for number, row in enumerate(page.table("manifests"))
        if cells[row["cell"]]["environment"] == "prod" and jobs[cells[row["cell"]]["job"]]["name"] == "bert"
    )
    lines = page.lines("manifests", number)

    explained = read_json(healthy, "explain", "bert", "-e", "prod")["fields"]

    leaves = [(text, sources) for text, sources in lines if not text.endswith(":") or ": " in text]
    assert len(leaves) == len(explained)
    assert cell["gpus"] == 16
    for (text, sources), field in zip(leaves, explained, strict=True):
        chain = [(each["layer"], each.get("file", ""), each.get("line", 0)) for each in field["chain"]]
        assert [source[:3] for source in sources] == [each for each in chain if each != ("jobgen", "", 0)], text
    over = next(sources for text, sources in lines if GPU in text)
    assert [(layer, file) for layer, file, *_ in over] == [
        ("patch of prod", "overlays/prod/overlay.yaml"),
        ("job", "jobs/bert.yaml"),
    ]
    assert over[1][3] == "4"


def test_specs_are_the_files(healthy):
    page = PageData(report(healthy).data)

    specs = {row["file"]: page.lines("specs", number) for number, row in enumerate(page.table("specs"))}

    assert [text for text, _ in specs["jobs/bert.yaml"]] == FILES["jobs/bert.yaml"].splitlines()


def test_no_secret_is_in_the_page(healthy):
    assert "hunter2" not in report(healthy).page


def test_code_owners_own_jobs_that_name_no_owner(tmp_path):
    files = {f"ml/{path}": text for path, text in FILES.items() if path != "jobs/broken.yaml"}
    outer = write(tmp_path / "mono", {"CODEOWNERS": "* @platform\n/ml/jobs/s*.yaml @vision @ml/leads\n", **files})
    Repository(outer, tmp_path).commit()

    cells = PageData(report(outer / "ml", environments=["dev"]).data).table("cells")

    assert {row["owner"] for row in cells if row["name"] == "bert"} == {"ada"}
    assert {row["owner"] for row in cells if row["name"].startswith("sweep")} == {"@vision @ml/leads"}


def test_trend_since_a_revision(tmp_path):
    folder = write(tmp_path / "trend", {path: FILES[path] for path in FILES if path != "jobs/broken.yaml"})
    git = Repository(folder, tmp_path)
    git.commit()
    write(folder, {"jobs/bert.yaml": FILES["jobs/bert.yaml"].replace(":latest", ":1.0.0")})
    write(folder, {"jobs/gpt.yaml": FILES["jobs/gpt.yaml"].replace(":1.0.0", ":latest")})

    page = PageData(report(folder, since="HEAD").data)

    new = read_json(folder, "lint", "--since", "HEAD")["findings"]
    found = [(row["rule"], row["file"], row["environment"]) for row in page.table("findings") if row["status"] == "new"]
    assert found == [(each["rule"], each["file"], each["env"]) for each in new if each["object"]]
    assert {(row["file"], row["team"]) for row in page.table("findings") if row["status"] == "new"} == {
        ("jobs/gpt.yaml", "nlp")
    }
    assert {row["file"] for row in page.table("fixed")} == {"jobs/bert.yaml"}
    assert {row["status"] for row in page.table("findings")} == {"new", "known"}


def test_pull_request_is_that_of_diff(tmp_path):
    folder = write(tmp_path / "change", {path: FILES[path] for path in FILES if path != "jobs/broken.yaml"})
    git = Repository(folder, tmp_path)
    git.commit()
    (folder / "jobs/gpt.yaml").unlink()
    write(folder, {"overlays/prod/overlay.yaml": OVERLAY.format(name="prod", gpus=2)})
    write(folder, {"jobs/new.yaml": JOB.format(name="new", team="nlp", replicas=1, tag="latest")})

    code, out, err = run(folder, "diff", "HEAD", "--format", "html")
    expected = read_json(folder, "diff", "HEAD")
    page = PageData(find_data(out))

    assert (code, err, page.view) == (0, "", "changes")
    summary = expected["summary"]
    assert {name: page.head[name] for name in ("added", "removed", "changed", "unchanged")} == {
        name: summary[name] for name in ("added", "removed", "changed", "unchanged")
    }
    assert (page.head["stoppedJobs"], page.head["stoppedGpus"]) == (summary["stops"]["jobs"], summary["stops"]["gpus"])
    rows = page.table("changes")
    assert [(row["action"], row["effect"], row["why"], row["environment"]) for row in rows] == [
        (each["happening"], each["effect"], each["why"], each["env"]) for each in expected["objects"]
    ]
    assert [(row["gpusBefore"], row["gpusAfter"]) for row in rows] == [
        (each["before"]["gpus"], each["after"]["gpus"]) for each in expected["objects"]
    ]
    totals = [(row["environment"], row["by"], row["name"], row["gpusAfter"]) for row in page.table("totals")]
    assert totals == [(each["env"], each["by"], each["name"], each["after"]["gpus"]) for each in expected["totals"]]
    members = [sum(row["group"] == number for row in rows) for number in range(len(page.table("groups")))]
    assert members == [row["members"] for row in page.table("groups")]
    cause = page.table("causes")[0]
    assert (cause["layer"], cause["file"], cause["line"]) == ("patch of prod", "overlays/prod/overlay.yaml", 10)
    assert {row["code"] for row in page.table("dangers")} >= {"deletes-running-job", "touches-production"}
    new = {(row["rule"], row["file"]) for row in page.table("findings")}
    assert ("mutable-image-tag", "jobs/new.yaml") in new
    moves = {(row["environment"], row["name"], row["change"]) for row in page.table("queueMoves")}
    queued = {
        (each["env"], change["workload"].rpartition("/")[2], change["change"])
        for each in expected["queues"]
        for change in each["workloads"]
    }
    assert moves == queued
    assert moves


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("prod", True),
        ("prod-eu", True),
        ("eu_production", True),
        ("live", True),
        ("product", False),
        ("pre-prod", False),
        ("non-prod", False),
    ],
)
def test_is_production(name, expected):
    assert is_production(name) is expected


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "//example.com"])
def test_links_lead_to_web_pages_only(folder, url):
    with pytest.raises(UsageError):
        report(folder, repo_url=url)


def test_limits_are_stated(healthy, monkeypatch):
    # A stored report has other limits.
    cache.disable()
    monkeypatch.setattr(page_report, "MAX_MANIFESTS", 3)

    page = PageData(report(healthy).data)

    shown = {row["what"]: (row["shown"], row["total"]) for row in page.table("omitted")}
    assert shown["manifests"] == (len(page.table("manifests")), 10)
    assert len(page.table("manifests")) <= 3
    assert {cell["manifest"] for cell in page.table("cells")} >= {-1, 0}


class _Elements(HTMLParser):
    """Collects the elements of a page, and the text of its scripts."""

    def __init__(self):
        super().__init__()
        self.started = []

    def handle_starttag(self, tag, attributes):
        self.started.append((tag, dict(attributes)))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text):
    lines = find_changes([(f"  {text}", ((text, text, 1, ""), ("job", text, 2, text)))])
    table = Table("jobs", ("name:text", "file:files"), [(text, text)], [lines])

    data = encode("fleet", {"name": text}, [table])
    page = assemble_page(text, data)

    assert not re.search("[<>&\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066]", data)
    assert find_data(page) == data
    parser = _Elements()
    parser.feed(page)
    plain = _Elements()
    plain.feed(assemble_page("x", encode("fleet", {}, [])))
    assert [tag for tag, _ in parser.started] == [tag for tag, _ in plain.started]
    decoded = PageData(data)
    name = decoded.table("jobs")[0]["name"]
    assert name.isprintable()
    assert name == decoded.table("jobs")[0]["file"] == decoded.head["name"]
    assert text != name or decoded.lines("jobs", 0) == [
        (f"  {text}", [(text, text, 1, ""), ("job", text, 2, text)]),
    ]


def test_hostile_repository(tmp_path):
    files = dict(FILES)
    files["jobs/a<b>&'\"\u2028</script>.yaml"] = (
        FILES["jobs/gpt.yaml"]
        .replace("gpt", "evil")
        .replace("[python, train.py]", '["</script><img src=x onerror=alert(1)>", "\\u202e"]')
    )
    page = report(write(tmp_path / "fleet", files)).page

    assert page.count("</script>") == 2
    assert "<img" not in page


def test_policy_allows_the_style_and_the_script_only(fleet, folder):
    page = report(folder).page
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]

    for element in ("style", "script"):
        content = re.search(f"<{element}>(.*?)</{element}>", page, re.DOTALL)[1]
        digest = b64encode(sha256(content.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)


@given(st.lists(st.integers(-(2**63), 2**63)))
def test_numbers_survive(numbers):
    found, last = [], 0
    for distance in decode_numbers(encode_distances(numbers)):
        last += to_signed(distance)
        found.append(last)

    assert found == numbers


_LINES = st.lists(
    st.tuples(
        st.sampled_from(["a: 1", "  b: 2", "   - c", "", "    - d: e", "f:"]),
        st.lists(
            st.tuples(
                st.sampled_from(["job", "patch"]),
                st.sampled_from(["", "x"]),
                st.integers(0, 99),
                st.sampled_from(["", "1", "{a: b}"]),
            ),
            max_size=3,
        ).map(tuple),
    ),
    max_size=30,
)


@given(_LINES, _LINES)
def test_lines_survive(base, lines):
    changes = find_changes(lines, base)
    assert apply_changes(changes, base) == lines

    rows = [(-1,), (0,)]
    page = PageData(encode("fleet", {}, [Table("manifests", ("base:manifests",), rows, [find_changes(base), changes])]))

    expected = [
        (text, [(*source, value if place else "") for place, (*source, value) in enumerate(sources)])
        for text, sources in lines
    ]
    assert page.lines("manifests", 1) == expected


def test_processes_do_not_change_the_page(folder, monkeypatch):
    cache.disable()
    expected = report(folder).data
    monkeypatch.setattr(parallel, "_count_cores", lambda: 2)
    monkeypatch.setattr(parallel, "_MIN_ITEMS", 2)
    monkeypatch.setattr(parallel, "PIECE", 2)

    assert report(folder).data == expected


def test_command_writes_the_page(folder, tmp_path):
    code, out, err = run(folder, "report", "-o", str(tmp_path / "site"))

    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert (code, out) == (1, "")
    assert "index.html: 6 jobs, " in err
    assert page == report(folder).page


POD = {"containers": [{"name": "a", "image": "a:1", "resources": {"limits": {GPU: 2}}}]}
RUN = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 3, "template": {"spec": POD}}}
OTHER_KINDS = {
    "pod": {"apiVersion": "v1", "kind": "Pod", "spec": POD},
    "server": {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2, "template": {"spec": POD}}},
    "wrapper": {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "spec": {"components": [{"template": {**RUN, "metadata": {"name": name}}} for name in ("one", "two")]},
    },
    "nightly": {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "spec": {"schedule": "0 1 * * *", "suspend": True, "jobTemplate": {"spec": RUN["spec"]}},
    },
}


def test_objects_with_pods_are_jobs_and_their_pods_are_counted(tmp_path):
    objects = {name: {**each, "metadata": {"name": name}} for name, each in OTHER_KINDS.items()}
    folder = write(tmp_path, {f"jobs/{name}.yaml": json.dumps(each) for name, each in objects.items()})
    page = PageData(report(folder).data)

    cells = {cell["name"]: (cell["state"], cell["pods"], cell["gpus"]) for cell in page.table("cells")}
    assert cells["pod"] == ("active", 1, 2)
    assert cells["server"] == ("active", 2, 4)
    assert cells["wrapper"] == ("active", 6, 12)
    assert cells["nightly"] == ("suspended", 0, 0)
    assert [job["isJob"] for job in page.table("jobs")] == [1] * 4
    assert sum(cell["gpus"] for cell in page.table("cells")) == page.table("totals")[0]["gpus"]


def test_a_job_without_a_name_has_the_start_of_the_generated_one(tmp_path):
    generated = {**RUN, "metadata": {"generateName": "run-"}}
    page = PageData(report(write(tmp_path, {"jobs/a.yaml": json.dumps(generated)})).data)

    assert [job["name"] for job in page.table("jobs")] == ["run-"]


def test_a_finding_belongs_to_the_job_of_its_line(tmp_path):
    job = JOB.format(name="bert", team="nlp", replicas=2, tag="1.0.0")
    page = PageData(report(write(tmp_path, {"jobs/a.yaml": job, "jobs/b.yaml": job})).data)

    found = [page.table("jobs")[each["job"]]["file"] for each in page.table("findings") if each["severity"] == "error"]
    assert found == ["jobs/b.yaml"]
    assert [cell["state"] for cell in page.table("cells")] == ["active", "broken"]
