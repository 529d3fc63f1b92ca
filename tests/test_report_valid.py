"""The HTML of the page is valid: as it is written, and as the scripts draw each view."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from report_browser import go, settle

html5lib = pytest.importorskip("html5lib", reason="html5lib is not installed")

VIEWS = {
    "fleet": ("#/fleet", "#/gpus", "#/findings", "#/capacity", "#/job"),
    "changes": ("#/changes",),
    "hostile": ("#/fleet", "#/findings", "#/job"),
    "empty": ("#/fleet", "#/gpus", "#/findings", "#/capacity"),
}
NAMED = ("aria-labelledby", "aria-describedby", "aria-controls", "aria-activedescendant", "aria-owns", "for")
WITHOUT_ROLE = {"div", "span", "p", "b", "i", "em", "strong", "small", "code", "mark"}
"""Elements that may not have a label unless they have a role."""
SERIALIZE = """() => {
  const copy = document.documentElement.cloneNode(true);
  for (const each of copy.querySelectorAll("style, script")) each.textContent = "";
  return "<!doctype html>\\n" + copy.outerHTML;
}"""
FIRST_JOB = """formatRoute(["job", jobKey(
  buildModel(new PageData(JSON.parse(document.getElementById("data").textContent))).jobs[0])])"""


def parse(text: str):
    """Parse as the standard says; raise at the first error, such as wrong nesting or an end tag without a start."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)


def list_faults(document) -> list[str]:
    """List duplicate ids, references to none, and labels of elements that cannot have one."""
    elements = [element for element in document.iter() if isinstance(element.tag, str)]
    ids = Counter(element.get("id") for element in elements if element.get("id"))
    faults = [f"the id `{name}` is used {count} times" for name, count in ids.items() if count > 1]
    for element in elements:
        for name in NAMED:
            missing = [each for each in element.get(name, "").split() if each not in ids]
            faults += [f"`{name}` of <{element.tag}> refers to `{each}`" for each in missing]
        if element.tag in WITHOUT_ROLE and element.get("aria-label") and not element.get("role"):
            faults.append(f"<{element.tag} class={element.get('class')}> has a label and no role")
    return faults


def test_faults_are_found():
    document = parse(
        "<!doctype html><html><head><title>a</title></head><body><p id=a></p><p id=a></p>"
        "<span aria-label=b aria-controls=c></span></body></html>"
    )

    assert len(list_faults(document)) == 3
    with pytest.raises(html5lib.html5parser.ParseError):
        parse("<!doctype html><title>a</title><p><a href='#'><a href='#'>b</a></a></p>")


@pytest.mark.parametrize("name", ["hostile", "changes"])
def test_written_page_is_valid(pages, name):
    document = parse(Path(unquote(urlsplit(pages(name)).path)).read_text("utf-8"))

    assert list_faults(document) == []
    assert document.find(".//title").text
    assert [element.get("id") for element in document.iter("script")] == ["data", None]


@pytest.mark.parametrize("name", VIEWS)
def test_drawn_views_are_valid(visit, name):
    page = visit(name)
    for view in VIEWS[name]:
        route = page.evaluate(FIRST_JOB) if view == "#/job" else view
        go(page, route)
        settle(page)
        assert list_faults(parse(page.evaluate(SERIALIZE))) == [], view
        assert page.locator("main h1, main [role=treegrid]").count() > 0, view
