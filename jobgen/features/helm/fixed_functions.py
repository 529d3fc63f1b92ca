"""Functions of templates that write something else each time, and what is written instead.

Passwords, certificates, times: two renders of one chart would differ in them, so that each comparison of two states of
a repository showed a change that no commit has.
"""

from __future__ import annotations

import base64
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from jobgen.features.helm.template_text import Template
from jobgen.model.digest import blake2b
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

if TYPE_CHECKING:
    import re

_DATE = '(toDate "2006-01-02" "2026-01-01")'
_WRITTEN = 16
_KEY, _CERTIFICATE = "RSA PRIVATE KEY", "CERTIFICATE"


def _write_pem(kind: str) -> str:
    body = base64.b64encode(b"written by jobgen, not by helm").decode()
    return rf"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n"


_PAIR = f'coalesce (dict "Cert" "{_write_pem(_CERTIFICATE)}" "Key" "{_write_pem(_KEY)}")'
# `coalesce` and `include` take the arguments of the function that they replace.
_CONSTANTS = {
    "now": _DATE,
    "ago": 'coalesce "1h0m0s"',
    "randInt": "min",
    "shuffle": "print",
    "bcrypt": f'coalesce "$2a$10${"a" * 53}"',
    "htpasswd": f'coalesce "user:$2a$10${"a" * 53}"',
    "encryptAES": f'coalesce "{base64.b64encode(bytes(32)).decode()}"',
    "genPrivateKey": f'coalesce "{_write_pem(_KEY)}"',
    **dict.fromkeys(
        "genCA genCAWithKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey".split(),
        _PAIR,
    ),
}
_LETTERS, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"
# What they write as many of as their argument says, and what is done with it.
_COUNTED = {
    **dict.fromkeys(("randAlphaNum", "randAlpha", "randAscii"), (_LETTERS, "")),
    "randNumeric": (_DIGITS, ""),
    "randBytes": (_LETTERS, " | b64enc"),
}
_UUID = "uuidv4"
_NAMES = "|".join((*_CONSTANTS, *_COUNTED, _UUID))
_CALL = lazy_pattern(rf"\"(?:[^\"\\\n]|\\.)*\"|`[^`]*`|(?<![\w.$])(?P<name>{_NAMES})\b")
_ANY = lazy_pattern(rf"\b(?:{_NAMES})\b")


class Fixed(NamedTuple):
    """A template that writes the same each time."""

    text: str
    defined: str = ""
    """Named templates that it uses."""


def fix_functions(template: Template, path: str, prefix: str) -> Fixed:
    """Return a template with other calls in the same lines; `prefix` begins the names of the templates that it uses."""
    if not _ANY.search(template.text):
        return Fixed(template.text)
    defined: list[str] = []
    seen: Counter[str] = Counter()

    def replace(line: str, match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return match[0]
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        # The same line of the same file writes the same, whatever is above it; others write something else.
        seen[line] += 1
        digest = blake2b(f"{path}\n{line}\n{seen[line]}".encode("utf-8", "surrogatepass")).hexdigest()
        if name == _UUID:
            return f'"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"'
        letters, then = _COUNTED[name]
        text = "".join(letters[int(digest[2 * at : 2 * at + 2], 16) % len(letters)] for at in range(_WRITTEN))
        own = f"{prefix}.{digest[:32]}"
        # helm accepts only an integer here.
        checked = '{{ if not (kindIs "int" .) }}{{ fail "not an integer" }}{{ end }}'
        body = f'{{{{ trunc . (repeat (int (add1 (div . {_WRITTEN}))) "{text}"){then} }}}}'
        defined.append(f'{{{{ define "{own}" }}}}{checked}{body}{{{{ end }}}}')
        return f'include "{own}"'

    parts: list[str] = []
    at = 0
    for action in template.actions:
        parts.append(template.text[at : action.start])
        written = template.text[action.start : action.end]
        if action.code and _ANY.search(written):
            number = template.line_at(action.start)
            end = template.starts[number] if number < len(template.starts) else len(template.text)
            line = template.text[template.starts[number - 1] : end].strip()
            written = _CALL.sub(partial(replace, line), written)
        parts.append(written)
        at = action.end
    return Fixed("".join((*parts, template.text[at:])), "".join(defined))
