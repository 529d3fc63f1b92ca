"""Detect secrets: tokens with a known format, and values of variables whose names mean a secret."""

from __future__ import annotations

import re
from functools import lru_cache

from jobgen.model.lazy_re import lazy_pattern

# Formats with a prefix and a known length; a prefix alone is not enough.
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
# Secrets without a prefix, detected by the variable's name and their length.
_FORMATS_BY_NAME = {
    "WANDB_API_KEY": lazy_pattern(r"[0-9a-f]{40}"),
    "AWS_SECRET_ACCESS_KEY": lazy_pattern(r"[A-Za-z0-9/+]{40}"),
}
_SECRET_NAMES = lazy_pattern(
    r"(?:.*[_-])?(?:TOKEN|SECRET|PASSWORD|PASSWD|(?:API|SECRET|ACCESS|PRIVATE|AUTH|ACCOUNT|ENCRYPTION)[_-]?KEY)",
    re.IGNORECASE,
)
# Tokens of a tokenizer, and numbers of tokens.
_TEXT_TOKENS = lazy_pattern(
    r"(?:.*[_-])?(?:PAD|EOS|BOS|UNK|SEP|MASK|CLS|IMAGE|SPECIAL|STOP|MAX|MIN|NUM|PER)[_-]TOKEN", re.IGNORECASE
)
# Placeholders, references, paths and other values that are not secrets.
_NOT_SECRETS = lazy_pattern(
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
# Every secret or its name contains one of these, in lower case: a cheap test before the patterns.
_HINTS = (
    *("token", "secret", "passw", "key", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "glpat-"),
    *("sk-", "xox", "aiza", "npm_", "nvapi-", "dckr_pat"),
)
_PREFIXES = (
    *("hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "xox", "AIza", "npm_", "nvapi-"),
    *("dckr_pat_", "-----BEGIN "),
)
_MIN_TOKEN_LENGTH = 24
_ASSIGNMENT = lazy_pattern(r"(?:^|[\s;&(])(?:--)?([A-Za-z][A-Za-z0-9_-]*)=[\"']?([^\s\"';&|)]+)")
_MIN_DISTINCT = 8
_MIN_LENGTH = 6


def may_contain_secret(text: str) -> bool:
    """Return whether a text may contain a secret, as a cheap test before the others."""
    lowered = text.lower()
    return any(hint in lowered for hint in _HINTS)


def find_token(text: str) -> str:
    """Return the token with a known format in a text, or an empty string."""
    if len(text) < _MIN_TOKEN_LENGTH or not any(prefix in text for prefix in _PREFIXES):
        return ""
    found = _TOKENS.search(text) or _PRIVATE_KEY.search(text)
    # Few different characters mean an example.
    return found[0] if found and len(set(found[0])) > _MIN_DISTINCT and "xxxx" not in found[0].lower() else ""


def is_secret_value(name: str, value: str) -> bool:
    """Return whether the value has the format of the secret that a variable of this name holds."""
    pattern = _FORMATS_BY_NAME.get(name)
    return bool(pattern and pattern.fullmatch(value)) and len(set(value)) > _MIN_DISTINCT and "EXAMPLE" not in value


def looks_like_secret(name: str, value: str) -> bool:
    """Return whether the name means a secret and the value is neither a placeholder nor a path."""
    return len(value) >= _MIN_LENGTH and _is_secret_name(name) and not _NOT_SECRETS.fullmatch(value)


@lru_cache(maxsize=4096)
def _is_secret_name(name: str) -> bool:
    return may_contain_secret(name) and _SECRET_NAMES.fullmatch(name) is not None and not _TEXT_TOKENS.fullmatch(name)


def find_assignments(text: str) -> list[tuple[str, str]]:
    """Return the names and values that an argument or a script sets by `name=value` or `--name=value`."""
    return _ASSIGNMENT.findall(text)
