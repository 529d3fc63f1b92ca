"""The page of a job: who set each value, manifests side by side, and links to Git."""

import random
import re
from collections import Counter
from importlib.resources import files
from urllib.parse import quote

import pytest
from pagedata import PageData
from report_browser import URL, go, texts, wait_until
from report_jobs import ENVIRONMENTS, HOSTILE_FILE, write_jobs

from jobgen.api.explain import explain
from jobgen.api.project import load
from jobgen.features.page.report import report
from jobgen.model.path import format_dotted
from jobgen.yamlio.write import to_inline_yaml

BLAMED = (
    *(("bert", env) for env in ("dev", "prod", "volcano", "trainer", "ray", "region-3")),
    *(
        ("mpi", "dev"),
        ("mpi", "volcano"),
        ("sweep-0p1", "prod"),
        ("sweep-0p01", "ray"),
        ("raw", "prod"),
        ("odd", "dev"),
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_jobs(tmp_path_factory.mktemp("varied"))


@pytest.fixture(scope="module")
def data(folder):
    return PageData(report(folder).data)


def find_lines(data, job, env):
    """The lines of a manifest, one list for each object."""
    names = [row["name"] for row in data.table("jobs")]
    cell = next(cell for cell in data.table("cells") if (names[cell["job"]], cell["environment"]) == (job, env))
    objects = [[]]
    for text, sources in data.lines("manifests", cell["manifest"]):
        if text == "---":
            objects.append([])
        else:
            objects[-1].append((text, sources))
    return objects


@pytest.mark.parametrize(("job", "env"), BLAMED)
def test_lines_say_who_set_them_as_explain_does(folder, data, job, env):
    fields = explain(load(folder), job, environments=[env]).fields
    lines = iter(find_lines(data, job, env)[0])
    for field in fields:
        expected = [
            (source.layer, *(source.location[:2] if source.location else ("", 0)), to_inline_yaml(source.value))
            for source in field.sources
        ]
        shown = next(
            (sources for _, sources in lines if len(sources) == len(expected) and same(sources, expected)), None
        )
        assert shown is not None, field.field
    assert fields


def same(sources, expected):
    """The value that wins is in the line, and only the others have theirs."""
    return sources[0][:3] == expected[0][:3] and sources[1:] == expected[1:]


def make_manifest(rng):
    """Lines of a manifest of random fields and items."""
    lines = ["spec:"]
    for name in rng.sample("abcdefgh", rng.randrange(8)):
        lines.append(f"  {name}: {rng.randrange(3)}")
    for kind in rng.sample(("env", "args"), rng.randrange(3)):
        lines.append(f"  {kind}:")
        for item in rng.choices("pqrs", k=rng.randrange(1, 5)):
            lines += (
                [f"  - name: {item}", f"    value: {rng.randrange(2)}"]
                if kind == "env"
                else [f"  - --{item}={rng.randrange(2)}"]
            )
    return lines


def test_rows_have_the_lines_of_each_side_in_order(visit):
    rng = random.Random(18)
    cases = [[make_manifest(rng) for _ in range(rng.randrange(1, 5))] for _ in range(300)]
    page = visit("jobs", "#/job/bert")
    found = page.evaluate(
        "(cases) => cases.map((sides) => { const rows = alignColumns(sides.map(keyLines));"
        " return [rows, rows.map((at) => compareLines(at, sides))] })",
        cases,
    )
    for sides, (rows, kinds) in zip(cases, found, strict=True):
        for column, lines in enumerate(sides):
            assert [row[column] for row in rows if row[column] >= 0] == list(range(len(lines)))
        for row, kind in zip(rows, kinds, strict=True):
            assert max(row) >= 0
            shown = {sides[column][index] if index >= 0 else None for column, index in enumerate(row)}
            assert kind == ("missing" if None in shown else "equal" if len(shown) == 1 else "changed")
        if all(lines == sides[0] for lines in sides):
            assert set(kinds) == {"equal"}


def test_fields_of_lines_are_those_of_explain(visit, folder):
    page = visit("jobs", "#/job/bert")
    for job, env in BLAMED:
        shown = page.evaluate(
            "([name, env]) => { const model = buildModel(new PageData(JSON.parse(document.getElementById('data')"
            ".textContent))); const job = findJob(model, name);"
            " const lines = model.readJob(job).manifests[model.environments.indexOf(env)].map((line) => line.text);"
            " const end = lines.indexOf('---');"
            " return listPaths(end < 0 ? lines : lines.slice(0, end)) }",
            [job, env],
        )
        expected = [field.field for field in explain(load(folder), job, environments=[env]).fields]
        leaves = iter(format_dotted(steps) for steps in shown)
        assert all(field in leaves for field in expected), (job, env)
        assert expected


@pytest.mark.stress
def test_a_link_to_a_line_opens_it_with_all_layers(visit):
    page = visit("jobs", "#/job/bert?env=prod&diff=1")
    assert "prod" in "".join(texts(page, ".side-head"))
    line = page.locator(".side-row:has-text('LEVEL') + .side-row button", has_text="value: prod").first
    line.click()
    layers = texts(page, ".blame .source-layer")
    assert layers == ["patch of prod", "joboverridden", "defaults of middleoverridden", "defaults of baseoverridden"]
    assert texts(page, ".blame .source-value") == ["job", "middle", "base"]
    revision = page.evaluate("JSON.parse(document.getElementById('data').textContent).head.revision")
    assert (
        page.locator(".blame a").first.get_attribute("href") == f"{URL}/blob/{revision}/overlays/prod/overlay.yaml#L9"
    )
    command = page.locator(".blame-command code").inner_text()
    assert re.fullmatch(r"jobgen explain bert 'spec\.pytorchReplicaSpecs\.Master.*\.value' -e prod", command)
    # A repository without overlays has no environment to choose.
    command = page.evaluate("makeExplainCommand({ name: 'bert' }, 'spec', WITHOUT_OVERLAYS).textContent")
    assert command == "jobgen explain bert specCopy"
    route = page.evaluate("location.hash")
    assert re.search(r"[?&]line=\d+", route)
    page.reload()
    page.wait_for_selector(".blame .source")
    assert texts(page, ".blame .source-layer") == layers
    assert page.locator(".is-chosen").inner_text().strip() == "value: prod"
    page.keyboard.press("Escape")
    assert "line=" not in page.evaluate("location.hash")


def test_lines_that_no_file_of_the_repository_sets_say_so(visit):
    page = visit("jobs", "#/job/mpi?envs=volcano")
    page.locator("button.side", has_text="ssh: []").click()
    assert "jobgen generates this value; no file sets it" in page.locator(".blame").inner_text()
    page.locator("button.side", has_text="/usr/sbin/sshd").first.click()
    assert "a default that is part of jobgen" in page.locator(".blame").inner_text()
    assert page.locator(".blame a").count() == 0
    page.locator("button.side", has_text="metadata:").first.click()
    assert "only opens a block" in page.locator(".blame").inner_text()
    assert "it cannot be rendered" in page.locator(".cells li", has_text="ray").inner_text()
    assert page.locator(".findings a.place").first.is_visible()


def test_files_are_linked_only_if_the_revision_has_them(visit):
    page = visit("jobs", "#/job/odd?envs=prod")
    revision = page.evaluate("JSON.parse(document.getElementById('data').textContent).head.revision")
    path = quote(HOSTILE_FILE, safe="/'")
    assert page.locator(".lead a").get_attribute("href") == f"{URL}/blob/{revision}/{path}#L1"
    assert page.locator("#revision").inner_text() == f"{revision[:10]}+ 1 file"
    assert page.title().partition(" — ")[0].endswith("+ uncommitted changes")
    go(page, "#/job/bert?envs=dev")
    page.locator("button.side", has_text="namespace: ml-dev").first.click()
    assert page.locator(".blame .place").inner_text() == "overlays/dev/overlay.yaml:6not committed"
    assert page.locator(".blame a").count() == 0


def test_keys_move_between_lines_and_environments(visit):
    page = visit("jobs", "#/job/bert?envs=dev,prod", permissions=["clipboard-read", "clipboard-write"])
    page.locator("button.side").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.dataset.at") == "3,1"
    assert not page.locator(".blame").is_visible()
    page.keyboard.press("Enter")
    assert page.locator(".blame-line").inner_text() == "name: bert"
    page.keyboard.press("ArrowUp")
    assert page.locator("button.side[tabindex='0']").count() == 1
    page.keyboard.press("j")
    assert page.locator(".blame-line").inner_text() == "namespace: ml-prod"
    page.get_by_role("button", name="Copy the command").click()
    page.get_by_text("Copied").first.wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "jobgen explain bert metadata.namespace -e prod"
    page.get_by_role("button", name="Copy the manifest of dev").click()
    wait_until(page, "document.querySelectorAll('.side-head .copy')[0].textContent === 'Copied'")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n")
    assert "\n---\napiVersion: v1\nkind: ConfigMap\n" in copied


@pytest.mark.stress
def test_twelve_environments_and_three_thousand_lines(visit):
    page = visit("jobs", f"#/job/long?diff=1&envs={','.join(ENVIRONMENTS)}")
    assert page.locator(".side-head").count() == 12
    assert page.locator(".side-row[data-row]").count() < 20
    assert page.locator("button.side[tabindex='0']").count() == 1
    assert page.locator(".fold", has_text="equal lines").count() >= 1
    assert {"ml-dev", "ml-prod", "ml"} & set(texts(page, ".side-row.is-changed mark"))
    go(page, "#/job/long?envs=dev,prod")
    assert page.locator(".side-row[data-row]").count() > 3000
    elements = "document.querySelectorAll('*').length"
    drawn = page.evaluate(elements)
    page.evaluate("() => { const button = document.querySelector('.toggle'); button.click(); button.click() }")
    assert page.evaluate(elements) == drawn < 60_000


def test_manifests_scroll_in_their_own_region_on_a_phone(visit):
    page = visit("jobs", "#/job/bert?envs=dev,prod&env=prod&line=4", viewport={"width": 375, "height": 700})
    for element in ("html", "main"):
        assert page.locator(element).evaluate("(element) => element.scrollWidth") <= 375
    region = page.locator(".side-by-side")
    assert region.evaluate("(element) => element.scrollWidth > element.clientWidth")
    assert page.locator(".is-chosen").inner_text().strip() == "name: bert"
    box = page.locator(".blame").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 375


def test_scripts_declare_each_name_once():
    # All scripts share one scope, in which the last function with a name replaces the others.
    scripts = [asset for asset in files("jobgen").joinpath("data", "page").iterdir() if asset.name.endswith(".js")]
    source = "\n".join(asset.read_text("utf-8") for asset in scripts)
    names = Counter(re.findall(r"^(?:function|class|const|let) (\w+)", source, re.MULTILINE))
    assert len(names) > 100
    assert [name for name, number in names.items() if number > 1] == []
