"""The views Fleet, GPUs and Findings in a real browser: filters, history, order, charts and trends."""

from __future__ import annotations

import re

from report_browser import texts


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


def test_states_have_words_and_the_help_explains_them(visit):
    page = visit("fleet", "#/fleet?state=broken")
    assert all("broken" in text for text in texts(page, ".row:not(.is-sweep) .cell:not(.is-absent) .cell-more"))
    page.keyboard.press("?")
    words = texts(page, "dialog dt.state")
    assert words == ["active", "suspended", "inactive", "broken", "absent"]
    assert page.locator("dialog dd", has_text="suspended in Git").is_visible()
    page.keyboard.press("Escape")


def test_the_link_to_what_is_shown_can_be_copied(visit):
    page = visit("fleet", "#/fleet?team=vision")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.evaluate("document.addEventListener('copy', () => { window.copied = document.activeElement.value })")
    page.get_by_role("button", name="Copy the link").click()
    page.wait_for_function("document.getElementById('status').textContent === 'Link copied'")
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
    page.wait_for_function("location.hash === '#/findings?rule=mutable-image-tag'")
    page.locator(".heat-rule a", has_text="mutable-image-tag").click()
    page.wait_for_function("location.hash === '#/findings'")
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
