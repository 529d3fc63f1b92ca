"""The seam for Helm charts: what the feature that renders them answers about the charts of a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from jobgen.model.features import find_part
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize import Taken
from jobgen.repo.files import Build, FileEntry


class ChartSurvey(NamedTuple):
    """The charts of a tree."""

    entries: Sequence[FileEntry] = ()
    """Their builds."""
    taken: Mapping[str, Taken] = {}
    """What the files are that say how a chart is rendered."""
    folders: Sequence[str] = ()
    """The folders of the charts; what is below them is counted with their metadata."""
    kustomizations: frozenset[str] = frozenset()
    """The kustomizations whose charts are all judged."""
    inflated: Mapping[str, Sequence[ChartOfKustomization]] = {}
    """What renders the charts of kustomizations, by their paths: these change the objects before they are judged."""


if TYPE_CHECKING:
    from jobgen.recognize.gitops_objects import GitOpsTree
    from jobgen.recognize.tree import ChartOptions


class ChartOfKustomization(Build):
    """A chart whose objects are a part of the build of a kustomization."""

    def read(self) -> bytes:
        """Return a digest of all that the objects depend on."""
        raise NotImplementedError

    def owns(self, file: str) -> bool:
        """Return True if a file is one of the chart, or of its values."""
        raise NotImplementedError


class FindCharts(Protocol):
    """Returns the charts of a tree."""

    def __call__(
        self, tree: GitOpsTree, taken: Mapping[str, Taken], own: frozenset[str], options: ChartOptions
    ) -> ChartSurvey:
        """Return what is to be judged."""


def survey_charts(
    tree: GitOpsTree, taken: Mapping[str, Taken], own: frozenset[str], options: ChartOptions
) -> ChartSurvey:
    """Return the charts of a tree, if this installation has the feature."""
    find: FindCharts | None = find_part("lint.charts")
    return find(tree, taken, own, options) if find is not None else ChartSurvey()
