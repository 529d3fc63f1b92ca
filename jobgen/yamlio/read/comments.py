"""Comments as other languages write them, `// text` and `/* text */`, which YAML takes for values."""

from __future__ import annotations

from jobgen.model.lazy_re import lazy_pattern

# A path or an address has no space on both sides of its slashes, and quoted text has no comment.
_COMMENT = lazy_pattern(r"""(\A\s*|[^"'#]*?\s)(?://+(?=\s)|//(?=\w[^/]*\Z)|/\*+)\s*(.*?)\s*(?:\*/)?\s*\Z""")


def is_foreign_comment(line: str) -> bool:
    """Return True if a line has nothing but such a comment."""
    return line.lstrip().startswith(("//", "/*")) and to_comment(line) != line


def to_comment(line: str) -> str:
    """Return a line with a comment of YAML in place of another one; the line itself if it has none."""
    found = _COMMENT.match(line) if "//" in line or "/*" in line else None
    return f"{found[1]}# {found[2]}".rstrip() if found else line
