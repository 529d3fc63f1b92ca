"""Findings that are milder than their rule says, because of where they are or of what the repository says itself.

A warning asks for a change. It is an info where no change is expected: what jobgen could not check of manifests
that were only found beside others, a file that a script of the repository creates, a placeholder that a page explains,
what an example does.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize.image_lines import is_tool, read_image
from jobgen.recognize.tree import FileTree
from jobgen.schema.shipped_kinds import is_known_elsewhere

# Names of folders with objects that show how something is done, or that measure or test it for a short time.
_EXAMPLES = frozenset(
    """benchmark benchmarks benchmarking example examples demo demos quickstart quickstarts sample samples
    tutorial tutorials workshop workshops""".split()
)
_WHOLE_NAMES = frozenset(("doc", "docs", "documentation", "hack", "playground", "quick-start", "quick-starts", "tests"))
# What stands above a folder `test` that is an environment.
_ENVIRONMENTS = frozenset(("clusters", "deploy", "env", "envs", "environments", "overlays", "stages"))
_NAME_PARTS = lazy_pattern(r"[-_.]+")
# Folders with what nobody changes any more, or what others wrote.
_LEFT_ALONE = lazy_pattern(
    r"(?:\A|/)[_.]?(?:archive[ds]?|attic|deprecated|obsolete|retired|third[_-]party|vendor(?:ed)?)/", re.IGNORECASE
)
# Folders with what runs in a cluster on one machine, into which images are loaded rather than pulled.
_LOCAL = frozenset(("e2e", "kind", "local", "minikube", "k3d"))
_ARGUMENT = lazy_pattern(r"/parameters/[0-9]+/(?:default|value)\Z")


def soften(findings: Iterable[Finding], tree: FileTree, *, is_jobs_repository: bool) -> Iterator[Finding]:
    """Yield the findings; a warning that its place excuses is an info."""
    for finding in findings:
        is_mild = finding.severity is Severity.WARNING and _is_excused(finding, tree, is_jobs_repository)
        yield finding._replace(severity=Severity.INFO) if is_mild else finding


def _is_excused(finding: Finding, tree: FileTree, is_jobs_repository: bool) -> bool:
    if finding.rule in _UNCHECKED:
        return not is_jobs_repository and not _is_almost_known(finding)
    if not is_jobs_repository and _LEFT_ALONE.search(finding.location.file):
        return True
    check = _CHECKS.get(finding.rule)
    return check is not None and check(finding, tree)


# What jobgen could not check. Only a jobs repository promises that all of it is checked.
_UNCHECKED = frozenset(("missing-schema", "unbuilt-kustomization"))


def _is_almost_known(finding: Finding) -> bool:
    """Return True for a kind or version that is missing among others that are known, and so is probably wrong."""
    obj = finding.object
    return finding.rule == "missing-schema" and obj is not None and is_known_elsewhere(obj.api_version, obj.kind)


def _is_example(finding: Finding, tree: FileTree) -> bool:
    """Return True if a folder of the file says that its objects are examples, tests or measurements."""
    return _has_examples(finding.location.file.rpartition("/")[0])


@lru_cache(maxsize=1024)
def _has_examples(folder: str) -> bool:
    above = ""
    for name in folder.lower().split("/"):
        if name in _WHOLE_NAMES or not _EXAMPLES.isdisjoint(_NAME_PARTS.split(name)):
            return True
        if name == "test" and above not in _ENVIRONMENTS:
            return True
        above = name
    return False


def _is_unimportant(finding: Finding, tree: FileTree) -> bool:
    """Return True for an image of which any version will do.

    It is that of an example, of a local cluster, of a PodTemplate, which runs nothing itself, or a tool. A workload
    that is applied by hand runs what was there on that day. Where Argo CD or Flux keeps it running, or where
    several pods train together, what runs can change without a commit, or differ between pods.
    """
    obj = finding.object
    if obj is not None and obj.kind == "PodTemplate":
        return True
    if not tree.is_synced and not is_training(finding, tree):
        return True
    folder = finding.location.file.rpartition("/")[0]
    return _has_examples(folder) or _is_local(folder) or is_tool(read_image(finding, tree))


# What runs several pods that work together, or one that trains.
_TRAINING_GROUPS = frozenset(
    """batch.tensorstack.dev batch.volcano.sh jobset.x-k8s.io kubeflow.org leaderworkerset.x-k8s.io ray.io
    sparkoperator.k8s.io trainer.kubeflow.org training.kubedl.io workload.codeflare.dev""".split()
)
_ACCELERATORS = lazy_pattern(
    rb"nvidia\.com/|amd\.com/gpu|google\.com/tpu|aws\.amazon\.com/neuron|habana\.ai/|gpu\.intel\.com/"
)


def is_training(finding: Finding, tree: FileTree) -> bool:
    """Return True if the object trains: its pods must run the same image, and who has it must be known later."""
    obj = finding.object
    if obj is None:
        return False
    group = obj.api_version.partition("/")[0]
    if group != "batch":
        return group in _TRAINING_GROUPS
    return _ACCELERATORS.search(tree.read(finding.location.file).content) is not None


def _is_loaded(finding: Finding, tree: FileTree) -> bool:
    """Return True for the image of a local cluster, where `IfNotPresent` is what lets a loaded image run."""
    return _is_local(finding.location.file.rpartition("/")[0])


@lru_cache(maxsize=1024)
def _is_local(folder: str) -> bool:
    return not _LOCAL.isdisjoint(folder.split("/"))


def _is_explained(finding: Finding, tree: FileTree) -> bool:
    """Return True for a placeholder of an example, or one that a page or a script names, together with the file."""
    file = finding.location.file
    texts = [text.encode("utf-8", "replace") for text in (posixpath.basename(file), *finding.values[:1])]
    return _is_example(finding, tree) or (len(texts) > 1 and bool(tree.find_mention(file, *texts)))


# What keeps the output of containers: an agent beside them or of the cluster, GKE itself, or a service for training.
_KEEPS_LOGS = lazy_pattern(
    rb"cloud\.google\.com/gke|gke-gcsfuse|fluent-?(?:bit|d)\b|promtail|filebeat|grafana-agent|grafana/alloy|timberio/vector"
    rb"|datadog|WANDB_|wandb|MLFLOW_|mlflow|COMET_API_KEY|NEPTUNE_API_TOKEN"
)
_COLLECTORS = (b"cloud.google.com/gke", b"fluent-bit", b"fluentd", b"promtail", b"filebeat", b"ClusterLogForwarder")


def _keeps_logs(finding: Finding, tree: FileTree) -> bool:
    """Return True if what the containers print is kept elsewhere, as far as the files tell."""
    if _is_example(finding, tree) or _KEEPS_LOGS.search(tree.read(finding.location.file).content):
        return True
    return any(tree.find_text(text, (".yaml", ".yml")) for text in _COLLECTORS)


def _is_argument(finding: Finding, tree: FileTree) -> bool:
    """Return True for the argument of a Workflow: Argo reads a number as text, unless the full CRDs are installed."""
    obj = finding.object
    is_workflow = obj is not None and obj.api_version.startswith("argoproj.io/") and "Workflow" in obj.kind
    return is_workflow and _ARGUMENT.search(finding.pointer) is not None


_CHECKS: Mapping[str, Callable[[Finding, FileTree], bool]] = {
    **dict.fromkeys(
        """dangerous-capability host-namespaces host-path privileged-container server-managed-field
        unmounted-volume""".split(),
        _is_example,
    ),
    "lost-logs": _keeps_logs,
    "mutable-image-tag": _is_unimportant,
    "stale-image": _is_unimportant,
    "unfilled-placeholder": _is_explained,
    "untagged-image": _is_unimportant,
    "wrong-type": _is_argument,
}
