"""Commands that only wait."""

from collections.abc import Iterator, Sequence

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container, Manifest, Role
from jobgen.k8s.shell_script import find_script, split_pipelines, split_words
from jobgen.model.data import Node
from jobgen.model.finding import pluralize
from jobgen.model.lazy_re import lazy_pattern

_DURATION = lazy_pattern(r"(\d{1,9})([smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DAY = 86400
_ENDLESS_LOOPS = frozenset(("true", ":", "[ 1 ]", "[ true ]", "1"))
_MPI = ("MPIJob",)
# In jobs of these kinds every pod with GPUs computes by itself. Elsewhere, such as in jobs of MPI, another pod may
# start processes in a pod that waits.
_KINDS = """JAXJob Job JobSet PaddleJob PyTorchJob PyTorchTrainingJob TensorFlowTrainingJob TFJob TrainJob XGBoostJob
XGBoostTrainingJob""".split()


@rule("job", WARNING, kinds=(*_KINDS, *_MPI))
def idle_command(manifest: Manifest) -> Iterator[Violation]:
    """A command that only waits, such as `sleep infinity`, in a job that holds GPUs.

    The job holds its GPUs and its quota until somebody deletes it.

    Write the command that trains. To try something by hand, use a pod or a notebook with few GPUs and a deadline, such
    as `activeDeadlineSeconds`.
    """
    roles = [role for role in manifest.roles if role.count]
    if manifest.kind_name in ("Job", "JobSet") and len(roles) > 1:
        return
    for role in roles:
        main = role.pod.main_container
        gpus = _count_gpus(role)
        found = _find_waiting(main) if main and gpus else None
        if found:
            node, command, is_all = found
            what = f"only runs `{command}`" if is_all else f"ends with `{command}`"
            message = f"{role.title} {what}, so the job never ends and holds {pluralize(gpus, 'GPU')}"
            fix = "write the command that trains" if is_all else "remove it"
            yield Violation(node, f"{message}; {fix}")


def _count_gpus(role: Role) -> int:
    """Return the number of GPUs that wait with a role: its own; those of the whole job for a launcher."""
    if role.manifest.kind_name in _MPI:
        return role.manifest.gpus if role.name == "launcher" else 0
    return role.gpus or (role.pod.main_container.gpus if role.pod.main_container else 0)


def _find_waiting(container: Container) -> tuple[Node, str, bool] | None:
    """Return the item with the command that waits, the command, and whether there is nothing else."""
    script = find_script(container)
    if script is None:
        words = tuple(map(as_text, container.command_line))
        return (container.command_line[0], " ".join(words), True) if _waits(words) else None
    pipelines = split_pipelines(script.text)
    commands = [split_words(each.commands[0]) if len(each.commands) == 1 else () for each in pipelines]
    if commands[-1:] == [("done",)] and len(commands) > 2 and commands[-2][:1] == ("sleep",):
        is_endless = pipelines[-3].commands[0].removeprefix("while").strip() in _ENDLESS_LOOPS
        if is_endless and pipelines[-3].commands[0].startswith("while"):
            return script.node, "while true; do sleep …; done", len(commands) == 3
        return None
    if not commands or not _waits(commands[-1]):
        return None
    # What runs only after a failure, or in a condition, does not keep every job.
    if (len(pipelines) > 1 and pipelines[-2].end in ("||", "&", "(")) or pipelines[-1].end not in ("", ";", "\n"):
        return None
    return script.node, " ".join(commands[-1]), len(commands) == 1


def _waits(words: Sequence[str]) -> bool:
    program = words[0].rpartition("/")[2] if words else ""
    if program == "sleep":
        return len(words) == 2 and (words[1] in ("inf", "infinity") or _lasts_a_day(words[1]))
    return program == "tail" and words[-1] == "/dev/null" and any(word in ("-f", "-F") for word in words[1:-1])


def _lasts_a_day(duration: str) -> bool:
    found = _DURATION.fullmatch(duration)
    return found is not None and int(found[1]) * _SECONDS[found[2]] >= _DAY
