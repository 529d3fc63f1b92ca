"""A hook of mkdocs: links to files outside of docs/ lead to the repository."""

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = re.compile(r"(?<=\]\()(?:\.\./)+(?=[\w.])")


def on_page_markdown(markdown: str, *, config: dict[str, Any], **_: object) -> str:
    """Return the text of a page with the addresses of files that the site does not have."""
    return _OUTSIDE.sub(f"{config['repo_url']}/blob/main/", markdown)
