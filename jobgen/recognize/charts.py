"""The seam for Helm charts: what the feature that renders them answers about the charts of a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from jobgen.model.features import find_part
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize import Taken
from jobgen.recognize.gitops_objects import GitOpsTree
from jobgen.repo.files import FileEntry


class ChartSurvey(NamedTuple):
    """The charts of a tree."""

    entries: Sequence[FileEntry] = ()
    """Their builds."""
    taken: Mapping[str, Taken] = {}
    """What the files are that say how a chart is rendered."""
    folders: Sequence[str] = ()
    """The folders of the charts; what is below them is counted with their metadata."""


class FindCharts(Protocol):
    """Returns the charts of a tree; `has_tool` if other programs may be started."""

    def __call__(
        self, tree: GitOpsTree, taken: Mapping[str, Taken], own: frozenset[str], *, has_tool: bool
    ) -> ChartSurvey:
        """Return what is to be judged."""


def survey_charts(tree: GitOpsTree, taken: Mapping[str, Taken], own: frozenset[str], *, has_tool: bool) -> ChartSurvey:
    """Return the charts of a tree, if this installation has the feature."""
    find: FindCharts | None = find_part("lint.charts")
    return find(tree, taken, own, has_tool=has_tool) if find is not None else ChartSurvey()
