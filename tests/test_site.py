"""The documentation as a site: it builds without warnings, has every page, and loads nothing from other hosts."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
CONFIG = (ROOT / "mkdocs.yml").read_text("utf-8")
PAGES = {page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md")}
needs_mkdocs = pytest.mark.skipif(find_spec("material") is None, reason="mkdocs-material is not installed")


def read_navigation() -> dict[str, list[str]]:
    """Return the pages of each part of the site."""
    text = CONFIG[CONFIG.index("nav:\n") :]
    return {
        name: re.findall(r"[\w/-]+\.md", str(part))
        for each in yaml.safe_load(text)["nav"]
        for name, part in each.items()
    }


def test_navigation_has_its_parts_and_every_page_once():
    parts = read_navigation()
    listed = [page for pages in parts.values() for page in pages]

    assert list(parts) == ["Home", "Start", "How-to", "Reference", "Explanation", "简体中文"]
    assert sorted(listed) == sorted(page for page in PAGES if not page.startswith("rules/"))


def test_the_first_page_lists_the_same_pages_in_the_same_parts():
    text = (ROOT / "docs/index.md").read_text("utf-8")
    for part, pages in read_navigation().items():
        if part in {"Start", "How-to", "Reference", "Explanation"}:
            section = text.partition(f"\n## {part}\n")[2].partition("\n## ")[0]
            linked = re.findall(r"^\|.*?\(([\w/-]+\.md)\)", section, re.MULTILINE)

            assert sorted(linked) == sorted(pages)


def test_pages_that_come_first_in_the_search_exist():
    boosted = runpy.run_path(str(ROOT / "docs/site/hooks.py"))["_BOOST"]

    assert boosted.keys() <= PAGES


def test_lists_are_lists_on_the_site_too():
    """GitHub accepts a list right below a paragraph, and items inside of items by two spaces; the site needs more."""
    wrong = []
    for page in sorted(PAGES):
        text = re.sub(
            r"^(```|~~~).*?^\1$", "", (ROOT / "docs" / page).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL
        )
        wrong += [
            (page, found) for found in re.findall(r"^(?![-*|#<>]|\d+\.|\s).+\n(?:[-*]|\d+\.) .*", text, re.MULTILINE)
        ]
        wrong += [(page, found) for found in re.findall(r"^ {1,3}[-*] .*", text, re.MULTILINE)]

    assert wrong == []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    return folder


@needs_mkdocs
@pytest.mark.stress  # `make docs` builds the site, too
def test_site_builds_without_warnings_and_has_every_page(site):
    built = {page.relative_to(site).as_posix() for page in site.glob("**/*.html")}

    assert {name.replace(".md", ".html") for name in PAGES} <= built
    assert not list(site.glob("**/*.py"))


@needs_mkdocs
@pytest.mark.stress  # `make docs` builds the site, too
def test_links_of_the_list_for_assistants_lead_to_files_of_the_site(site):
    links = re.findall(r"\]\((.*?)\)", (site / "llms.txt").read_text("utf-8"))

    assert len(links) > 20
    assert [link for link in links if not (site / link).is_file()] == []


@needs_mkdocs
@pytest.mark.stress  # `make docs` builds the site, too
def test_site_loads_nothing_from_other_hosts(site):
    loaded = re.compile(r"<(?:script|img|iframe)[^>]* src=\"?(https?:[^\" >]*)|<link[^>]* href=\"?(https?:[^\" >]*)")
    found = {match for page in site.glob("**/*.html") for match in loaded.findall(page.read_text("utf-8"))}

    assert found == set()


@needs_mkdocs
@pytest.mark.stress  # `make docs` builds the site, too
def test_links_out_of_the_folder_lead_to_files_of_the_repository(site):
    links = {
        link
        for page in site.glob("**/*.html")
        for link in re.findall(r"https://github\.com/jobgen/jobgen/blob/main/([\w./-]+)", page.read_text("utf-8"))
    }

    assert links
    assert [link for link in sorted(links) if not (ROOT / link).exists()] == []


@needs_mkdocs
@pytest.mark.stress  # `make docs` builds the site, too
def test_chinese_pages_are_marked_as_chinese(site):
    languages = {
        page.relative_to(site).as_posix(): re.search(r'<html lang="?([\w-]+)', page.read_text("utf-8"))[1]
        for page in site.glob("**/*.html")
    }

    assert {name for name, language in languages.items() if language == "zh"} == {
        name.replace(".md", ".html") for name in PAGES if name.startswith("zh/")
    }


@needs_mkdocs
@pytest.mark.stress  # `make docs` builds the site, too
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(
    ("query", "pages"),
    [
        ("disable a rule", {"configure_rules.html", "lint.html"}),
        ("ignore a finding", {"configure_rules.html", "lint.html"}),
        ("baseline", {"configure_rules.html", "lint.html"}),
        ("install", {"install.html"}),
        ("queue", {"kueue.html", "queue_changes.html"}),
        ("environment", {"environments.html"}),
        ("mutable-image-tag", {"rules/mutable-image-tag.html"}),
    ],
)
def test_the_search_finds_the_page_about_a_task_first(site, query, pages):
    command = ["node", str(ROOT / "tests/site_search.js"), str(site), query]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert json.loads(done.stdout)[query][0].partition("#")[0] in pages


def has_chinese_font() -> bool:
    try:
        return bool(subprocess.run(["fc-list", ":lang=zh"], capture_output=True, check=False).stdout)
    except OSError:
        return False


DRAW = """() => {
  const heading = document.querySelector("h1");
  const style = getComputedStyle(heading);
  const draw = (text) => {
    const canvas = document.createElement("canvas");
    const context = canvas.getContext("2d");
    context.font = `40px ${style.fontFamily}`;
    context.fillText(text, 0, 60);
    return [context.measureText(text).width, canvas.toDataURL()];
  };
  const range = document.createRange();
  range.selectNodeContents(heading.firstChild);
  const text = heading.firstChild.textContent.replace(/\\u200b/g, "");
  return {text, width: range.getBoundingClientRect().width / parseFloat(style.fontSize), drawn: [...text].map(draw)};
}"""


@needs_mkdocs
@pytest.mark.stress  # `make docs` builds the site, too
def test_chinese_text_is_drawn_with_its_glyphs(site, browser):
    if not has_chinese_font():
        pytest.skip("there is no font with Chinese; `apt-get install fonts-noto-cjk` installs one")
    page = browser.new_page()
    page.goto((site / "zh/rules.html").as_uri())
    found = page.evaluate(DRAW)
    page.close()

    assert found["text"] == "规则"
    # Each character is a square of the font's size. Characters without a glyph would all be the same box.
    assert found["width"] == pytest.approx(2, abs=0.2)
    assert [width for width, _ in found["drawn"]] == [40, 40]
    assert len({picture for _, picture in found["drawn"]}) == 2
