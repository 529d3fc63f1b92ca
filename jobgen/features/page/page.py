"""Assemble the page: a shell with one style, one script and the data, and a policy that allows nothing else."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from urllib.parse import quote

from jobgen.k8s.secrets import hide_credentials
from jobgen.model.lazy_re import lazy_pattern
from jobgen.report.escape import visible

_TOKEN = lazy_pattern(r"\{\{(\w+)((?: [\w.-]+)*)\}\}")
_ELEMENT = lazy_pattern(r"<(style|script)>(.*?)</\1>", re.DOTALL)


def assemble_page(title: str, data: str) -> str:
    """Return the page. `data` is the JSON of `encode`; the title is the only other text that users write."""
    title = visible(hide_credentials(title))
    assets = files("jobgen").joinpath("data", "page")

    def read_assets(names: str) -> str:
        return "\n".join(assets.joinpath(name).read_text("utf-8").strip() for name in names.split())

    shell = read_assets("page.html")
    fixed = _TOKEN.sub(lambda token: read_assets(token[2]) if token[1] == "files" else token[0], shell)
    values = {
        "policy": _make_policy(fixed),
        "title": escape(title),
        "favicon": _make_favicon(title),
        "data": data,
    }
    # One pass, so that nothing in a value is replaced.
    head, found, tail = fixed.partition("{{data}}")
    parts = [_TOKEN.sub(lambda token: values.get(token[1], token[0]), part) for part in (head, tail)]
    return (data if found else "").join(parts) + "\n"


def _make_policy(shell: str) -> str:
    """Return the Content-Security-Policy: only the styles and scripts of the shell, by their hashes."""
    hashes: dict[str, list[str]] = {"style": [], "script": []}
    for name, content in _ELEMENT.findall(shell):
        digest = b64encode(sha256(content.encode()).digest()).decode()
        hashes[name].append(f"'sha256-{digest}'")
    allowed = [f"{name}-src {' '.join(found)}" for name, found in hashes.items() if found]
    return "; ".join(("default-src 'none'", *allowed, "img-src data:", "base-uri 'none'", "form-action 'none'"))


def _make_favicon(title: str) -> str:
    """Return an icon as a data URL: the first letter of the repository, in a color that is its own."""
    letter = next((character for character in title if character.isalnum()), "j").upper()
    hue = sha256(title.partition("@")[0].encode("utf-8", "replace")).digest()[0] * 360 // 256
    image = (
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'>"
        f"<rect width='32' height='32' rx='7' fill='hsl({hue} 60% 35%)'/>"
        "<text x='16' y='23' font-family='sans-serif' font-size='20' font-weight='700' text-anchor='middle' "
        f"fill='#fff'>{escape(letter)}</text></svg>"
    )
    return "data:image/svg+xml," + quote(image, safe="")
