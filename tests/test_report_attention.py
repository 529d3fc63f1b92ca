"""What a reviewer and a team lead see first: what needs attention, what a change does, and nothing that misleads."""

from __future__ import annotations

from pathlib import Path

import pytest
from gitrepository import Repository
from report_browser import URL, settle
from report_demo import write_demo
from test_diff import spec, write

import jobgen

PHONE, LAPTOP = {"width": 390, "height": 800}, {"width": 1440, "height": 900}
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {{namespace: ml-{0}, cluster: {{gitops: argocd}}}}\n"
PADDLE = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {}}}
spec: {{framework: paddle, image: "registry.example.com/p:1", roles: {{worker: {{replicas: 2}}}}}}
"""
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """Write the page of a fleet, of a change that loses nothing, and of jobs without teams."""
    folder = tmp_path_factory.mktemp("pages")
    demo = write_demo(folder / "training-jobs")
    change = folder / "change"
    for env in ("dev", "prod"):
        write(change, f"overlays/{env}/overlay.yaml", OVERLAY.format(env))
    for name in ("bert", "gpt"):
        write(change, f"jobs/{name}.yaml", spec(name=name, replicas=4))
    git = Repository(change, folder)
    git.commit()
    write(change, "jobs/bert.yaml", spec(name="bert", replicas=8, image="x:2"))
    write(change, "jobs/gpt.yaml", spec(name="gpt", replicas=4, gpus=2))
    for name in ("paddle-a", "paddle-b"):
        write(change, f"jobs/{name}.yaml", PADDLE.format(name))
    git.commit()
    pages = {
        "fleet": jobgen.report(demo, since="HEAD~1", repo_url=URL).page,
        "change": jobgen.diff(change, "HEAD~1..HEAD", format="html", repo_url=URL).text,
        "plain": jobgen.report(change).page,
    }
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page, "utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in pages}


@pytest.fixture
def open_page(tabs, addresses):
    opened = []

    def visit(name: str, route: str = "", **options):
        page = tabs.open(**{"viewport": LAPTOP, **options})
        opened.append(page)
        page.goto(addresses[name] + route)
        page.wait_for_selector("html[data-ready]")
        settle(page)
        return page

    yield visit
    for page in opened:
        tabs.close(page)


def test_what_needs_attention_comes_first_and_leads_to_its_jobs(open_page):
    page = open_page("fleet")

    first = page.locator(".fleet > section, .fleet > div").first
    assert first.locator("h2").inner_text() == "Needs attention"
    texts = [" ".join(text.split()) for text in first.locator("a").all_inner_texts()]
    assert texts == ["8 jobs waiting", "2 jobs with warnings"]
    first.locator("a").first.click()
    page.wait_for_selector(".chip")
    assert page.locator(".result-count").inner_text() == "8 of 19 jobs"
    assert page.url.endswith("#/fleet?decision=waits")


def test_a_check_mark_is_never_beside_a_warning_or_a_wait(open_page):
    page = open_page("fleet")
    page.select_option("select[aria-label=Order]", "attention")

    cells = page.locator(".cell:not(.is-absent)")
    marked = [cell for cell in cells.all() if cell.locator(".tone-warn, .tone-bad, .cell-more .tone-text-warn").count()]
    assert len(marked) > 5
    assert [cell.inner_text() for cell in marked if cell.locator(".state.tone-text-good").count()] == []
    # What waits is first.
    assert "waiting" in page.locator(".row").first.inner_text()


def test_the_table_ends_at_the_edge(open_page):
    page = open_page("plain", "#/fleet")

    assert page.locator(".matrix-head").bounding_box()["width"] == LAPTOP["width"]


def test_the_help_opens_at_its_top(open_page):
    page = open_page("fleet", viewport={"width": 390, "height": 420})
    page.keyboard.press("?")

    assert page.locator("dialog").evaluate("(dialog) => dialog.scrollTop") == 0
    assert page.get_by_role("heading", name="Help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()


def test_dimensions_without_values_are_not_chosen(open_page):
    page = open_page("plain", "#/gpus")

    choices = page.get_by_role("group", name="GPUs by").get_by_role("button").all_inner_texts()
    assert "Queue" not in choices
    assert "(none)" not in page.locator("main").inner_text()
    page = open_page("plain", "#/findings")
    assert page.locator(".panel h2").first.inner_text() == "Rules by environment"
    assert page.locator(".heat-team").all_inner_texts() == ["dev", "prod"]
    page.locator(".heat-team a").last.click()
    page.wait_for_selector(".chip")
    assert page.url.endswith("env=prod")


def test_names_of_rules_lead_to_their_documentation_and_filter(open_page):
    page = open_page("fleet", "#/findings")

    name = page.locator(".heat-link", has_text="mutable-image-tag")
    name.click()
    page.wait_for_selector(".chip")
    assert "rule=mutable-image-tag" in page.url
    link = page.locator(".finding a.rule").first
    assert link.get_attribute("href").endswith("mutable-image-tag.md") or "#mutable-image-tag" in link.get_attribute(
        "href"
    )
    assert page.locator(".rule-help").first.get_attribute("title").startswith("Documentation of ")


def test_a_change_names_its_objects_and_all_its_effects(open_page):
    page = open_page("change")

    groups = {group.locator(".group-title").inner_text(): group for group in page.locator(".group").all()}
    added = next(text for text in groups if "PaddleJob" in text)
    assert added.splitlines() == ["4 PaddleJobs added in dev, prod", "paddle-a, paddle-b"]
    scaled = next(text for text in groups if "bert" in text)
    assert scaled.splitlines()[-1] == "scales in place: +8 GPUs; the new image from the next run on"
    assert groups[scaled].locator("summary .badge").all_inner_texts() == ["next run", "applied in place"]
    later = next(text for text in groups if "gpt" in text)
    assert groups[later].locator(".group-gpus").inner_text() == "+8 GPUs next run"
    tiles = [" ".join(text.split()) for text in page.locator(".tile-button:not(.is-zero)").all_inner_texts()]
    assert tiles == ["4 starts", "4 next run", "2 applied in place"]
    assert "no effect" not in page.locator("main").inner_text()


def test_a_change_in_production_alone_is_not_red(open_page):
    page = open_page("change")

    assert page.locator(".danger").evaluate_all("(found) => found.map((each) => each.dataset.code)") == [
        "touches-production"
    ]
    assert page.locator(".danger.is-bad, .danger.is-warn").count() == 0
    assert page.get_by_text("No danger flags").is_visible()
    red = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--bad')")
    assert red == "#a82a20"
    used = page.evaluate(
        "[...document.querySelectorAll('main *')].filter((each) => each.checkVisibility())"
        ".filter((each) => getComputedStyle(each).color === 'rgb(168, 42, 32)').map((each) => each.className)"
    )
    # Old values have the color of what is removed, nothing else has it.
    assert set(used) <= {"old", "hidden-text"}


@pytest.mark.stress
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_amounts_do_not_break_on_a_phone(open_page, scheme):
    page = open_page("change", viewport=PHONE, color_scheme=scheme)

    heights = page.locator("td.amounts").evaluate_all("(found) => found.map((each) => each.clientHeight)")
    texts = page.locator("td.amounts").all_inner_texts()
    assert "4 → 8" in " ".join(texts) or any("→" in text for text in texts)
    assert page.locator("td.amounts").evaluate_all(
        "(found) => found.every((each) => each.getClientRects().length === 1)"
    )
    assert page.locator("td.amounts").first.evaluate("(cell) => getComputedStyle(cell).whiteSpace") == "nowrap"
    assert heights
    assert page.locator("main").evaluate("(main) => main.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("size", [LAPTOP, PHONE])
def test_no_page_scrolls_beyond_its_end(open_page, size):
    routes = ("#/fleet", "#/findings", "#/capacity?env=prod", "#/capacity?env=prod&tab=timeline")
    for name, route in [*(("fleet", route) for route in routes), ("change", "#/changes")]:
        page = open_page(name, route, viewport=size)
        assert page.evaluate("document.documentElement.scrollHeight") == size["height"], route


@pytest.mark.parametrize(("size", "scheme"), [(LAPTOP, "light"), (PHONE, "dark")])
def test_timeline_and_what_if_are_tabs_of_capacity(open_page, size, scheme):
    page = open_page("fleet", "#/capacity?env=prod", viewport=size, color_scheme=scheme)

    tabs = page.get_by_role("navigation", name="Capacity").get_by_role("link")
    assert tabs.all_inner_texts() == ["Queues", "Timeline", "What if"]
    tabs.nth(1).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".schedule")
    assert tabs.nth(1).get_attribute("aria-current") == "page"
    waiting = page.locator(".schedule-row", has_text="vit-pretrain")
    assert waiting.locator(".span-wait").count() == 1
    assert "waits 9 h" in waiting.inner_text()
    assert "`" not in page.locator("main").inner_text()
    page.locator("input[type=search]").fill("whisper")
    settle(page)
    assert page.locator(".schedule-row").count() == 1
    page.get_by_role("link", name="What if").click()
    page.wait_for_selector(".what-if")
    assert page.locator(".what-if code").first.inner_text().startswith("cq/research.h100.")
    assert page.locator(".blame-command code").inner_text().startswith("jobgen queue --what-if cq/research.h100.")
    assert page.locator("main").evaluate("(main) => main.scrollWidth") <= size["width"]


@pytest.mark.stress
def test_tabs_and_changes_are_accessible(open_page):
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    source = Path(axe.__file__).with_name("axe.min.js").read_text("utf-8")
    routes = [("fleet", f"#/capacity?env=prod&tab={tab}") for tab in ("timeline", "what-if")]
    for name, route in (*routes, ("change", ""), ("plain", "#/findings")):
        page = open_page(name, route, viewport={"width": 1280, "height": 480})
        page.evaluate(source)
        for scheme, rules in (("light", WCAG), ("dark", ["color-contrast"])):
            page.emulate_media(color_scheme=scheme)
            options = {"resultTypes": ["violations"], "runOnly": rules}
            result = page.evaluate("(options) => axe.run(document, options)", options)
            nodes = [(each["id"], [node["html"][:120] for node in each["nodes"][:3]]) for each in result["violations"]]
            assert nodes == [], (name, route, scheme)
