"""A hook of mkdocs: links to files outside of docs/ lead to the repository, and the page of all rules stays fast."""

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = re.compile(r"(?<=\]\()(?:\.\./)+(?=[\w.])")


def on_page_markdown(markdown: str, *, page: Any, config: dict[str, Any], **_: object) -> str:
    """Return the text of a page with the addresses of files that the site does not have."""
    if page.file.src_path == "index.md":
        page.meta["hide"] = ["navigation"]
    if page.file.src_path == "rules.md":
        # Hundreds of headings and examples: buttons and a second table of contents take a browser seconds.
        page.meta["hide"] = ["toc"]
        markdown = markdown.replace("\n~~~yaml\n", "\n~~~{.yaml .no-copy}\n")
    return _OUTSIDE.sub(f"{config['repo_url']}/blob/main/", markdown)
