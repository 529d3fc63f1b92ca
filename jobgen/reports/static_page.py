"""A page of headings and lists that loads nothing and runs nothing: every text is escaped, and there is no script."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from jobgen.reports.escape import visible

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
    parts = [f"<p>{_text(summary)}</p>\n"]
    for heading, lines in sections:
        parts.append(f"<h2>{_text(heading)}</h2>\n<ul>\n{''.join(map(_item, lines))}</ul>\n")
    return wrap_page(title, "".join(parts))


def wrap_page(title: str, body: str, style: str = "") -> str:
    """Write a page around its markup, whose texts are escaped; `style` is added to that of all pages."""
    return (
        f"{_HEAD}{f'<style>{chr(10)}{style}</style>{chr(10)}' if style else ''}<h1>{_text(title)}</h1>\n{body}</html>\n"
    )


def _item(line: str) -> str:
    return f"<li{' class=below' if line.startswith('  ') else ''}>{_text(line.strip())}</li>\n"


def _text(text: str) -> str:
    return escape(visible(text))
