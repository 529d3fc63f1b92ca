"""Write the list of shipped defects in docs/defects.md; with --check, only test whether it is current."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from jobgen.check.defects import Defect, list_shipped

PAGE = Path(__file__).parent / "defects.md"
MARK = "<!-- The rest is written by docs/build_defects.py: run `make docs`. -->\n"


def main() -> int:
    """Write the page, or compare it."""
    current = PAGE.read_text("utf-8")
    text = current.partition(MARK)[0] + MARK + build_list()
    if "--check" in sys.argv:
        sys.stderr.write("" if current == text else "docs/defects.md is out of date: run `make docs`\n")
        return 0 if current == text else 1
    PAGE.write_text(text, "utf-8")
    return 0


def build_list() -> str:
    """Return a section for each component, with one for each of its defects."""
    parts: list[str] = []
    defects = sorted(list_shipped(), key=lambda each: (each.title.lower(), each.name))
    for title, several in groupby(defects, key=lambda each: each.title):
        parts.append(f"\n## {title[0].upper()}{title[1:]}\n")
        parts += map(_format, several)
    return "".join(parts)


def _format(defect: Defect) -> str:
    kinds = ", ".join(f"`{kind}`" for kind in defect.kinds)
    said = defect.describe()
    text = f"{said[0].upper()}{said[1:]}. {defect.explain()}".replace("\n\n", " ")
    return f"\n### {defect.name}\n\n{defect.severity.value.capitalize()}, {kinds}. {text}.\n"


if __name__ == "__main__":
    raise SystemExit(main())
