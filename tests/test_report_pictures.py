"""The pictures of docs/report.md: taken of a real repository, small, and not older than the page.

`pytest --accept tests/test_report_pictures.py` takes them again.
"""

from __future__ import annotations

import re

import pytest
from pictures import MAX_BYTES, compare_picture, list_colors
from report_browser import ROOT, settle
from report_demo import write_demo
from sampling import sample

import jobgen

PICTURES = ROOT / "docs/pictures"
URL = "https://github.com/example/training-jobs"
LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 800}
VIEWS = {
    "fleet": ("fleet", "#/fleet", "light", LAPTOP),
    "fleet-dark": ("fleet", "#/fleet", "dark", LAPTOP),
    "fleet-phone": ("fleet", "#/fleet", "light", PHONE),
    "job": ("fleet", "#/job/bert-large?envs=dev,prod&diff=1", "light", LAPTOP),
    "capacity": ("fleet", "#/capacity?env=prod", "light", LAPTOP),
    "timeline": ("fleet", "#/capacity?env=prod&tab=timeline", "light", LAPTOP),
    "pull-request": ("changes", "#/changes", "light", LAPTOP),
}


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """Write the pages of a repository and of its last commit."""
    folder = write_demo(tmp_path_factory.mktemp("demo") / "training-jobs")
    pages = {
        "fleet": jobgen.report(folder, since="HEAD~1", repo_url=URL, prices="prices.yaml").page,
        "changes": jobgen.diff(folder, "HEAD~1..HEAD", format="html", repo_url=URL).text,
    }
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page, "utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in pages}


def take_picture(browser, addresses, name: str) -> bytes:
    page_name, route, scheme, size = VIEWS[name]
    page = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page.goto(addresses[page_name] + route)
    page.wait_for_selector("html[data-ready]")
    if name == "job":
        page.locator("button.side", has_text="replicas:").last.click()
    settle(page)
    picture = page.screenshot()
    page.close()
    return picture


@pytest.mark.parametrize("name", sample(VIEWS, 2))
def test_picture_shows_the_page_as_it_is(browser, addresses, tmp_path, accept, name):
    found = take_picture(browser, addresses, name)

    assert compare_picture(PICTURES / f"{name}.png", found, accept=accept, scratch=tmp_path) == ""


def test_pictures_have_the_colors_of_the_page():
    accent, dark_accent, waiting = (13, 95, 102), (108, 201, 207), (133, 83, 0)
    light, dark = (list_colors((PICTURES / f"{name}.png").read_bytes()) for name in ("fleet", "fleet-dark"))

    assert {accent, waiting} <= light
    assert dark_accent in dark


def test_pictures_are_small_and_shown_on_the_page():
    found = {path.name: path.stat().st_size for path in PICTURES.iterdir()}
    shown = re.findall(r"\(pictures/([\w.-]+)\)", (ROOT / "docs/report.md").read_text("utf-8"))

    assert sorted(found) == sorted(f"{name}.png" for name in VIEWS) == sorted(shown)
    assert [name for name, size in found.items() if size > MAX_BYTES] == []
