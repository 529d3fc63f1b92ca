"""The HTML page in a real browser: what is shown, what clicks and keys do, and that data never becomes markup."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest
from report_browser import ROOT, URL, go, measure_cpu, settle, texts, wait_until

from jobgen.api.lint import lint
from jobgen.features.page.page import encode_distances
from jobgen.reports.entries import group_findings

ASSETS = files("jobgen").joinpath("data", "page")
PICTURES = Path(__file__).with_name("report_pictures.json")
"""The brightness of the views, from 0 to 255, in 16 columns and 10 rows; `pytest --accept` rewrites it."""


def open_job(visit, environments: str):
    """Open a job that is rendered for dev and prod."""
    page = visit("fleet")
    key = page.evaluate(
        "jobKey(buildModel(new PageData(JSON.parse(document.getElementById('data').textContent)))"
        ".jobs.find((job) => [0, 2].every((env) => job.cells[env] && job.cells[env].manifest >= 0)))"
    )
    go(page, f"#/job/{key}?envs={environments}")
    return page


def total(page, label: str) -> int:
    number = page.locator(".total-text", has_text=re.compile(rf"\b{label}$")).locator(".total-value").inner_text()
    return int(number.replace(",", ""))


def route_of(page) -> str:
    return page.evaluate("location.hash")


@pytest.mark.stress
def test_filters_are_in_the_address_and_survive_a_reload(visit):
    page = visit("fleet")
    assert total(page, "jobs") == 120
    page.select_option("select[aria-label=Team]", "vision")
    page.select_option("select[aria-label=Framework]", "jax")
    found = total(page, "jobs")
    assert 0 < found < 120
    assert route_of(page) == "#/fleet?team=vision&framework=jax"
    assert all("vision" in facts and "jax" in facts for facts in texts(page, ".row .job-facts"))
    page.reload()
    assert total(page, "jobs") == found
    assert page.locator("select[aria-label=Team]").input_value() == "vision"
    page.get_by_role("button", name="Clear").click()
    assert total(page, "jobs") == 120
    assert route_of(page) == "#/fleet"


@pytest.mark.stress
def test_filters_by_cell(visit):
    page = visit("fleet")
    for name in ("Queue", "Owner", "Environment", "Severity"):
        value = page.locator(f"select[aria-label={name}] option").nth(1).get_attribute("value")
        page.select_option(f"select[aria-label={name}]", value)
        assert 0 < total(page, "jobs") <= 120
        assert f"={value}" in route_of(page)
        assert page.locator(".cell.is-absent").count() > 0
        page.get_by_role("button", name="Clear").click()


def test_search_finds_words_in_any_order_and_says_when_nothing_matches(visit):
    page = visit("fleet")
    page.keyboard.press("/")
    page.keyboard.type("jax vision")
    assert 0 < total(page, "jobs") < 120
    page.fill("input[type=search]", "no such job")
    assert page.get_by_text("No job matches these filters").is_visible()
    page.keyboard.press("Escape")
    assert total(page, "jobs") == 120


def test_sweeps_are_folded_and_open_on_a_click(visit):
    page = visit("fleet", "#/fleet?q=sweep")
    row = page.locator(".row.is-sweep").first
    assert row.get_attribute("aria-expanded") == "false"
    before = page.locator(".row").count()
    row.click()
    assert page.locator(".row.is-sweep").first.get_attribute("aria-expanded") == "true"
    assert page.locator(".row").count() > before
    assert "open=" in route_of(page)
    page.locator(".row.is-sweep").first.click()
    assert page.locator(".row").count() == before


def test_sweeps_show_what_kueue_decides_about_their_jobs(visit):
    page = visit("fleet", "#/fleet?q=sweep&decision=never")
    cells = page.locator(".row.is-sweep .cell:not(.is-absent)")
    assert cells.count() > 0
    assert all(text.startswith("never admitted · ") for text in cells.locator(".cell-more").all_inner_texts())
    assert cells.locator(".tone-text-good").count() == 0, "a job that never starts is not good"
    page.evaluate("location.hash = '#/fleet?q=sweep'")
    page.wait_for_selector(".row.is-sweep .cell-more >> text=/^[0-9]+ never admitted · /")


def test_a_job_shows_its_longest_run_and_its_cost(visit):
    page = visit("fleet")
    bounded = {"deadline": 259200, "gpuSeconds": 64 * 259200}
    assert page.evaluate("(cell) => describeBound(cell, false)", bounded) == ["at most 3 d", "4,608 GPU hours"]
    assert page.evaluate("(cell) => describeBound(cell, true)", {"deadline": 90, "gpuSeconds": 0}) == [
        "at most 1 min 30 s, each time"
    ]
    go(page, "#/capacity")
    page.locator(".cost-runs a:visible").first.click()
    page.wait_for_selector(".cells")
    assert "no deadline" in texts(page, ".cells .cell-more")


def test_numbers_are_those_of_the_json_output(visit):
    page = visit("repository")
    findings = [entry.finding for entry in group_findings(lint(ROOT).findings)]
    assert total(page, "warnings") == sum(finding.severity.value == "warning" for finding in findings)
    assert page.title().startswith("jobs @ ")
    page.goto(page.url.split("#")[0] + "#/findings")
    page.wait_for_selector(".heat")
    assert page.locator(".lead").inner_text().startswith(f"{len(findings)} findings")
    rules = Counter(finding.rule for finding in findings)
    sums = dict(zip(texts(page, ".heat-rule"), map(int, texts(page, ".heat-sum .heat-number")), strict=True))
    assert sums == rules


def test_keyboard_moves_opens_and_goes_back(visit):
    page = visit("fleet")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("j")
    name = page.locator(".row[aria-selected=true] .job-name").inner_text()
    assert page.locator(".matrix").get_attribute("aria-activedescendant") == "row-1"
    page.keyboard.press("Enter")
    page.wait_for_selector(".page.job")
    assert page.locator("h1").inner_text() == name
    assert page.title().endswith(f"— {name}")
    page.keyboard.press("Escape")
    page.wait_for_selector(".matrix")
    assert page.locator(".row[aria-selected=true] .job-name").inner_text() == name
    assert page.evaluate("document.activeElement.className") == "matrix"
    page.keyboard.press("2")
    wait_until(page, "document.querySelector('h1').textContent === 'GPUs'")
    page.keyboard.press("?")
    wait_until(page, "document.querySelector('dialog').open")
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()


@pytest.mark.stress
def test_keyboard_reaches_the_end_of_the_matrix(visit):
    page = visit("fleet")
    page.locator(".matrix").focus()
    page.keyboard.press("End")
    rows = int(page.locator(".matrix").get_attribute("aria-rowcount")) - 1
    assert page.locator(f"#row-{rows - 1}[aria-selected=true]").is_visible()
    page.keyboard.press("Home")
    assert page.locator("#row-0[aria-selected=true]").is_visible()


def test_a_click_on_a_line_shows_who_set_it(visit):
    page = open_job(visit, "dev,prod")
    line = page.locator("button.side", has_text="replicas:").last
    line.click()
    sources = page.locator(".blame .source")
    assert sources.first.locator(".source-layer").inner_text() == "patch of prod"
    assert (
        sources.first.locator("a").get_attribute("href")
        == f"{URL}/blob/4f2a9c1be07d5a6b8f0e1c2d3a4b5c6d7e8f9012/overlays/prod/overlay.yaml#L20"
    )
    assert sources.nth(1).locator(".overridden").is_visible()
    assert page.locator("[data-spec='7'].is-source").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator(".blame").is_visible()


def test_manifests_stand_side_by_side_with_their_differences(visit):
    page = open_job(visit, "dev,prod")
    page.wait_for_selector(".side-row.is-changed")
    marked = texts(page, ".side-row.is-changed mark")
    assert {"dev", "prod", "latest", "1", "40"} <= set(marked)
    only_prod = page.locator(".side-row.is-missing", has_text="priorityClassName").first
    assert only_prod.locator(".side").nth(0).inner_text() == ""
    everything = page.locator(".side-row").count()
    page.keyboard.press("d")
    assert page.locator(".side-row").count() < everything
    assert "diff=1" in route_of(page)
    page.locator(".fold").first.click()
    assert page.locator(".fold").count() >= 1
    for row in page.locator(".side-row.is-equal").all()[:5]:
        left, right = row.locator(".side").all_inner_texts()
        assert left == right


@pytest.mark.stress
def test_environments_of_a_job_can_be_chosen(visit):
    page = open_job(visit, "dev,prod")
    shown = texts(page, ".side-head")
    page.locator(".compare .choice button[aria-pressed=true]").first.click()
    assert page.locator(".side-head").count() == len(shown) - 1
    assert "envs=" in route_of(page)


def test_charts_are_drawn_and_lead_to_the_fleet(visit):
    page = visit("fleet", "#/gpus")
    page.wait_for_selector(".bars svg .bar")
    bars = page.locator(".bars .bar").count()
    assert bars == 7
    numbers = [int(text.replace(",", "")) for text in texts(page, ".bar-value")]
    assert numbers == sorted(numbers, reverse=True)
    lead = page.locator(".lead").inner_text()
    assert int(lead.split()[0].replace(",", "")) == sum(numbers)
    page.get_by_role("group", name="GPUs by").get_by_role("button", name="Environment").click()
    wait_until(page, "document.querySelectorAll('.bars .bar').length === 5")
    assert page.locator(".treemap .tile").count() > 5
    page.locator(".bars .bar").first.click()
    assert route_of(page).startswith("#/fleet?env=")


def test_tiles_of_the_treemap_fill_it_without_overlap(visit):
    page = visit("fleet")
    tiles = page.evaluate(
        "placeTiles([9, 6, 6, 5, 3, 2, 1, 1, 1].map((size) => ({size})), {x: 0, y: 0, width: 300, height: 200})"
    )
    area = sum(tile["width"] * tile["height"] for tile in tiles)
    assert area == pytest.approx(300 * 200)
    for tile in tiles:
        assert tile["width"] * tile["height"] == pytest.approx(tile["item"]["size"] * 300 * 200 / 34)
        assert tile["x"] >= 0
        assert tile["x"] + tile["width"] <= 300.001
        assert tile["y"] + tile["height"] <= 200.001


def test_capacity_shows_quota_use_and_what_waits(visit):
    page = visit("fleet", "#/capacity")
    research = page.locator(".queue", has_text="research").first
    assert "72 of 64" in research.inner_text()
    assert "8 borrowed, borrows at most 16, 24 waiting" in research.inner_text()
    assert "3 TiB of 4 TiB" in research.inner_text()
    assert page.get_by_text("request at most 208 GPUs").first.is_visible()
    assert page.get_by_text("Git does not know how long a run takes").is_visible()
    name = page.locator(".workload a").first.inner_text()
    page.locator(".workload a").first.click()
    page.wait_for_selector(".page.job")
    assert page.locator("h1").inner_text() == name


def test_pull_request_shows_effects_dangers_and_causes(visit):
    page = visit("changes")
    assert texts(page, ".tile-button .total-value") == ["1", "2", "14", "1", "48", "3"]
    assert page.get_by_text("Deletes running jobs").is_visible()
    assert page.get_by_text("272 → 344").is_visible()
    assert (
        page.locator(".causes a").first.get_attribute("href") == f"{URL}/blob/4f2a9c1be0/overlays/prod/overlay.yaml#L20"
    )
    page.locator(".cause summary").first.click()
    assert len(texts(page, ".caused li")) == 14
    assert page.locator(".group", has_text="14 PyTorchJobs").get_by_text("was jobs/vision/bert.yaml:9").is_visible()
    assert page.get_by_role("heading", name="1 new finding").is_visible()
    assert page.locator(".group").count() == 6
    page.get_by_role("button", name="restarts").click()
    assert page.locator(".group").count() == 1
    assert route_of(page) == "#/changes?effect=restart"
    page.keyboard.press("Escape")
    wait_until(page, "document.querySelectorAll('.group').length === 6")
    page.keyboard.press("j")
    assert page.locator(".group.is-active").count() == 1


@pytest.mark.stress
def test_themes(visit):
    def ground(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = visit("fleet", color_scheme="light"), visit("fleet", color_scheme="dark")
    day, night = ground(light), ground(dark)
    assert day != night
    light.keyboard.press("t")
    light.keyboard.press("t")
    assert ground(light) == night
    light.reload()
    assert ground(light) == night
    dark.keyboard.press("t")
    assert ground(dark) == day


@pytest.mark.parametrize("name", ["hostile", "hostile-changes"])
def test_hostile_data_stays_text(visit, name):
    page = visit(name)
    routes = ["#/fleet", "#/gpus", "#/findings", "#/capacity", "#/changes"]
    if name == "hostile":
        keys = page.evaluate(
            "buildModel(new PageData(JSON.parse(document.getElementById('data').textContent))).jobs.map(jobKey)"
        )
        routes += [page.evaluate("(key) => formatRoute(['job', key])", key) for key in keys]
    for route in routes:
        go(page, route)
        assert page.evaluate("window.hacked") is None
        assert page.locator("main :is(img, script, iframe, object, embed, style)").count() == 0
        names = page.evaluate("[...document.querySelectorAll('main *')].flatMap((each) => each.getAttributeNames())")
        assert not [name for name in names if name.startswith("on")]
        assert page.evaluate(
            "[...document.querySelectorAll('a')].every((each) => /^(#|https?:)/.test(each.getAttribute('href')))"
        )
        if "/job/" in route:
            assert page.locator("h1").inner_text() != "No such job"


def test_a_long_number_leaves_those_after_it_exact(visit):
    numbers = [8, 2**63 - 1, 16, -1, 2**64 * 10**6, 3, 2**53 - 1, 4200]
    read = visit("small").evaluate("(text) => decodeColumn(text)", encode_distances(numbers))
    assert list(map(float, read)) == list(map(float, numbers))


def test_a_hostile_address_is_ignored(visit):
    page = visit("fleet")
    for route in (
        "#/%E0%A4%A",
        "#/job/<script>",
        "#/job/~9999",
        "#/fleet?team=<b>&order=x&open=%E0%A4%A",
        "#//",
        "#/gpus?by=__proto__",
    ):
        go(page, route)
        assert page.locator("main > *").count() == 1
    go(page, "#/findings?severity=errors")
    assert not page.get_by_text("Every job of every environment passes").is_visible()
    page.evaluate("localStorage.setItem('jobgen-theme', 'constructor')")
    page.reload()
    assert page.locator("#theme").inner_text() == "System"
    page.evaluate("localStorage.clear()")


def test_the_policy_allows_no_other_script(visit, browser, pages):
    context = browser.new_context()
    page = context.new_page()
    blocked = []
    page.on("console", lambda message: blocked.append(message.text))
    page.goto(pages("fleet"))
    page.evaluate(
        "const script = document.createElement('script'); script.textContent = 'window.hacked = 1';"
        "document.body.append(script)"
    )
    page.evaluate("document.body.setAttribute('style', 'color: red')")
    assert page.evaluate("window.hacked") is None
    assert len([text for text in blocked if "Content Security Policy" in text]) == 2
    context.close()


def test_no_script_parses_markup():
    for asset in ASSETS.iterdir():
        if asset.name.endswith(".js"):
            source = asset.read_text("utf-8")
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser"
                r"|createContextualFragment|setHTML|srcdoc",
                source,
            ), asset.name


WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
VIEWS_OF = {"small": ("gpus", "findings", "capacity", "fleet", "job"), "changes": ("changes",)}


@pytest.mark.parametrize("name", VIEWS_OF)
def test_accessibility(visit, name):
    """The time of axe grows with the elements, and rows are alike: a low window of a small fleet shows each kind."""
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    page = visit(name, viewport={"width": 1280, "height": 480})
    page.evaluate(Path(axe.__file__).with_name("axe.min.js").read_text("utf-8"))
    for view in VIEWS_OF[name]:
        if view == "job":
            page.locator(".row:not(.is-sweep) .job-name").first.click()
            page.locator("button.side.layer-job").first.click()
        else:
            go(page, f"#/{view}")
        for scheme, rules in (("light", WCAG), ("dark", ["color-contrast"])):
            page.emulate_media(color_scheme=scheme)
            options = {"resultTypes": ["violations"], "runOnly": rules}
            result = page.evaluate("(options) => axe.run(document, options)", options)
            nodes = [(each["id"], [node["html"][:120] for node in each["nodes"][:3]]) for each in result["violations"]]
            assert nodes == [], (view, scheme)


@pytest.mark.stress
def test_a_thousand_jobs_are_searched_in_linear_time(visit):
    page, fleet = visit("large"), visit("fleet")
    search = (
        "() => { const model = document.querySelector('input[type=search]');"
        " model.value = 'bert'; model.dispatchEvent(new Event('input')) }"
    )
    assert page.locator(".row").count() < 60
    many, few = (
        min(measure_cpu(each, lambda each=each: each.evaluate(search)) for _ in range(3)) for each in (page, fleet)
    )
    # There are eight times as many jobs; the square is 64.
    assert many < 24 * few


@pytest.mark.stress
def test_scrolling_draws_the_rows_in_view(visit):
    page = visit("fleet")
    page.locator(".matrix").evaluate("(grid) => { grid.scrollTop = 3000 }")
    page.wait_for_selector("#row-56")
    box, frame = page.locator("#row-56").bounding_box(), page.locator(".matrix").bounding_box()
    assert frame["y"] < box["y"] < frame["y"] + frame["height"]


@pytest.mark.parametrize("name", ["fleet", "changes"])
def test_a_phone_needs_no_horizontal_scrolling(visit, name):
    page = visit(name, viewport={"width": 375, "height": 700})
    for view in ("gpus", "findings", "capacity", "fleet") if name == "fleet" else ("changes",):
        go(page, f"#/{view}")
        settle(page)
        for element in ("html", "main", ".matrix") if view == "fleet" else ("html", "main"):
            assert page.locator(element).evaluate("(element) => element.scrollWidth") <= 375, (view, element)
    if name == "fleet":
        page.get_by_role("button", name="Filters").click()
        assert page.locator("select[aria-label=Team]").is_visible()


@pytest.mark.stress
def test_paper_shows_all_rows_and_no_controls(visit):
    page = visit("fleet", color_scheme="dark")
    page.keyboard.press("t")
    page.keyboard.press("t")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator(".row").count() == int(page.locator(".matrix").get_attribute("aria-rowcount")) - 1
    assert not page.locator(".filter-fields").is_visible()
    assert page.locator(".result-count").inner_text() == "120 jobs"
    assert not page.locator(".print-note").is_visible()
    assert page.locator(".row").last.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.row')).color") == "rgb(0, 0, 0)"


@pytest.mark.parametrize("name", ["empty", "no-environment"])
def test_empty_repositories_say_so(visit, name):
    page = visit(name)
    assert page.get_by_text("This repository has no jobs").is_visible()
    for view, words in (("gpus", "No job requests GPUs"), ("findings", "No findings")):
        go(page, f"#/{view}")
        page.wait_for_selector(f"text={words}")


VIEWS = {
    "fleet": ("fleet", "#/fleet", "light"),
    "fleet in the dark": ("fleet", "#/fleet", "dark"),
    "gpus": ("fleet", "#/gpus", "light"),
    "findings": ("fleet", "#/findings", "light"),
    "capacity": ("fleet", "#/capacity", "dark"),
    "changes": ("changes", "#/changes", "light"),
}
SHRINK = """(picture) => new Promise((resolve) => {
  const image = new Image();
  image.onload = () => {
    const context = Object.assign(document.createElement("canvas"), {width: 16, height: 10}).getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, 16, 10);
    const { data } = context.getImageData(0, 0, 16, 10);
    resolve(Array.from({length: 160}, (_, at) => Math.round((data[4 * at] + data[4 * at + 1] + data[4 * at + 2]) / 3)));
  };
  image.src = "data:image/png;base64," + picture;
})"""


@pytest.mark.stress
def test_pictures_look_as_before(visit, browser, tmp_path, accept):
    """Compare loosely: fonts differ between machines, but the layout and the colors of each part do not."""
    canvas = browser.new_page()
    pages = {name: visit(name) for name in ("fleet", "changes")}
    found = {}
    for name, (page_name, route, scheme) in VIEWS.items():
        page = pages[page_name]
        page.emulate_media(color_scheme=scheme)
        go(page, route)
        settle(page)
        picture = page.screenshot(path=tmp_path / f"{name}.png")
        cells = canvas.evaluate(SHRINK, base64.b64encode(picture).decode())
        found[name] = [cells[start : start + 16] for start in range(0, 160, 16)]
    canvas.close()
    if accept:
        rows = {name: "[\n    " + ",\n    ".join(map(json.dumps, grid)) + "\n  ]" for name, grid in found.items()}
        PICTURES.write_text(
            "{\n  " + ",\n  ".join(f'"{name}": {text}' for name, text in rows.items()) + "\n}\n", "utf-8"
        )
    known = json.loads(PICTURES.read_text("utf-8"))
    assert list(known) == list(found)
    for name, grid in found.items():
        distances = [
            abs(one - other)
            for old, new in zip(known[name], grid, strict=True)
            for one, other in zip(old, new, strict=True)
        ]
        assert sum(distances) / len(distances) < 6, f"{name} looks different; see {tmp_path}"
        assert max(distances) < 60, f"a part of {name} looks different; see {tmp_path}"
