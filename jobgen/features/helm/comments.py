"""Comments of templates that suppress findings: those of YAML, and those of templates around the same text."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.features.helm.template_text import Template, list_output_lines, read_template
from jobgen.features.helm.uses import Use
from jobgen.model.lazy_re import lazy_pattern
from jobgen.repo.files import File

_DIRECTIVE = lazy_pattern(r"\{\{-?\s*/\*\s*(jobgen\b[^\n]*?)\s*\*/\s*-?\}\}|(?:(?<=\s)|(?<=^))(#[ \t]*jobgen\b[^\n]*)")
_SIGN = b"jobgen"


def list_comments(use: Use) -> Iterator[File]:
    """Yield the templates of a chart that have such comments, as YAML whose lines have nothing else of theirs."""
    chart = use.chart
    for path, text in chart.templates.items():
        if _SIGN in chart.files[path].lower() and not path.startswith("charts/"):
            template = read_template(text)
            if template is not None:
                yield File(chart.origins[path], _outline(template).encode("utf-8", "surrogateescape"))


def _outline(template: Template) -> str:
    """Return a list of YAML that has an item for each line with output, and the comments at their places."""
    written = list_output_lines(template)
    outline: list[str] = []
    for number, line in enumerate(template.text.split("\n"), 1):
        match = _DIRECTIVE.search(line)
        item = "-" if number in written and (match is None or line[: match.start()].strip()) else ""
        if match is None:
            outline.append(item)
        else:
            comment = match[2] or f"# {match[1]}"
            outline.append(f"{item:<{match.start()}}{comment}" if item else f"{' ' * match.start()}{comment}")
    return "\n".join(outline)
