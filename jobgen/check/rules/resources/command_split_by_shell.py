"""Commands of Ray that a shell reads before Ray does."""

import json
import shlex
from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.operators.checks import is_since
from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.shell_script import split_pipelines
from jobgen.k8s.workloads import RAY_CLUSTERS
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern
from jobgen.yamlio.read import read

_JOBS = {"RayCronJob": ("spec", "jobTemplate"), "RayJob": ("spec",)}
_CLUSTERS = {**RAY_CLUSTERS, "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec")}
_QUOTING = ("aws.amazon.com/neuroncore", "google.com/tpu")
_SHELL_MODES = ("", "K8sJobMode", "SidecarMode")
_REDIRECTION = lazy_pattern(r"(?:^|\s)(?:[12&]?>>?|<)\s*[^\s&>]")
_QUOTED = lazy_pattern(r"'[^']*'|\\.")
_VARIABLE = lazy_pattern(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
_SPECIAL = lazy_pattern(r"[;&|<>()\s]")


@rule("manifest", WARNING, kinds=tuple(_CLUSTERS))
def command_split_by_shell(manifest: Manifest) -> Iterator[Violation]:
    """A command of Ray of which a shell takes a part, or a word that the shell splits, before Ray gets it.

    The submitter of a RayJob runs `ray job submit -- ENTRYPOINT` in a shell. That shell ends the command at the first
    `;`, `&&`, `|`, `>` or line break: only the part before it runs in the cluster, and the rest runs in the submitter,
    which has no GPUs. It also replaces variables, with the values that they have in the submitter. This is so since
    KubeRay 1.3.

    KubeRay writes the values of `rayStartParams`, and the command of the Ray container, into a line for a shell without
    quotes. The shell removes the quotes of JSON and splits at spaces, and `ray start` gets other arguments.

    Write the entrypoint as `sh -c '…'`. Write JSON in two pairs of quotes, as the message shows.
    """
    if manifest.group != "ray.io":
        return
    if manifest.kind_name in _JOBS:
        yield from _check_entrypoint(manifest, as_mapping(get_path(manifest.object, *_JOBS[manifest.kind_name])))
    cluster = as_mapping(get_path(manifest.object, *_CLUSTERS[manifest.kind_name]))
    for group in map(as_mapping, (cluster.get("headGroupSpec"), *as_list(cluster.get("workerGroupSpecs")))):
        container = next(iter_mappings(get_path(group, "template", "spec", "containers")), {})
        limits = as_mapping(get_path(container, "resources", "limits"))
        for name, value in as_mapping(group.get("rayStartParams")).items():
            # KubeRay adds these accelerators to the resources, and then quotes them.
            if name != "resources" or not any(each in limits for each in _QUOTING):
                yield from _check_parameter(name, value)
        yield from _check_container(as_mapping(group.get("template")))


def _check_entrypoint(manifest: Manifest, job: Mapping[str, Node]) -> Iterator[Violation]:
    node = job.get("entrypoint")
    text = as_text(node).strip()
    submitter = next(iter_mappings(get_path(job, "submitterPodTemplate", "spec", "containers")), {})
    in_shell = as_text(job.get("submissionMode")) in _SHELL_MODES and not as_list(submitter.get("command"))
    if not text or not in_shell or not is_since(manifest, "kuberay", "1.3"):
        return
    found = split_pipelines(text)
    several = len(found) > 1 or any(len(each.commands) > 1 for each in found)
    first = found[0].commands[0] if found else ""
    if several or (found and _REDIRECTION.search(_QUOTED.sub("", _remove_strings(first)))):
        sign = ("|" if len(found[0].commands) > 1 else found[0].end) if several else ">"
        where = "a line break" if sign == "\n" else f"`{sign}`"
        what = "the rest runs in" if several else "the output goes to a file of"
        message = f"the shell of the submitter ends the entrypoint at {where}: only what is before it runs in the"
        message += f" cluster, and {what} the submitter, without GPUs"
        yield Violation(node, f"{message}; write `sh -c '…'` around all of it", evidence=(text,))
        return
    own = {as_text(each.get("name")) for each in iter_mappings(submitter.get("env"))}
    for name in _VARIABLE.findall(_QUOTED.sub("", text)):
        if name not in own and name in _list_cluster_variables(job):
            message = f"the shell of the submitter replaces `${name}`, which is set only in the Ray cluster, by nothing"
            yield Violation(node, f"{message}; write `sh -c '…'` around the entrypoint", evidence=(name,))
            return


def _remove_strings(text: str) -> str:
    parts = text.split('"')
    return "".join(parts[::2])


def _list_cluster_variables(job: Mapping[str, Node]) -> set[str]:
    """Return the variables that the driver of the job has: those of the head and of the runtime environment."""
    head = get_path(job, "rayClusterSpec", "headGroupSpec", "template", "spec", "containers")
    names = {as_text(each.get("name")) for each in iter_mappings(next(iter_mappings(head), {}).get("env"))}
    text = as_text(job.get("runtimeEnvYAML"))
    for document in read(text.encode(errors="replace"), "runtimeEnvYAML").documents if "env_vars" in text else ():
        names.update(map(str, as_mapping(as_mapping(document.data).get("env_vars"))))
    return names


def _check_parameter(name: str, node: Node) -> Iterator[Violation]:
    """Check a value that KubeRay writes as `--name=value` into a line for a shell."""
    text = as_text(node)
    # A command whose output is the value is meant for the shell.
    if not text or "$(" in text or "`" in text or (not _SPECIAL.search(text) and '"' not in text and "'" not in text):
        return
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    is_json = text.lstrip(" '\"").startswith("{")
    reached = words[0] if len(words) == 1 else ""
    if (is_json and _is_json(reached)) or (not is_json and len(words) == 1):
        return
    message = f"KubeRay writes `{name}` of `rayStartParams` into a shell command without quotes"
    if not is_json:
        yield Violation(node, f"{message}, so the shell splits `{text}` into words; quote it: `'\"…\"'`")
        return
    quoted = json.dumps(text) if _is_json(text) else ""
    advice = "write the JSON in two pairs of quotes"
    if quoted and "'" not in quoted:
        advice += f", in YAML: `'{quoted}'`"
    message += ", so the shell removes the quotes of the JSON, and `ray start` fails"
    yield Violation(node, f"{message}; {advice}", evidence=(name,))


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _check_container(template: Mapping[str, Node]) -> Iterator[Violation]:
    """Check the command of the Ray container, which KubeRay joins with spaces before `ray start`."""
    annotations = as_mapping(as_mapping(template.get("metadata")).get("annotations"))
    container = next(iter_mappings(get_path(template, "spec", "containers")), {})
    words = [*as_list(container.get("command")), *as_list(container.get("args"))]
    texts = [as_text(word) for word in words]
    keeps = as_text(annotations.get("ray.io/overwrite-container-cmd")).lower() == "true"
    if keeps or any("ray start" in text for text in texts):
        return
    for before, text, node in zip(texts, texts[1:], words[1:], strict=False):
        # `sh -c` takes one word; the script is several words when KubeRay has joined it.
        if before in ("-c", "-lc", "-ec", "-ce", "-xc") and len(text.split()) > 1 and text[0] not in "'\"":
            message = (
                "KubeRay joins the command of the Ray container with spaces, so the shell gets only the first word"
            )
            yield Violation(node, f"{message} of this script; remove `{texts[0]} {before}`", evidence=())
            return
