"""Write signatures, arguments and exceptions into docs/api.md; with --check, only test whether they are current."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jobgen
import jobgen.kueue

PAGE = Path(__file__).parent / "api.md"
START = "<!-- Written by docs/build_api.py from the docstring: run `make docs`. -->\n"
END = "<!-- end -->\n"
_ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {8,}.*)*)$", re.MULTILINE)
_TYPES = {
    "ProjectPath": "`Project` or path",
    "str | os.PathLike[str]": "path",
    "Sequence[str]": "list of text",
    "tuple[str, str] | None": "two paths",
    "str | None": "text or None",
    "bytes | None": "bytes or None",
    "TextFormat": "text",
    "Progress": "function",
    "Iterable[Source] | Source": "list of mappings and paths",
    "Mapping[str, Any] | None": "mapping or None",
    "Iterable[str | os.PathLike[str]]": "list of paths",
    "Mapping[str, Sequence[Case]]": "mapping",
    "AnswerCase": "function",
    "str": "text",
    "bool": "bool",
}


def main() -> int:
    """Write the blocks into the page, or compare them."""
    page = text = PAGE.read_text("utf-8")
    for module, start in ((jobgen, ""), (jobgen.kueue, "kueue.")):
        for name in module.__all__:
            function, title = getattr(module, name), f"{start}{name}"
            if inspect.isfunction(function):
                text = _fill_section(text, title, f"{START}\n{format_function(title, function)}\n{END}")
    if "--check" in sys.argv:
        sys.stderr.write("" if page == text else "docs/api.md is out of date: run `make docs`\n")
        return 0 if page == text else 1
    PAGE.write_text(text, "utf-8")
    return 0


def _fill_section(page: str, name: str, block: str) -> str:
    heading = f"\n## {name}\n\n"
    before, found, after = page.partition(heading)
    assert found, f"docs/api.md has no section `{name}`"
    if after.startswith(START):
        after = after.partition(END)[2].lstrip("\n")
    return f"{before}{heading}{block}\n{after}"


def format_function(name: str, function: Callable[..., Any]) -> str:
    """Return the signature of a function, and tables of its arguments and of what it raises."""
    signature = inspect.signature(function)
    arguments, raises = _read_docstring(function)
    rows = "".join(
        f"| `{each.name}` | {_TYPES[each.annotation]} | {arguments[each.name]} |\n"
        for each in signature.parameters.values()
    )
    errors = "".join(f"| `{error}` | {text} |\n" for error, text in raises.items())
    raised = f"\n| raises | if |\n|---|---|\n{errors}" if errors else ""
    return (
        f"```python\n{name}({_format_parameters(signature)}) -> {signature.return_annotation}\n```\n\n"
        f"| argument | type | meaning |\n|---|---|---|\n{rows}{raised}"
    )


def _format_parameters(signature: inspect.Signature) -> str:
    parts = []
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        default = "..." if callable(each.default) else repr(each.default).replace("'", '"')
        parts.append(each.name if each.default is each.empty else f"{each.name}={default}")
    return ", ".join(parts)


def _read_docstring(function: Callable[..., Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what a docstring says about arguments and exceptions."""
    # `cleandoc` removes the indentation, as Python 3.13 does when it compiles.
    text, _, raises = inspect.cleandoc(function.__doc__ or "").partition("Raises:\n")
    _, _, arguments = text.partition("Args:\n")
    found = ({name: " ".join(words.split()) for name, words in _ENTRY.findall(part)} for part in (arguments, raises))
    first, second = ({name: words.replace("|", "\\|") for name, words in each.items()} for each in found)
    return first, second


if __name__ == "__main__":
    sys.exit(main())
