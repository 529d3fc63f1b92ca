"""The HTML format: one page that loads nothing and runs nothing."""

from __future__ import annotations

from html import escape

from jobgen.features.upgrade.rehearse import Rehearsal
from jobgen.features.upgrade.sections import list_sections, summarize
from jobgen.reports.escape import visible

_HEAD = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>jobgen upgrade</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
li { overflow-wrap: anywhere; }
.below { list-style: none; margin-left: 1.5rem; color: GrayText; }
:root { color-scheme: light dark; }
</style>
<h1>Upgrade</h1>
"""


def render(rehearsal: Rehearsal) -> str:
    """Write a list for each section of an environment."""
    parts = [_HEAD, f"<p>{_text(summarize(rehearsal))}</p>\n"]
    for upgrade in rehearsal.environments:
        parts.append(f"<h2>{_text(upgrade.environment or 'all jobs')}</h2>\n")
        for title, lines in list_sections(upgrade):
            items = (
                f"<li{' class=below' if line.startswith('  ') else ''}>{_text(line.strip())}</li>\n" for line in lines
            )
            parts.append(f"<h3>{_text(title)}</h3>\n<ul>\n{''.join(items)}</ul>\n")
    parts += (f"<p>left out, because of errors: {_text(each.describe())}</p>\n" for each in rehearsal.left_out)
    return "".join(parts) + "</html>\n"


def _item(line: str) -> str:
    return f"<li{' class=below' if line.startswith('  ') else ''}>{_text(line.strip())}</li>\n"


def _text(text: str) -> str:
    return escape(visible(text))
