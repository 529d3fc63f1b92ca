"""A page of headings and lists that loads nothing and runs nothing: every text is escaped, and there is no script."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from jobgen.model.lazy_re import lazy_pattern
from jobgen.reports.escape import visible

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


def write_page(title: str, summary: str, sections: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Write a page: a heading and a list for each section. A line that starts with spaces belongs to the one above."""
    parts = [_HEAD, f"<h1>{_text(title)}</h1>\n<p>{_text(summary)}</p>\n"]
    for heading, lines in sections:
        parts.append(f"<h2>{_text(heading)}</h2>\n<ul>\n{''.join(map(_item, lines))}</ul>\n")
    return "".join(parts) + "</html>\n"


def _item(line: str) -> str:
    return f"<li{' class=below' if line.startswith('  ') else ''}>{_text(line.strip())}</li>\n"


def _text(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(visible(text)))
