"""Keep the Chinese pages in step with their English sources, and write docs/zh/rules.md.

The first line of a translated page names its source and the digest of the prose that was translated. Blocks of code are
those of the source, so the test that runs the source's commands covers both pages.

`python docs/build_zh.py` copies the blocks, writes the version of jobgen, and reports sources whose prose has changed.
`python docs/build_zh.py PAGE...` also records that these pages are translated; `--check` writes nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from zh_rules import build_rules_page

from jobgen import __version__

ROOT = Path(__file__).parent.parent
COMMAND = "python docs/build_zh.py"
RULES = ROOT / "docs/zh/rules.md"
_HEAD = re.compile(r"<!-- source: (?P<source>\S+) sha256:(?P<digest>[0-9a-f]{16}) -->\n")
_LINE = re.compile(r"^> 英文原文：.*$", re.MULTILINE)
_BLOCK = re.compile(
    r"^(?P<fails><!-- fails -->\n)?(?P<fence>```|~~~)(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_GENERATED = re.compile(r"^<!-- Written by docs/.*?^<!-- End of the part that .*?-->$", re.MULTILINE | re.DOTALL)
"""Tables of a source that a Chinese page links instead."""
_COMMENT = re.compile(r" *# .*")


class Page(NamedTuple):
    """A translated page, with the source that its first line names."""

    path: Path
    text: str
    source: str
    digest: str
    """Of the prose of the source when it was translated."""


def main() -> int:
    """Write the pages or compare them, and report what needs a translator."""
    arguments = sys.argv[1:]
    translated = {os.path.abspath(name) for name in arguments if name != "--check"}
    problems = []
    for path in [*list_pages(), RULES]:
        text, found = build_page(path, is_translated=str(path) in translated)
        problems += [f"{path.relative_to(ROOT)}: {each}" for each in found]
        current = path.is_file() and path.read_text("utf-8") == text
        if not current and "--check" in arguments:
            problems.append(f"{path.relative_to(ROOT)} is out of date: run `{COMMAND}`")
        elif not current:
            path.write_text(text, "utf-8")
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    return 1 if problems else 0


def list_pages() -> list[Path]:
    """Return the pages that people translate; the first page of docs/zh is written for it and has no source."""
    pages = {ROOT / "README.zh.md", *ROOT.glob("docs/zh/**/*.md")}
    return sorted(pages - {RULES, ROOT / "docs/zh/index.md"})


def build_page(path: Path, *, is_translated: bool = False) -> tuple[str, list[str]]:
    """Return the text that a page should have, and what only a translator can change."""
    if path == RULES:
        text, sentences, problems = build_rules_page()
        head, line = format_head(path, "docs/rules.md", digest_prose(sentences))
        return f"{head}\n{text.replace('SOURCE', line)}", problems
    page = read_page(path)
    if page is None:
        return path.read_text("utf-8"), ["the first line must be `<!-- source: PAGE sha256:… -->`"]
    source = (ROOT / page.source).read_text("utf-8")
    now = digest_prose(source)
    problems = list(compare_blocks(page.text, source))
    if now != page.digest and not is_translated:
        name = path.relative_to(ROOT)
        problems.append(
            f"{page.source} has changed since it was translated; translate the change, then run `{COMMAND} {name}`"
        )
    head, line = format_head(path, page.source, now if is_translated else page.digest)
    text = _HEAD.sub(head, page.text, count=1)
    if not _LINE.search(text):
        problems.append(f"the page must have a line `{line}`")
    text = _LINE.sub(line, text, count=1)
    return (text if problems else copy_blocks(text, source)), problems


def read_page(path: Path) -> Page | None:
    """Return a translated page, or nothing if it does not name its source."""
    text = path.read_text("utf-8")
    head = _HEAD.match(text)
    if head is None or not (ROOT / head["source"]).is_file():
        return None
    return Page(path, text, head["source"], head["digest"])


def format_head(path: Path, source: str, digest: str) -> tuple[str, str]:
    """Return the comment that names the source of a page, and the line that readers see."""
    link = os.path.relpath(ROOT / source, path.parent)
    return (
        f"<!-- source: {source} sha256:{digest} -->\n",
        f"> 英文原文：[{source}]({link})，对应 jobgen {__version__}。",
    )


def digest_prose(text: str) -> str:
    """Return a digest of what is translated: everything but code and generated tables, whatever the length of lines."""
    text = _GENERATED.sub("", text)
    prose = _BLOCK.sub(lambda block: block[0] if block["language"] == "text" else f"```{block['language']}", text)
    return hashlib.sha256(" ".join(prose.split()).encode()).hexdigest()[:16]


def read_blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """Return the blocks of code: whether the last command fails, the language, and the lines.

    Blocks `text` are not run. Their comments are translated, and left out here.
    """
    for block in _BLOCK.finditer(text):
        lines = _COMMENT.sub("", block["text"]) if block["language"] == "text" else block["text"]
        yield block["fails"] or "", block["language"], lines


def compare_blocks(text: str, source: str) -> Iterator[str]:
    """Say which blocks cannot be copied: others are needed, or commands differ beside translated comments."""
    ours, theirs = list(read_blocks(text)), list(read_blocks(source))
    if [block[:2] for block in ours] != [block[:2] for block in theirs]:
        yield f"has {len(ours)} blocks of code, the source has {len(theirs)}, or they are of other languages"
        return
    for our, their in zip(ours, theirs, strict=True):
        if our[1] == "text" and our != their:
            yield f"the commands of a block differ from the source:\n{our[2]}"


def copy_blocks(text: str, source: str) -> str:
    """Return a page with the blocks of its source, but for those with translated comments."""
    blocks: Iterable[re.Match[str]] = _BLOCK.finditer(source)
    following = iter(blocks)

    def replace(block: re.Match[str]) -> str:
        theirs = next(following)
        return block[0] if block["language"] == "text" else theirs[0]

    return _BLOCK.sub(replace, text)


if __name__ == "__main__":
    raise SystemExit(main())
