"""The views Fleet, GPUs and Findings in a real browser: filters, history, order, charts and trends."""

from __future__ import annotations

import re

import pytest
from report_browser import go, texts, wait_until


def count_jobs(page) -> tuple[int, int]:
    """Return how many jobs are shown, and how many there are."""
    found = re.fullmatch(r"(?:([\d,]+) of )?([\d,]+) jobs?", page.locator(".result-count").inner_text())
    assert found is not None
    total = int(found[2].replace(",", ""))
    return (int(found[1].replace(",", "")) if found[1] else total), total


def route_of(page) -> str:
    return page.evaluate("location.hash")


def total(page, label: str) -> int:
    number = page.locator(".total-text", has_text=re.compile(rf"\b{label}$")).locator(".total-value").inner_text()
    return int(number.replace(",", ""))


def test_a_page_that_lacks_jobs_says_so_with_the_errors(visit):
    page = visit("incomplete")
    note = page.locator(".incomplete")
    assert note.locator("summary").inner_text().startswith("This page is not complete: 3 errors in files, so jobs are")
    note.locator("summary").click()
    assert note.locator(".place").first.inner_text() == "jobs/bert.yaml:1:1"
    assert page.locator(".row").count() > 0
    assert visit("fleet").locator(".incomplete").count() == 0


def test_active_filters_are_chips_and_the_back_button_undoes_them(visit):
    page = visit("fleet")
    assert count_jobs(page) == (120, 120)
    assert page.locator(".chip").count() == 0
    page.select_option("select[aria-label=Namespace]", "ml-vision-prod")
    by_namespace = count_jobs(page)[0]
    assert 0 < by_namespace < 120
    page.select_option("select[aria-label=State]", "active")
    assert texts(page, ".chip") == ["Namespace: ml-vision-prod", "State: active"]
    page.get_by_role("button", name="Remove the filter Namespace").click()
    assert route_of(page) == "#/fleet?state=active"
    assert page.evaluate("document.activeElement.className") == "chip"
    assert page.locator("select[aria-label=Namespace]").input_value() == ""
    page.go_back()
    assert texts(page, ".chip") == ["Namespace: ml-vision-prod", "State: active"]
    page.go_back()
    assert count_jobs(page) == (by_namespace, 120)
    page.go_back()
    assert count_jobs(page) == (120, 120)
    page.go_forward()
    assert count_jobs(page) == (by_namespace, 120)


def test_a_search_is_one_step_of_the_history(visit):
    page = visit("fleet", "#/fleet?order=gpus")
    page.locator("input[type=search]").press_sequentially("bert")
    assert route_of(page) == "#/fleet?order=gpus&q=bert"
    page.go_back()
    assert route_of(page) == "#/fleet?order=gpus"
    assert page.locator("input[type=search]").input_value() == ""


def test_totals_follow_the_filters(visit):
    page = visit("fleet")
    everything = total(page, "GPUs")
    page.select_option("select[aria-label=Environment]", "prod")
    assert 0 < total(page, "GPUs") < everything
    assert texts(page, ".share") == [f"prod {total(page, 'GPUs'):,}"]
    page.fill("input[type=search]", "no such job")
    assert (count_jobs(page)[0], total(page, "GPUs"), total(page, "errors")) == (0, 0, 0)
    page.locator(".matrix-empty").get_by_role("button", name="Clear filters").click()
    assert (count_jobs(page), total(page, "GPUs")) == ((120, 120), everything)


@pytest.mark.stress
def test_rows_are_ordered_by_name_gpus_pods_and_findings(visit):
    page = visit("fleet")
    for order, pattern in (("gpus", r"(\d+) GPU"), ("pods", r"(\d+) pod")):
        page.select_option("select[aria-label=Order]", order)
        assert route_of(page) == f"#/fleet?order={order}"
        rows = page.locator(".row").all_inner_texts()[:6]
        sums = [sum(map(int, re.findall(pattern, row))) for row in rows]
        assert sums == sorted(sums, reverse=True)
        assert sums[0] > 0
    page.select_option("select[aria-label=Order]", "name")
    assert route_of(page) == "#/fleet"


@pytest.mark.stress
def test_states_have_words_and_the_help_explains_them(visit):
    page = visit("fleet", "#/fleet?state=broken")
    assert all("broken" in text for text in texts(page, ".row:not(.is-sweep) .cell:not(.is-absent) .cell-more"))
    page.keyboard.press("?")
    words = texts(page, "dialog dt.state")
    assert words[:6] == ["active", "suspended", "inactive", "broken", "has errors", "absent"]
    assert {"never admitted", "waiting", "preempting", "borrowing", "admitted"} <= set(words[6:])
    assert all(texts(page, "dialog dd")), "each word is explained"
    assert page.locator("dialog dd", has_text="suspended in Git").is_visible()
    page.keyboard.press("Escape")


def test_the_name_of_a_sweep_leads_to_its_jobs(visit):
    page = visit("fleet", "#/fleet?q=sweep")
    sweep = page.locator(".is-sweep .job-name").first.evaluate("(name) => name.childNodes[1].textContent")
    go(page, f"#/job/{sweep}")
    members = texts(page, "main a.job-name")
    assert members
    assert all(name.startswith(sweep) for name in members)
    page.get_by_text("Show them in the fleet").click()
    page.wait_for_selector(".row.is-member")
    assert set(texts(page, ".row.is-member .job-name")) <= set(members)


@pytest.mark.stress
def test_the_link_to_what_is_shown_can_be_copied(visit):
    page = visit("fleet", "#/fleet?team=vision")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.evaluate("document.addEventListener('copy', () => { window.copied = document.activeElement.value })")
    page.get_by_role("button", name="Copy the link").click()
    wait_until(page, "document.getElementById('status').textContent === 'Link copied'")
    assert page.evaluate("window.copied === location.href")


def read_counts(text: str) -> tuple[int, int, int]:
    """Return how many findings there are, are new and are fixed: `9 +2 −1`."""
    found = re.fullmatch(r"([\d,]*)\s*(?:\+([\d,]+))?\s*(?:−([\d,]+))?", text.strip().replace("·", ""))
    assert found is not None, text
    now, added, fixed = (int((part or "0").replace(",", "")) for part in found.groups())
    return now, added, fixed


def test_the_heat_map_sums_up_findings_and_the_trend(visit):
    page = visit("fleet", "#/findings")
    rows = page.locator(".heat tbody tr").all()
    assert len(rows) == 8
    cells = [[read_counts(text) for text in row.locator("td").all_inner_texts()] for row in rows]
    sums = [read_counts(text) for text in texts(page, ".heat tfoot td")]
    for row in cells:
        assert tuple(map(sum, zip(*row[:-1], strict=True))) == row[-1]
    for column, found in zip(zip(*cells, strict=True), sums, strict=True):
        assert tuple(map(sum, zip(*column, strict=True))) == found
    now, added, fixed = sums[-1]
    assert page.locator(".lead").inner_text() == f"{now} findings of 8 rules"
    assert texts(page, ".trend-totals .total-text") == [f"+{added} new", f"−{fixed} fixed"]
    assert f"{now - added + fixed} then, {now} now" in page.locator(".trend-totals").inner_text()
    assert added > 0
    assert fixed > 0
    assert texts(page, ".trend summary") == [f"{added} new", f"{fixed} fixed"]
    label = page.locator(".heat-cell a", has_text="+").first.get_attribute("aria-label")
    assert re.fullmatch(r"[\w-]+, [\w()]+: \d+ findings?, \d+ new(, \d+ fixed)?", label)


@pytest.mark.stress
def test_a_cell_of_the_heat_map_filters_the_findings(visit):
    page = visit("fleet", "#/findings")
    cell = page.locator(".heat-cell a[aria-label^='mutable-image-tag, vision']")
    number = read_counts(cell.inner_text())[0]
    cell.click()
    page.wait_for_selector(".chosen .chip")
    assert route_of(page) == "#/findings?rule=mutable-image-tag&team=vision"
    assert page.locator(".chosen h2").inner_text() == f"{number} findings"
    assert page.locator(".chosen li.finding").count() == number
    assert page.locator(".heat [aria-current]").count() == 1
    assert page.evaluate("document.activeElement === document.querySelector('.chosen h2')")
    page.get_by_role("link", name="Show the jobs").click()
    page.wait_for_selector(".matrix")
    assert 0 < count_jobs(page)[0] <= number
    assert texts(page, ".chip") == ["Team: vision", "Rule: mutable-image-tag"]
    page.go_back()
    page.get_by_role("button", name="Remove the filter Team").click()
    wait_until(page, "location.hash === '#/findings?rule=mutable-image-tag'")
    page.locator(".heat-rule a", has_text="mutable-image-tag").click()
    wait_until(page, "location.hash === '#/findings'")
    assert page.locator(".chosen h2").inner_text() == "All findings"


def test_without_a_revision_the_page_says_how_to_get_the_trend(visit):
    page = visit("repository", "#/findings")
    assert "jobgen report -o site/ --since REV" in page.locator(".trend-hint").inner_text()
    assert page.locator(".trend-totals").count() == 0


def test_a_long_list_of_findings_grows(visit):
    page = visit("large", "#/findings?rule=mutable-image-tag")
    number = int(page.locator(".chosen h2").inner_text().split()[0])
    assert number > 200
    assert page.locator(".chosen li.finding").count() == 100
    page.get_by_role("button", name=f"Show 100 of {number - 100} more").click()
    assert page.locator(".chosen li.finding").count() == 200


def luminance(color: tuple[float, ...]) -> float:
    """Return the relative luminance of WCAG."""
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in (x / 255 for x in color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def blend(over: tuple[float, ...], opacity: float, under: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(opacity * one + (1 - opacity) * other for one, other in zip(over, under, strict=True))


PAINT = """(selector) => {
  const style = getComputedStyle(document.querySelector(selector));
  return [style.fill, Number(style.fillOpacity), style.backgroundColor];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_labels_of_the_treemap_have_contrast(visit, scheme):
    page = visit("fleet", "#/gpus", color_scheme=scheme)
    page.wait_for_selector(".treemap .tile-label")

    def read(selector: str) -> tuple[tuple[float, ...], float, tuple[float, ...]]:
        fill, opacity, ground = page.evaluate(PAINT, selector)
        parse = [tuple(map(float, re.findall(r"[\d.]+", color)[:3])) for color in (fill, ground)]
        return parse[0], opacity, parse[1]

    surface = read(".panel")[2]
    for color in range(7):
        group, group_opacity, _ = read(f"rect.group-{color}")
        tile, tile_opacity, _ = read(f"rect.tile-{color}")
        behind_title = blend(group, group_opacity, surface)
        behind_label = blend(tile, tile_opacity, behind_title)
        for text, behind in (
            (".tile-group", behind_title),
            (".tile-label", behind_label),
            (".tile-value", behind_label),
        ):
            light, dark = sorted((luminance(read(text)[0]), luminance(behind)), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, color)


def test_tiles_of_the_treemap_are_reached_by_keyboard(visit):
    page = visit("fleet", "#/gpus")
    page.wait_for_selector(".treemap a.tile")
    assert page.locator(".treemap a.tile[tabindex='0']").count() == 1
    labels = page.locator(".treemap a.tile").evaluate_all("(all) => all.map((tile) => tile.getAttribute('aria-label'))")
    assert all(re.fullmatch(r"[\w()]+, [\w-]+( others)?: [\d,]+ GPUs?", label) for label in labels)
    sizes = [int(label.rpartition(": ")[2].split()[0].replace(",", "")) for label in labels]
    assert sum(sizes) == int(page.locator(".lead").inner_text().split()[0].replace(",", ""))
    page.locator(".treemap a.tile[tabindex='0']").focus()
    for key, at in (("ArrowRight", 1), ("ArrowDown", 2), ("ArrowLeft", 1), ("End", len(labels) - 1), ("Home", 0)):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == labels[at]
    page.keyboard.press("Enter")
    page.wait_for_selector("main:not(.view-gpus)")
    assert labels[0].split(", ")[1].split(":")[0] in page.evaluate("decodeURIComponent(location.hash)")


def test_small_groups_and_jobs_become_others(visit):
    page = visit("fleet")
    folded = page.evaluate(
        "foldGroups([1000, ...Array(50).fill(1)].map((size, at) => ({name: `g${at}`, size, jobs: []})), 300 * 200)"
        ".map((group) => [group.name, group.size])"
    )
    assert folded == [["g0", 1000], ["50 others", 50]]
    tiles = page.evaluate(
        "foldTiles([500, 400, ...Array(60).fill(1)].map((size) => ({name: 'job', size})), {width: 200, height: 100})"
        ".map((tile) => [tile.name, tile.size])"
    )
    assert tiles == [["job", 500], ["job", 400], ["60 others", 60]]


@pytest.mark.stress
def test_every_chart_is_a_table_too(visit):
    page = visit("fleet", "#/gpus?by=namespace")
    page.wait_for_selector(".treemap a.tile")
    total_gpus = int(page.locator(".lead").inner_text().split()[0].replace(",", ""))
    tables = page.locator("details.as-table")
    assert tables.count() == 2
    for at in range(2):
        tables.nth(at).locator("summary").click()
        tables.nth(at).locator("tbody tr").first.wait_for()
        last = tables.nth(at).locator("tbody tr td:last-child").all_inner_texts()
        assert sum(int(text.replace(",", "")) for text in last) == total_gpus
    label = page.locator(".bars .bar").first.get_attribute("aria-label")
    assert re.fullmatch(r"ml-[\w-]+: [\d,]+ GPUs \([\w-]+ [\d,]+\)", label)
    page.locator(".bars .bar").first.click()
    page.wait_for_selector(".matrix")
    assert route_of(page).startswith("#/fleet?namespace=ml-")
    assert total(page, "GPUs") == int(label.split(": ")[1].split()[0].replace(",", ""))


SCROLL = """async () => {
  const grid = document.querySelector('.matrix');
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  const kept = [];
  let drawn = 0;
  const count = (changes) => changes.forEach((change) => { drawn += change.addedNodes.length; });
  const observer = new MutationObserver(count);
  observer.observe(grid, {childList: true, subtree: true});
  for (let step = 0; step < 12; step++) {
    const before = new Set(document.querySelectorAll('.row'));
    grid.scrollTop += 56;
    await frame();
    kept.push([...document.querySelectorAll('.row')].filter((row) => before.has(row)).length);
  }
  observer.disconnect();
  return [Math.min(...kept), drawn];
}"""
"""How many rows a step of scrolling keeps, at least, and how many elements twelve steps draw."""


def test_many_jobs_scroll_as_a_hundred_do(visit):
    huge, small = visit("huge"), visit("fleet")
    assert count_jobs(huge) == (1_500, 1_500)
    huge.locator(".matrix").evaluate("(grid) => { grid.scrollTop = 42_000 }")
    huge.wait_for_selector("#row-755")
    rows = huge.locator(".row").count()
    assert rows < 40
    (kept, many), (_, few) = (page.evaluate(SCROLL) for page in (huge, small))
    assert kept >= rows - 2
    assert 0 < many < 2 * few
    assert huge.evaluate("document.querySelectorAll('*').length") < 2_000


@pytest.mark.stress
def test_paper_says_which_rows_it_leaves_out(visit):
    page = visit("huge")
    rows = int(page.locator(".matrix").get_attribute("aria-rowcount")) - 1
    note, drawn = "document.querySelector('.print-note')", "document.querySelectorAll('.row').length"
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(f"[{drawn}, {note}.hidden]") == [1000, False]
    assert page.evaluate(f"{note}.textContent").startswith(f"The first 1,000 of {rows:,} rows.")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(f"{drawn} < 60 && {note}.hidden")


@pytest.mark.stress
def test_paper_has_the_filters_and_whole_charts(visit):
    page = visit("fleet", "#/fleet?team=vision")
    page.emulate_media(media="print")
    assert page.locator(".result-count").inner_text().endswith(" of 120 jobs")
    assert page.locator(".chip").inner_text().strip() == "Team: vision"
    assert not page.get_by_role("button", name="Clear filters").is_visible()
    go(page, "#/gpus")
    page.wait_for_selector(".treemap svg")
    assert page.locator(".treemap svg").get_attribute("viewBox").startswith("0 0 ")


SHIFT = """() => new Promise((resolve) => {
  let sum = 0;
  const add = (list) => list.getEntries().forEach((entry) => { sum += entry.value });
  new PerformanceObserver(add).observe({type: 'layout-shift', buffered: true});
  setTimeout(() => resolve(sum), 150);
})"""


@pytest.mark.parametrize("width", [1360, 390])
def test_no_view_shifts_while_it_loads(visit, width):
    for view in ("fleet?team=vision&q=a", "gpus", "findings?team=vision"):
        page = visit("fleet", f"#/{view}", viewport={"width": width, "height": 844})
        assert page.evaluate(SHIFT) < 0.01, view


def test_paper_has_the_findings_that_are_folded(visit):
    page = visit("fleet", "#/findings")
    total_findings = int(page.locator(".lead").inner_text().split()[0])
    closed = page.locator("details:not([open])").count()
    drawn = page.evaluate(
        "() => { dispatchEvent(new Event('beforeprint')); return document.querySelectorAll('.chosen .finding').length }"
    )
    assert drawn == total_findings
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == closed > 0
