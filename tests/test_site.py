"""The documentation as a site: it builds without warnings, has every page, and loads nothing from other hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
CONFIG = (ROOT / "mkdocs.yml").read_text("utf-8")
PAGES = {page.name for page in ROOT.glob("docs/*.md")}
needs_mkdocs = pytest.mark.skipif(find_spec("material") is None, reason="mkdocs-material is not installed")


def read_navigation() -> dict[str, list[str]]:
    """Return the pages of each part of the site."""
    text = CONFIG[CONFIG.index("nav:\n") :]
    return {
        name: re.findall(r"[\w-]+\.md", str(part))
        for each in yaml.safe_load(text)["nav"]
        for name, part in each.items()
    }


def test_navigation_has_four_parts_and_every_page_once():
    parts = read_navigation()
    listed = [page for pages in parts.values() for page in pages]

    assert list(parts) == ["Home", "Tutorial", "How-to", "Reference", "Explanation"]
    assert sorted(listed) == sorted(PAGES)


def test_the_first_page_lists_the_same_pages_in_the_same_parts():
    text = (ROOT / "docs/index.md").read_text("utf-8")
    for part, pages in read_navigation().items():
        if part in {"How-to", "Reference", "Explanation"}:
            section = text.partition(f"\n## {part}\n")[2].partition("\n## ")[0]
            linked = re.findall(r"^\|.*?\(([\w-]+\.md)\)", section, re.MULTILINE)

            assert sorted(linked) == sorted(pages)


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
def test_site_builds_without_warnings_and_has_every_page(site):
    built = {page.name for page in site.glob("*.html")}

    assert {name.replace(".md", ".html") for name in PAGES} <= built
    assert not list(site.glob("**/*.py"))


@needs_mkdocs
def test_site_loads_nothing_from_other_hosts(site):
    loaded = re.compile(r"<(?:script|img|iframe)[^>]* src=\"?(https?:[^\" >]*)|<link[^>]* href=\"?(https?:[^\" >]*)")
    found = {match for page in site.glob("*.html") for match in loaded.findall(page.read_text("utf-8"))}

    assert found == set()


@needs_mkdocs
def test_links_out_of_the_folder_lead_to_files_of_the_repository(site):
    links = {
        link
        for page in site.glob("*.html")
        for link in re.findall(r"https://github\.com/jobgen/jobgen/blob/main/([\w./-]+)", page.read_text("utf-8"))
    }

    assert links
    assert [link for link in sorted(links) if not (ROOT / link).exists()] == []
