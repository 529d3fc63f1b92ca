"""A hook of mkdocs: links out of docs/ work, pages have their language and Markdown, and large pages stay fast."""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

_BOOST = {
    "configure_rules.md": 100.0,
    "environments.md": 10.0,
    "install.md": 10.0,
    "kueue.md": 10.0,
    "lint.md": 3.0,
    "queue_changes.md": 5.0,
    "api.md": 0.2,
    "assistants.md": 0.2,
    "defects.md": 0.2,
    "rules.md": 0.2,
}
"""How much pages count in the search, if not 1: long lists have every word, and pages that explain come first."""
_RULES_BOOST = 0.5
_UPWARD = re.compile(r"(?<=\]\()\.\./[\w./-]+")


def on_page_markdown(markdown: str, *, page: Any, config: dict[str, Any], **_: object) -> str:
    """Return the text of a page with the addresses of files that the site does not have."""
    source = page.file.src_uri
    if source == "index.md":
        page.meta["hide"] = ["navigation"]
    if source in _BOOST:
        page.meta["search"] = {"boost": _BOOST[source]}
    if source.startswith("rules/"):
        # A search for a subject finds the pages that explain it first, a search for the name of a rule its page.
        page.meta["search"] = {"boost": _RULES_BOOST}

    def lead_to_repository(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(source), link[0]))
        return link[0] if path.startswith("docs/") else f"{config['repo_url']}/blob/main/{path}"

    return _UPWARD.sub(lead_to_repository, markdown)


def on_page_context(context: dict[str, Any], *, page: Any, config: Any, **_: object) -> dict[str, Any]:
    """Have the words around a page, and its `lang`, in the language of the page."""
    config.theme["language"] = "zh" if page.file.src_uri.startswith("zh/") else "en"
    return context


def on_post_build(*, config: dict[str, Any]) -> None:
    """Add the Markdown of the pages that llms.txt lists, which assistants read instead of HTML."""
    home, site = Path(config["docs_dir"]), Path(config["site_dir"])
    for name in re.findall(r"\]\(([\w/]+\.md)\)", (home / "llms.txt").read_text("utf-8")):
        shutil.copyfile(home / name, site / name)
