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
