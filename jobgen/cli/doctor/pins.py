"""The versions of jobgen that files of CI and hooks install."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobgen import __version__
from jobgen.model.lazy_re import lazy_pattern
from jobgen.render.required_version import is_met
from jobgen.yamlio.read import read

_COMMENT = lazy_pattern(r"(?m)(?:^|(?<=\s))#.*$")
_NUMBER = r"\d+(?:\.\d+)*[\w.!+*]*"
_CONDITION = rf"(?:===|==|~=|>=|<=|!=|>|<)[ ]*{_NUMBER}"
_REQUIREMENT = lazy_pattern(rf"(?<![\w./-])jobgen(?:\[[\w,. -]*\])?[ ]*({_CONDITION}(?:[ ]*,[ ]*{_CONDITION})*)")
# An action or a Git repository at a tag, or an image. A branch or a commit has no number.
_TAG = lazy_pattern(r"(?<![\w.-])jobgen(?:\.git|(?:/[\w.-]+)+)?(?:@|:)v?(\d+(?:\.\d+){0,2})(?![\w.])")
_PAIRS = (("repo", "rev"), ("project", "ref"))
"""Keys of pre-commit and of GitLab: a repository, and its tag."""
_REPOSITORY = lazy_pattern(r"(?:.*[/:])?jobgen(?:\.git)?/?")
_VERSION_TAG = lazy_pattern(r"v?(\d+(?:\.\d+){0,2})")
_VARIABLE = "JOBGEN_VERSION"
_PARTS = 3


def find_other_versions(text: str) -> Iterator[str]:
    """Yield each condition in the text of a file that this version does not meet, such as `==0.1.0` or `~=0.1`."""
    for pin in dict.fromkeys(_find_pins(text)):
        if pin != f"=={__version__}" and not is_met(pin, __version__):
            yield pin


def _find_pins(text: str) -> Iterator[str]:
    plain = _COMMENT.sub("", text)
    yield from (found.replace(" ", "").replace("===", "==") for found in _REQUIREMENT.findall(plain))
    yield from map(_to_condition, _TAG.findall(plain))
    for document in read(text.encode(), "").documents:
        yield from _find_in_tree(document.data)


def _find_in_tree(tree: Any) -> Iterator[str]:
    """Yield the versions that stand in another field than the name of jobgen."""
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _find_in_tree(child)
    if not isinstance(tree, dict):
        return
    for name, tag in _PAIRS:
        number = _VERSION_TAG.fullmatch(str(tree.get(tag)))
        if number and _REPOSITORY.fullmatch(str(tree.get(name))):
            yield _to_condition(number[1])
    variable = _VERSION_TAG.fullmatch(str(tree.get(_VARIABLE)))
    if variable:
        yield _to_condition(variable[1])


def _to_condition(number: str) -> str:
    """A tag such as `v0.2` moves with the patches of a version."""
    return f"=={number}" if number.count(".") + 1 >= _PARTS else f"=={number}.*"
