"""Links of all pages, without network: each file exists, and each anchor is a heading of that file."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [
        *(*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "docs/llms.txt"),
        *(ROOT / "policies/README.md", ROOT / "editors/vscode/README.md"),
    ]
)
FENCE = re.compile(r"^(```|~~~).*?^\1$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)|(?:src|href)=\"([^\"]+)\"")
ADDRESS = re.compile(r"[a-z]+:")
MENTION = re.compile(r"(?<![/\w])docs/[\w./-]+\.(?:md|json)\b")


@cache
def read_prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return FENCE.sub("", page.read_text("utf-8"))


@cache
def list_anchors(page: Path) -> frozenset[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    anchors: dict[str, int] = {}
    for title in re.findall(r"^#+ (.*?)\s*$", read_prose(page), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        anchors[anchor] = anchors.get(anchor, 0) + 1
    return frozenset(anchors)


def list_links(page: Path) -> list[str]:
    prose = re.sub(r"`[^`\n]*`", "", read_prose(page))
    return [first or second for first, second in LINK.findall(prose)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page):
    broken = []
    for link in list_links(page):
        if ADDRESS.match(link):
            continue
        path, _, anchor = link.partition("#")
        target = Path(os.path.normpath(page.parent / path)) if path else page
        if not target.exists() or not target.is_relative_to(ROOT) or (anchor and anchor not in list_anchors(target)):
            broken.append(link)

    assert broken == []


def test_links_are_found_and_broken_ones_are_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        '# A `b` (c)\n\n[x](#a-b-c) [y](no.md) `[z](code.md)` <img src="p.png">\n\n```\n[q](fence.md)\n```\n'
    )

    assert list_links(page) == ["#a-b-c", "no.md", "p.png"]
    assert list_anchors(page) == {"a-b-c"}
    with pytest.raises(AssertionError, match=r"no\.md.*p\.png"):
        test_links_lead_to_files_and_headings(page)


def test_headings_of_a_page_have_different_anchors():
    """A second heading of the same text has another anchor on GitHub than on the site."""
    repeated = []
    for page in PAGES:
        titles = re.findall(r"^#+ (.*?)\s*$", read_prose(page), re.MULTILINE)
        if page.name != "CHANGELOG.md" and len(titles) != len(list_anchors(page)):
            repeated.append(page.name)

    assert repeated == []


def test_pages_that_the_program_names_exist():
    files = [*ROOT.glob("jobgen/**/*.py"), *ROOT.glob("jobgen/data/**/*.*"), ROOT / "action.yml"]
    named = {
        (path.relative_to(ROOT).as_posix(), page)
        for path in files
        if path.suffix not in {".pyc", ".gz", ".bin"}
        for page in MENTION.findall(path.read_text("utf-8", errors="replace"))
    }

    assert len(named) > 10
    assert [entry for entry in named if not (ROOT / entry[1]).is_file()] == []
