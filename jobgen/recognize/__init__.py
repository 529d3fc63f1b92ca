"""What a file is, decided before its objects are judged.

A folder of any repository holds finished objects, and files that only look like them: patches, templates, golden files
of tests, assets that an operator completes, and configuration of other programs. Each sort of file has a module here.
"""

from __future__ import annotations

from jobgen.model.named_tuple import NamedTuple


class Sort(NamedTuple):
    """A sort of file."""

    name: str
    """As the summary, `--explain-files` and JSON name it."""
    treatment: str
    meaning: str
    setting: str = ""
    """The key of `files` in the settings that corrects a wrong guess; empty if there is none."""


JUDGED = "as it is"
IN_BUILDS = "in the builds that use it"
NOT_JUDGED = "not judged"

OBJECT = Sort("object", JUDGED, "a finished Kubernetes object, a List, or a job spec", "object")
KUSTOMIZATION = Sort("kustomization", IN_BUILDS, "says how kustomize builds the objects of a folder")
RESOURCE = Sort("kustomize resource", IN_BUILDS, "listed under `resources`, directly or through folders")
PATCH = Sort("kustomize patch", IN_BUILDS, "listed under `patches`, or in another field for patches")
INPUT = Sort("kustomize input", IN_BUILDS, "an input of a generator, a replacement, or a configuration of kustomize")
FILLED = Sort("template with values", IN_BUILDS, "its variables are filled in with values of the repository")
RENDERED_CHART = Sort(
    "rendered Helm chart", IN_BUILDS, "its templates are rendered by helm, with values of the repository"
)
VALUES_FILE = Sort("Helm values", IN_BUILDS, "values that a chart is rendered with")
CHART = Sort("Helm chart", NOT_JUDGED, "a chart that nothing renders here")
FRAGMENT = Sort(
    "kustomize fragment",
    NOT_JUDGED,
    "a patch or resource that no kustomization lists, or whose line there is a comment",
    "fragment",
)
TEMPLATE = Sort(
    "template", NOT_JUDGED, "a Go, Jinja or Helm template, or text with variables where YAML begins", "template"
)
TEST_DATA = Sort("test data", NOT_JUDGED, "an input or an expected output of a test", "test-data")
ASSET = Sort("operator asset", NOT_JUDGED, "a manifest that a controller or OLM completes", "asset")
CONFIG = Sort("config of another program", NOT_JUDGED, "no object of a cluster", "config")

SORTS = (
    *(OBJECT, KUSTOMIZATION, RESOURCE, PATCH, INPUT, FILLED, RENDERED_CHART, VALUES_FILE, CHART, FRAGMENT),
    *(TEMPLATE, TEST_DATA, ASSET, CONFIG),
)
SETTINGS = {sort.setting: sort for sort in SORTS if sort.setting}
"""The sorts that the settings can state, by their key."""


class Taken(NamedTuple):
    """What a file was taken for, and why."""

    sort: Sort
    why: str
