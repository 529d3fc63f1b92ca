"""The files of CI and hooks that concern the repository, and the versions of jobgen that they name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jobgen import __version__
from jobgen.cli.doctor import NOTE, Check
from jobgen.model.lazy_re import lazy_pattern
from jobgen.rendering.config import is_met
from jobgen.repo import git
from jobgen.repo.files import MANIFEST_SUFFIXES, read_path
from jobgen.repo.walk import list_paths
from jobgen.yamlio.read import read

HOOKS = ".pre-commit-config.yaml"
PIPELINE = ".gitlab-ci.yml"
_WORKFLOWS = ".github/workflows/"
_PAGE = "docs/adopt.md#jobgen-in-a-monorepo"


class ConfigFiles(NamedTuple):
    """The files at the top of the Git repository, and those of a jobs repository below it, which are not read."""

    top: Path
    prefix: str
    """The path from the top to the jobs repository; empty if it is the top."""
    texts: Mapping[str, str]
    unread: Mapping[str, str]
    """Files of the jobs repository with jobgen that nothing reads, because the Git repository begins above."""

    def names_repository(self, path: str) -> bool:
        """Return True if a file runs jobgen, and in the folder of the jobs repository if that is not the top."""
        text = self.texts.get(path, "")
        if not self.prefix:
            return "jobgen" in text
        is_named = re.search(rf"(?<![\w.-]){re.escape(self.prefix)}(?![\w.-])", text) is not None
        return is_named and ("jobgen" in text or (path == PIPELINE and self._includes_pipeline()))

    def _includes_pipeline(self) -> bool:
        """Return True if the pipeline at the top includes the one of the jobs repository."""
        return PIPELINE in self.unread and f"{self.prefix}/{PIPELINE}" in self.texts.get(PIPELINE, "")

    def show(self, path: str) -> str:
        """Return the path from the jobs repository of a file at the top."""
        return "../" * len(Path(self.prefix).parts) + path

    def describe_missing(self, path: str) -> str:
        """Say that a file does not exist, and where it would be read."""
        return f"there is no {path} in {self.top}; {_PAGE} has one" if self.prefix else f"there is no {path}"


def read_config_files(root: Path) -> ConfigFiles:
    """Read the files of a jobs repository, and of the Git repository that it is in."""
    top = git.find_work_tree(root) or root
    if top == root or not root.is_relative_to(top):
        return ConfigFiles(root, "", dict(_list_texts(root)), {})
    unread = {path: text for path, text in _list_texts(root) if "jobgen" in text}
    return ConfigFiles(top, root.relative_to(top).as_posix(), dict(_list_texts(top)), unread)


def report_unread(name: str, path: str, files: ConfigFiles, facts: Mapping[str, Any]) -> Check:
    """Report a file that nothing reads."""
    found = f"{path} is not read: the Git repository begins in {files.top}; {_PAGE} has what to add there"
    return Check(name, found, NOTE, shlex.join(("rm", str(files.top / files.prefix / path))), facts)


def _list_texts(root: Path) -> Iterator[tuple[str, str]]:
    workflows: list[str] = []
    if (root / _WORKFLOWS).is_dir():
        workflows = [path for path in list_paths(str(root), _WORKFLOWS) if path.endswith(MANIFEST_SUFFIXES)]
    for path in (HOOKS, PIPELINE, *workflows):
        if (root / path).is_file():
            yield path, read_path(root / path, path, root).content.decode("utf-8", "replace")


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
