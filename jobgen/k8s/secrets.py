"""What secrets look like: tokens that can be told by their form, and names of variables that hold one."""

from __future__ import annotations

import re
from functools import lru_cache

from jobgen.model.lazy_re import lazy_pattern

# Forms with a mark of their own and a known length; a prefix alone proves nothing.
_TOKENS = lazy_pattern(
    r"""(?<![A-Za-z0-9_-])(?:
      hf_[A-Za-z]{34}
    | gh[pousr]_[A-Za-z0-9]{36}
    | github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}
    | glpat-[A-Za-z0-9_-]{20}
    | sk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,100}T3BlbkFJ[A-Za-z0-9_-]{20,100}
    | sk-ant-[a-z]+[0-9]+-[A-Za-z0-9_-]{80,120}
    | xox[abprs]-[0-9]{10,13}-[A-Za-z0-9-]{20,80}
    | AIza[A-Za-z0-9_-]{35}
    | npm_[A-Za-z0-9]{36}
    | nvapi-[A-Za-z0-9_-]{64}
    | dckr_pat_[A-Za-z0-9_-]{27}
    )(?![A-Za-z0-9_])""",
    re.VERBOSE,
)
_PRIVATE_KEY = lazy_pattern(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----")
# Secrets without a mark, that a variable's name and their length give away.
_BY_NAME = {
    "WANDB_API_KEY": lazy_pattern(r"[0-9a-f]{40}"),
    "AWS_SECRET_ACCESS_KEY": lazy_pattern(r"[A-Za-z0-9/+]{40}"),
}
_NAMES = lazy_pattern(
    r"(?:.*[_-])?(?:TOKEN|SECRET|PASSWORD|PASSWD|(?:API|SECRET|ACCESS|PRIVATE|AUTH|ACCOUNT|ENCRYPTION)[_-]?KEY)",
    re.IGNORECASE,
)
# Tokens of a tokenizer, and numbers of them.
_OF_TEXT = lazy_pattern(
    r"(?:.*[_-])?(?:PAD|EOS|BOS|UNK|SEP|MASK|CLS|IMAGE|SPECIAL|STOP|MAX|MIN|NUM|PER)[_-]TOKEN", re.IGNORECASE
)
# What stands for a secret, or says where it is.
_NO_SECRET = lazy_pattern(
    r"""
      .*(?:\$[({A-Za-z_]|\{\{|<.*>|^\{.*\}$|%\().*
    | [./~].*|[a-z0-9+]+://.*|.*\.(?:json|pem|key|txt|ya?ml|crt)
    | [0-9.]*|true|false|yes|no|none|null|nil
    | [a-z]+(?:[-_.][a-z]+)+
    | .*(?:x{3}|\*{3}|\.{3}|…|your|change|replace|insert|example|placeholder|dummy|fake|redacted|todo|sample).*
    | (?:my|the|a|some|hf|wandb|api)?[-_ ]?(?:token|secret|password|key|value|string|here)s?
    """,
    re.VERBOSE | re.IGNORECASE,
)
# What every secret or its name has in it, in lower case: quicker to look for than to match.
_SIGNS = (
    *("token", "secret", "passw", "key", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "glpat-"),
    *("sk-", "xox", "aiza", "npm_", "nvapi-", "dckr_pat"),
)
_MARKS = (
    *("hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "xox", "AIza", "npm_", "nvapi-"),
    *("dckr_pat_", "-----BEGIN "),
)
_SHORTEST = 24
_ASSIGNED = lazy_pattern(r"(?:^|[\s;&(])(?:--)?([A-Za-z][A-Za-z0-9_-]*)=[\"']?([^\s\"';&|)]+)")
_DISTINCT = 8
_ANY = 6


def may_contain_secret(text: str) -> bool:
    """Whether a text is worth a closer look."""
    lowered = text.lower()
    return any(sign in lowered for sign in _SIGNS)


def find_token(text: str) -> str:
    """A token that can be told by its form, or nothing."""
    if len(text) < _SHORTEST or not any(location in text for location in _MARKS):
        return ""
    found = _TOKENS.search(text) or _PRIVATE_KEY.search(text)
    # A row of the same letters is an example.
    return found[0] if found and len(set(found[0])) > _DISTINCT and "xxxx" not in found[0].lower() else ""


def is_secret_value(name: str, value: str) -> bool:
    """Whether the value has the very form of the secret that a variable of this name holds."""
    form = _BY_NAME.get(name)
    return bool(form and form.fullmatch(value)) and len(set(value)) > _DISTINCT and "EXAMPLE" not in value


def looks_like_secret(name: str, value: str) -> bool:
    """Whether a name says secret, and the value is neither a placeholder nor a path."""
    return len(value) >= _ANY and _says_secret(name) and not _NO_SECRET.fullmatch(value)


@lru_cache(maxsize=4096)
def _says_secret(name: str) -> bool:
    return may_contain_secret(name) and _NAMES.fullmatch(name) is not None and not _OF_TEXT.fullmatch(name)


def find_assignments(text: str) -> list[tuple[str, str]]:
    """What a word or a script sets by `name=value` or `--name=value`."""
    return _ASSIGNED.findall(text)
