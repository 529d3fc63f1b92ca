"""Reports of sections with lines, such as those of `jobgen upgrade` and `jobgen drift`: text, Markdown and a page.

The page loads nothing and runs nothing: every text is escaped, and there is no script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.reports.escape import dump_json, markdown_text, visible

_CODE = lazy_pattern(r"`([^`]+)`")
_HEAD = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>jobgen</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
li { overflow-wrap: anywhere; }
.below { list-style: none; margin-left: 1.5rem; color: GrayText; }
:root { color-scheme: light dark; }
</style>
"""


class Section(NamedTuple):
    """A heading with lines below it. A line that belongs to the one above starts with two spaces."""

    title: str
    lines: Sequence[str]


class EnvironmentSections(NamedTuple):
    """What a report says about an environment."""

    environment: str
    sections: Sequence[Section]


class SectionReport(NamedTuple):
    """A report: its title, its summary, and its sections by environment; `data` is all of it for programs."""

    title: str
    summary: str
    environments: Sequence[EnvironmentSections]
    left_out: Sequence[str]
    """What it does not cover, because of errors."""
    data: dict[str, Any]

    def list_all(self) -> Iterator[EnvironmentSections]:
        """Yield the environments that have something to say, and what is left out."""
        yield from (each for each in self.environments if each.sections)
        if self.left_out:
            yield EnvironmentSections("", [Section("Left out, because of errors", self.left_out)])


def render_text(report: SectionReport) -> str:
    """Write a report for terminals."""
    lines: list[str] = []
    for each in report.list_all():
        lines += [f"environment {each.environment}", ""] if each.environment else []
        for title, several in each.sections:
            lines += [title, *(f"  {line}" for line in several), ""]
    return "".join(f"{visible(line)}\n" for line in lines)


def render_markdown(report: SectionReport) -> str:
    """Write a report for tickets and pull requests."""
    lines = [f"### {report.title}", "", markdown_text(report.summary), ""]
    for each in report.list_all():
        lines += [f"#### {markdown_text(each.environment)}", ""] if each.environment else []
        for title, several in each.sections:
            lines += [f"**{markdown_text(title)}**", ""]
            lines += (f"{'  ' if line.startswith('  ') else ''}- {markdown_text(line.strip())}" for line in several)
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def render_html(report: SectionReport) -> str:
    """Write a report as a page: a heading and a list for each section."""
    parts = [f"<p>{_text(report.summary)}</p>\n"]
    for each in report.list_all():
        for title, lines in each.sections:
            heading = f"{title} ({each.environment})" if each.environment else title
            parts.append(f"<h2>{_text(heading)}</h2>\n<ul>\n{''.join(map(_item, lines))}</ul>\n")
    return wrap_page(report.title, "".join(parts))


def wrap_page(title: str, body: str, style: str = "") -> str:
    """Write a page around its markup, whose texts are escaped; `style` is added to that of all pages."""
    own = f"<style>\n{style}</style>\n" if style else ""
    return f"{_HEAD}{own}<h1>{_text(title)}</h1>\n{body}</html>\n"


def render_json(report: SectionReport) -> str:
    """Write the data of a report for programs."""
    return dump_json(report.data) + "\n"


FORMATS: dict[str, Callable[[SectionReport], str]] = {
    "html": render_html,
    "json": render_json,
    "markdown": render_markdown,
    "text": render_text,
}


def _item(line: str) -> str:
    return f"<li{' class=below' if line.startswith('  ') else ''}>{_text(line.strip())}</li>\n"


def _text(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(visible(text)))
