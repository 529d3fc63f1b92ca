"""Decide whether a text can only be somewhere because a person wrote it there."""

from __future__ import annotations

from functools import lru_cache

from jobgen.model.lazy_re import lazy_pattern

_MIN_DISTINCT = 8
_MIN_TEXT = 8
"""Shorter texts hold no token, and no name with a value."""
# What joins the words of names, paths, versions and addresses.
_JOINING = frozenset("-_./:@ =,")
_WORD = lazy_pattern(r"[^\W_]+")
_LONG_WORD = 20


@lru_cache(maxsize=4096)
def is_distinctive(secret: str) -> bool:
    """Return True if a text can hold a secret only because a person wrote it there.

    Other words hold a short or common one, such as `test` in `latest`. If it was masked there, what is around the gap
    would tell what it is.
    """
    if len(secret) < _MIN_TEXT:
        return False
    classes = (any(map(str.islower, secret)), any(map(str.isupper, secret)), any(map(str.isdigit, secret)))
    marks = any(not sign.isalnum() and sign not in _JOINING for sign in secret)
    if sum(classes) + marks >= 3 and len(secret) >= _MIN_TEXT + 2:
        return True
    return any(
        len(set(word)) >= _MIN_DISTINCT - 2 and (len(word) >= _LONG_WORD or not word.isalpha())
        for word in _WORD.findall(secret)
        if len(word) >= _MIN_TEXT
    )
