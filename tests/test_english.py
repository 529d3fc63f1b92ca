"""Messages, docstrings, and the texts of rules and policies avoid phrases that read like a translation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from moduletrees import find_nodes, parse_module

from jobgen.check.rule_docs import all_docs

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "jobgen").rglob("*.py"))
POLICIES = [path for path in sorted((ROOT / "policies").rglob("*.yaml")) if "tests" not in path.parts]
PATTERNS = {
    r"\bmay\b": "write `can`, `must` or `cannot`",
    r", too\b(?! \w)": "write `also` before the verb",
    r"\bthose that\b": "name the things",
    r"\b(?:is|are) (?:that|those|none) (?:of|that)\b": "name the thing, or say who has it",
    r"\b(?:came|went) with\b": "write `added in` or `removed in`",
    r"(?<![Tt]here )\bis no (?!longer\b)": "write `is not a`",
    r"` or `[^`]*` or `": "write a list: `a`, `b` or `c`",
    r"\bhas no place\b|\bexclude each other\b": "write `cannot be set` or `cannot be combined`",
    r"\bas it was meant\b|\bwhat is meant\b": "say what happens instead",
    r"\bjudged\b": "write `checked`",
}
"""Regular expressions of texts that read like a translation, and what to write."""
IN_PAGES = {
    r"\bshall\b": "write `must` or `can`",
    r"\b[A-Za-z]+n't\b": "write `not`",
    r"\bin vain\b|\bspelt\b|\bhas not the\b": "use plain words",
    r"\bof which day\b": "write `on which day`",
}
"""The same for pages."""
GENERATED = [f"{name}.md" for name in "api commands conformance defects incidents policies rules".split()]
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
ABOUT_MESSAGES = [r"` or `[^`]*` or `", r"\bjudged\b"]
HELP = {"commands", "options.py"}
"""Modules with texts of `--help`, which docs/commands.md shows."""


def find_faults(text: str) -> list[str]:
    """Return what is wrong with a text."""
    return [
        f"{advice}: …{text[max(found.start() - 40, 0) : found.end() + 40]}…"
        for pattern, advice in PATTERNS.items()
        for found in re.finditer(pattern, text)
    ]


def is_text(node: ast.AST) -> bool:
    """Return True if a statement is a string alone: the documentation of what is above it."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def list_templates(node: ast.AST) -> Iterator[str]:
    """Yield the strings in a tree that are more than two words, with `{}` for what they insert; no docstrings."""
    others = {id(text.value) for text in find_nodes(node, ast.Expr) if is_text(text)}
    for text in find_nodes(node, ast.JoinedStr):
        others |= {id(part) for part in text.values if isinstance(part, ast.Constant)}
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in text.values)
    for text in find_nodes(node, ast.Constant):
        if isinstance(text.value, str) and text.value.count(" ") > 1 and id(text) not in others:
            yield text.value


def test_messages() -> None:
    modules = [path for path in MODULES if HELP.isdisjoint(path.parts)]
    assert [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in modules
        for text in list_templates(parse_module(path))
        for fault in find_faults(text)
    ] == []


def test_docstrings_say_what_is_returned() -> None:
    texts = (
        (path, node.value.value)
        for path in MODULES
        for node in find_nodes(parse_module(path), ast.Expr)
        if is_text(node)
    )
    assert [f"{path.relative_to(ROOT)}: {text}" for path, text in texts if text.startswith("Whether ")] == []


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_policies(path: Path) -> None:
    assert find_faults(re.sub(r"#.*", "", path.read_text("utf-8"))) == []


def test_pages_of_rules() -> None:
    assert [
        f"{doc.name}: {fault}" for doc in all_docs(None).values() for fault in find_faults(f"{doc.summary} {doc.text}")
    ] == []


@pytest.mark.parametrize(
    "text", ["it may fail", "`a` is in `b`, too", "use `a` or `b` or `c`", "it came with 1.3", "`x` is no index"]
)
def test_faults_are_found(text: str) -> None:
    assert len(find_faults(text)) == 1


def test_pages_read_like_english() -> None:
    """What people wrote: code is left out, and what docs/build_*.py writes."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(ROOT.glob("docs/*.md"))]
    texts = {page.name: CODE.sub("", page.read_text("utf-8")) for page in pages if page.name not in GENERATED}
    patterns = {pattern: advice for pattern, advice in PATTERNS.items() if pattern not in ABOUT_MESSAGES} | IN_PAGES

    assert [
        f"{name}: {advice}: {text[max(found.start() - 40, 0) : found.end() + 40]!r}"
        for name, text in texts.items()
        for pattern, advice in patterns.items()
        for found in re.finditer(pattern, text)
    ] == []
