"""Launchers that do not know the other pods of the job."""

from collections.abc import Iterator, Sequence

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.command_line import Argument, parse_command
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest
from jobgen.model.data import value_of
from jobgen.model.finding import pluralize
from jobgen.model.lazy_re import lazy_pattern

_LAUNCHERS = lazy_pattern(r"(?:.*/)?(torchrun|deepspeed)|(torch\.distributed\.(?:run|launch))")
# Options that name the other pods.
_CONNECTING = lazy_pattern(
    r"--(?:nnodes|rdzv[-_]\w+|node[-_]rank|master[-_]addr|hostfile|no[-_]ssh|include|num[-_]nodes)\b|-H$"
)
# Where deepspeed looks for a hostfile that no option names.
_HOSTFILE = "/job/hostfile"


@rule("job", WARNING, kinds=("Job", "JobSet", "PyTorchTrainingJob", "RayJob"))
def launcher_on_one_pod(manifest: Manifest) -> Iterator[Violation]:
    """A launcher such as `torchrun` that starts processes on one pod only, though the job has several.

    Ray runs the command of a job once, on the head: `torchrun` there starts no processes on the workers, whose GPUs
    stay idle. On other platforms every pod trains on its own: TensorStack sets no variables for `torchrun` unless
    `torchrunConfig` starts it, and `deepspeed` finds other pods by a hostfile only.

    Follow the advice in the message.
    """
    find = _FINDERS[manifest.kind_name]
    yield from find(manifest)


def _check_ray(manifest: Manifest) -> Iterator[Violation]:
    entrypoint = manifest.spec.get("entrypoint")
    workers = sum(role.count for role in manifest.roles if role.name != "head")
    on_worker = workers == 1 and value_of(manifest.spec.get("entrypointNumGpus"))
    launcher = _find_launcher(parse_command([entrypoint])) if isinstance(value_of(entrypoint), str) else None
    if launcher and workers and not on_worker:
        message = f"Ray runs `{launcher.text}` on one pod, and the {pluralize(workers, 'worker')} stay idle"
        yield Violation(entrypoint, f"{message}; start the processes with Ray Train")


def _check_tensorstack(manifest: Manifest) -> Iterator[Violation]:
    enabled = (get_path(manifest.spec, name, "enabled") for name in ("torchrunConfig", "elastic"))
    if any(value_of(node) is True for node in enabled):
        return
    for launcher, _ in _find_unconnected(manifest, without="PET_NNODES"):
        message = f"`{launcher.text}` does not get the number of pods, so each of them trains on its own"
        yield Violation(launcher.node, f"{message}; set `torchrunConfig.enabled`, or `--nnodes` and the address")
        return


def _check_deepspeed(manifest: Manifest) -> Iterator[Violation]:
    for launcher, container in _find_unconnected(manifest):
        # Without an address of a master, the pods may be meant to work on their own.
        is_distributed = any(name == "MASTER_ADDR" for name, _ in container.env)
        if launcher.text.endswith("deepspeed") and is_distributed and not _has_hostfile(container):
            message = f"`{launcher.text}` has no hostfile, so each pod trains on its own"
            yield Violation(launcher.node, f"{message}; start the script with `torchrun`, which finds the other pods")
            return


def _has_hostfile(container: Container) -> bool:
    paths = (as_text(as_mapping(mount).get("mountPath")) for mount in as_list(container.data.get("volumeMounts")))
    return _HOSTFILE in container.search_text or any(_HOSTFILE.startswith(path.rstrip("/") or "-") for path in paths)


def _find_unconnected(manifest: Manifest, without: str = "") -> Iterator[tuple[Argument, Container]]:
    """The launchers of a job with several pods that have no options, and no variable, about other pods."""
    for role in manifest.roles if manifest.pod_count > 1 else ():
        main = role.pod.main_container
        arguments = parse_command(main.command_line) if main else []
        launcher = _find_launcher(arguments)
        by_option = any(_CONNECTING.match(each.text) for each in arguments)
        if main and launcher and not by_option and not any(name == without for name, _ in main.env):
            yield launcher, main


def _find_launcher(arguments: Sequence[Argument]) -> Argument | None:
    """The launcher of a command line; what follows the first script is not one."""
    for argument in arguments:
        if _LAUNCHERS.fullmatch(argument.text):
            return argument
        if argument.text.endswith(".py"):
            return None
    return None


_FINDERS = {
    "Job": _check_deepspeed,
    "JobSet": _check_deepspeed,
    "PyTorchTrainingJob": _check_tensorstack,
    "RayJob": _check_ray,
}
