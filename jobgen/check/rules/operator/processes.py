"""Processes of a pod: what the operator starts, and what the command needs."""

from collections.abc import Iterator, Mapping, Sequence

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest, Role
from jobgen.k8s.operators import describe_rejection, is_operator_since
from jobgen.model.data import Plain, untraced
from jobgen.model.finding import FixStep
from jobgen.model.lazy_re import has_any, lazy_pattern
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import suggest_entry

# A command line with a call of mpirun has one of these.
_MPI_WORDS = ("mpirun", "mpiexec", "horovodrun", "orterun", "prterun")


@rule("job", WARNING, kinds=("PyTorchJob",), fields=("elasticPolicy",))
def deprecated_nproc_per_node(manifest: Manifest) -> Iterator[Violation]:
    """A PyTorchJob that sets the deprecated `elasticPolicy.nProcPerNode`.

    Since 1.7 the field is `spec.nprocPerNode`, and the operator warns about the old one.

    Move it to `spec.nprocPerNode`, as a string.

    When to turn it off: while clusters with training-operator before 1.7 still get the same manifest, set it to
    `off` for their environments, because only the old field exists there.
    """
    policy = as_mapping(manifest.spec.get("elasticPolicy"))
    if "nProcPerNode" not in policy or "nprocPerNode" in manifest.spec or not is_operator_since(manifest, "1.7.0"):
        return
    node = policy["nProcPerNode"]
    if node is not None:
        fix_steps = (
            FixStep("remove", At(policy, "nProcPerNode"), key="nProcPerNode"),
            *suggest_entry("nprocPerNode", str(node), manifest.spec),
        )
        message = Sentence('this field is deprecated; write `nprocPerNode: "{}"` under `spec`', node)
        # If it is the only entry, the fix would remove the whole policy, and the job would not be elastic.
        yield Violation(At(policy, "nProcPerNode"), message, fix_steps=fix_steps if len(policy) > 1 else ())


@rule("job", ERROR, kinds=("PyTorchJob",), fields=("elasticPolicy",))
def nproc_per_node_twice(manifest: Manifest) -> Iterator[Violation]:
    """A PyTorchJob that sets the number of processes per node twice.

    `elasticPolicy.nProcPerNode` is the deprecated form of `nprocPerNode`; the operator rejects a job that has both.

    Keep only `nprocPerNode`.

    When to turn it off: the operator enforces this since the second field exists. Overlays that still set the old
    field can delete it with `nProcPerNode: null`.
    """
    policy = as_mapping(manifest.spec.get("elasticPolicy"))
    own = manifest.spec.get("nprocPerNode")
    if "nProcPerNode" in policy and policy["nProcPerNode"] is not None and own is not None:
        message = Sentence("`nprocPerNode` is also set; {}; remove this one", describe_rejection(manifest))
        old = policy["nProcPerNode"]
        fix_steps = (FixStep("remove", At(policy, "nProcPerNode"), key="nProcPerNode"),) if len(policy) > 1 else ()
        yield Violation(
            At(policy, "nProcPerNode"),
            message,
            related=((At(manifest.spec, "nprocPerNode"), "also set here"),),
            fix_steps=fix_steps,
            safe=str(old) == str(own),
        )


_WORDS = ("auto", "cpu", "gpu", "xpu")


@rule("job", ERROR, kinds=("PyTorchJob", "PyTorchTrainingJob", "TrainJob"))
def unknown_nproc_per_node(manifest: Manifest) -> Iterator[Violation]:
    """A number of processes per node that torchrun does not accept.

    The CRD accepts any text, or any number, and passes it on. torchrun accepts `auto`, `cpu`, `gpu`, `xpu` or a
    positive integer, and exits at once otherwise; so does `mpirun` with a negative number of slots. Other words are a
    warning, because newer versions of torchrun can know them. So is a `numProcPerNode` below 1 of a TrainJob whose
    runtime is not known to start these programs: releases of Trainer after 2.3 reject it.

    Use one of these values.

    When to turn it off: for a torchrun that accepts a further word, the finding is a warning, and can be suppressed
    on the line with the release of PyTorch as the reason.
    """
    if manifest.kind_name == "TrainJob":
        yield from _check_train_job(manifest)
        return
    for path in (("nprocPerNode",), ("torchrunConfig", "procPerNode")):
        written = as_text(get_path(manifest.spec, *path))
        if not written or written in _WORDS or (written.isdecimal() and int(written) > 0):
            continue
        numeric = written.lstrip("-+").replace(".", "", 1).isdecimal()
        message = Sentence("torchrun accepts `auto`, `cpu`, `gpu` or a positive integer, not `{}`", written)
        yield Violation(find_at(manifest.spec, *path), message, severity=None if numeric else WARNING)


def _check_train_job(manifest: Manifest) -> Iterator[Violation]:
    number = as_integer(get_path(manifest.spec, "trainer", "numProcPerNode"))
    if number is None or number > 0 or manifest.kind is None:
        return
    runtime = manifest.kind.requirements.runtimes.get(as_text(get_path(manifest.spec, "runtimeRef", "name")))
    own = as_text(get_path(manifest.spec, "runtimeRef", "kind")) == "TrainingRuntime"
    program = {"torch": "torchrun", "mpi": "mpirun"}.get(runtime.policy if runtime and not own else "", "")
    # A command of the job's own may start something else.
    written = " ".join(as_text(word) for role in manifest.roles for word in _list_command(role))
    is_certain = bool(program) and (not written or program in written)
    message = Sentence("`numProcPerNode` must be at least 1, got `{}`", number)
    effect = f"; `{program}` exits at once" if is_certain else ""
    place = At(manifest.spec["trainer"], "numProcPerNode")
    yield Violation(
        place, Sentence("{}{}; use the number of GPUs", message, effect), severity=None if is_certain else WARNING
    )


def _list_command(role: Role) -> list[Plain]:
    return role.pod.main_container.command_line if role.pod.main_container else []


@rule("job", WARNING, kinds=("MPIJob",))
def launcher_command_on_workers(manifest: Manifest) -> Iterator[Violation]:
    """An MPIJob whose workers have the command of the launcher, or call `mpirun` themselves.

    A worker has to wait for the launcher: without a command, the operator makes it run `sshd` (MPIJob v1: `sleep`). A
    worker that calls `mpirun` does not listen, so the launcher cannot start processes there, which is an error. Any
    other program is a warning, because it can listen. So is a worker of `kubeflow.org/v2beta1` that only sleeps: the
    operator starts `sshd` in workers without a command, and the launcher connects to it.

    Set `command` and `args` for the role `launcher` only.

    When to turn it off: for images whose entry point starts `sshd` and then stays, suppress the warning at the
    worker's command; a worker that calls `mpirun` itself stays an error.
    """
    launcher, worker = manifest.find_role("launcher"), manifest.find_role("worker")
    main = worker.pod.main_container if worker else None
    command = main.command if main else []
    if not main or not launcher or not worker or not command:
        return
    first = launcher.pod.main_container
    shared = first is not None and untraced(first.command_line) == untraced(main.command_line)
    launches = has_any(main.search_text, _MPI_WORDS) and _calls_mpirun(main)
    if launches or (shared and not _waits(main.command_line)):
        name = as_text(command[0]).partition(" ")[0]
        message = Sentence(
            "the workers run `{}` instead of waiting for the launcher; set `command` for the launcher only", name
        )
        # A worker that starts `mpirun` fails for certain; another program may listen for the launcher.
        yield Violation(command, message, severity=ERROR if launches else WARNING)
    elif as_text(manifest.object.get("apiVersion")) == _WITH_SSH and _only_sleeps(main):
        # What starts `sshd` beside the command is not known, nor what the launcher connects by.
        is_alone = len(worker.pod.containers) == 1 and "lifecycle" not in main.data
        if is_alone and first is not None and not _only_sleeps(first) and not _RSH.search(first.search_text):
            message = Sentence(
                "the workers run `{}`, so that no `sshd` listens for the launcher; remove `command`, or write "
                '`["/usr/sbin/sshd", "-De"]`',
                " ".join(map(as_text, main.command_line)),
            )
            yield Violation(command, message)


_WITH_SSH = "kubeflow.org/v2beta1"
# A command, alone or as the script of a shell, that does nothing but stay.
_SLEEP = r"(?:exec )?(?:/\S*/)?(?:sleep [\w.]+|tail (?:-f|-F|--follow) /dev/null);?"
_SLEEPS = lazy_pattern(rf"(?:(?:/\S*/)?(?:ba)?sh -\w*c )?(?:{_SLEEP}|while (?:true|:); ?do {_SLEEP} ?done)")
# Another way to reach the workers than ssh.
_RSH = lazy_pattern(r"(?i)rsh_agent|launch_agent|kubexec|kubectl|bootstrap")


def _only_sleeps(container: Container) -> bool:
    """Return True if a container does nothing but stay."""
    return _SLEEPS.fullmatch(" ".join(" ".join(map(as_text, container.command_line)).split())) is not None


def _calls_mpirun(container: Container) -> bool:
    # Imported late: few workers do.
    from jobgen.k8s.mpi_launches import calls_mpirun

    return calls_mpirun(container.command_line)


def _waits(words: Sequence[Plain]) -> bool:
    """Return True if a command line waits for the launcher."""
    return has_any(" ".join(map(as_text, words)), ("sshd", "sleep", "tail -f"))


_NAME = "JOB_COMPLETION_INDEX"
_ANNOTATION = "batch.kubernetes.io/job-completion-index"
# `$(NAME)` of Kubernetes, and `$NAME` and `${NAME}` of a shell; `${NAME:-0}` has a value for this case.
_REFERENCE = lazy_pattern(rf"(?<!\$)\$(?:\({_NAME}\)|{_NAME}\b|\{{{_NAME}(?![:?+=-]|\w))|environ\W+{_NAME}\b")


@rule("manifest", WARNING, kinds=("CronJob", "Job", "JobSet"))
def missing_completion_index(manifest: Manifest) -> Iterator[Violation]:
    """A Job with several pods that reads `JOB_COMPLETION_INDEX` but is not `Indexed`.

    Kubernetes sets the variable, and the annotation that it is copied from, only with `completionMode: Indexed`. The
    default is `NonIndexed`: a shell reads an empty text, and a program gets `$(JOB_COMPLETION_INDEX)` as it is written.
    Pods that are meant to share the work all do the same, or fail. So do Jobs of a JobSet with one pod each that take
    a rank from the index, which is 0 in every Job.

    Set `completionMode: Indexed`, and `completions`. In a JobSet, run all pods in one Job.

    When to turn it off: if the program treats a missing index as zero, and one pod is the normal case, suppress the
    finding on the variable.
    """
    if manifest.kind_name == "JobSet":
        yield from _check_jobs_of_one_pod(manifest)
    if manifest.group != "batch":
        return
    [spec] = _list_job_specs(manifest)
    pods = max(as_integer(spec.get(name)) or 1 for name in ("parallelism", "completions"))
    if pods < 2 or as_text(spec.get("completionMode")) == "Indexed":
        return
    for container in (each for pod in manifest.pods for each in (*pod.containers, *pod.init_containers)):
        place = _find_reference(container)
        if place is not None:
            mode = "`completionMode` is `NonIndexed`" if "completionMode" in spec else "the Job is not `Indexed`"
            message = Sentence("{}, so the {} pods have no `{}`; set `completionMode: Indexed`", mode, pods, _NAME)
            yield Violation(place, message)
            return


_RANK_NAMES = frozenset("JAX_PROCESS_ID MACHINE_RANK NODE_RANK PET_NODE_RANK PROCESS_ID RANK".split())
_RANK = lazy_pattern(rf"(?<![\w-])--(?:node|machine)[-_]rank[=\s]+[\"']?\$[({{]?{_NAME}\b(?!\s*[-+*])")
_NODES = lazy_pattern(r"(?i)--nnodes|--num[-_]machines|NNODES|WORLD_SIZE|NUM_PROCESSES|NUM_NODES")
# What else makes a rank: the number of the Job; and one node, whose rank is 0.
_OTHER_RANKS = lazy_pattern(
    r"(?i)job[-_](?:global[-_])?index|\$\(\(|(?:--nnodes|--num[-_]machines|NNODES|WORLD_SIZE|NUM_PROCESSES|NUM_NODES)"
    r"[=\s]+[\"']?1(?![\d:])"
)


def _check_jobs_of_one_pod(manifest: Manifest) -> Iterator[Violation]:
    """Check that no rank is the index of the pods of Jobs that have one pod each."""
    for role in manifest.roles:
        job, jobs = as_mapping(get_path(role.replica_spec, "template", "spec")), role.replica_spec.get("replicas")
        count, main = as_integer(jobs) or 1, role.pod.main_container
        if count < 2 or main is None or any(as_integer(job.get(name)) not in (None, 1) for name in _COUNTS):
            continue
        place = _find_reference(main)
        fields = (as_text(get_path(entry, "valueFrom", "fieldRef", "fieldPath")) for _, entry in main.env)
        text = "\n".join((main.search_text, *fields))
        is_rank = _RANK.search(main.search_text) or any(
            name in _RANK_NAMES and _is_index(entry) for name, entry in main.env
        )
        if place is None or not is_rank or not _NODES.search(text) or _OTHER_RANKS.search(text):
            continue
        message = Sentence(
            "`{}` is 0 in each of the {} Jobs of `{}`, which have one pod each; write `replicas: 1`, `parallelism: {}` "
            "and `completions: {}`, or use the label `jobset.sigs.k8s.io/job-index`",
            _NAME,
            count,
            role.replica_type,
            count,
            count,
        )
        yield Violation(place, message, ((At(role.replica_spec, "replicas"), ""),))


_COUNTS = ("parallelism", "completions")


def _is_index(entry: Mapping[str, Plain]) -> bool:
    """Return True if a variable is the index of its pod."""
    path = as_text(get_path(entry, "valueFrom", "fieldRef", "fieldPath"))
    return _ANNOTATION in path or as_text(entry.get("value")) == f"$({_NAME})"


def _find_reference(container: Container) -> At | None:
    """Return the first place that reads the index; None if there is none, or if the container sets it."""
    for name, entry in container.env:
        source = find_at(entry, "valueFrom", "fieldRef", "fieldPath")
        if source is not None and _ANNOTATION in as_text(source.node):
            return source
        if name == _NAME:
            return None
    if _NAME not in container.search_text:
        return None
    return next((place for place in container.value_places if _REFERENCE.search(as_text(place.node))), None)


@rule("manifest", WARNING, kinds=("CronJob", "Job", "JobSet"))
def unused_parallelism(manifest: Manifest) -> Iterator[Violation]:
    """A Job whose `parallelism` is greater than its `completions`.

    Kubernetes never runs more pods than have to complete. A program that waits for `parallelism` pods waits forever.

    Set both to the number of pods.

    When to turn it off: if the program works through a queue and never waits for its peers, more parallelism than
    completions is only useless, and can be accepted on its line.
    """
    for job in _list_job_specs(manifest):
        if "parallelism" not in job or "completions" not in job:
            continue
        parallelism, completions = as_integer(job["parallelism"]), as_integer(job["completions"])
        if parallelism is not None and completions is not None and parallelism > completions > 0:
            message = Sentence(
                "`parallelism` is {}, but the Job has `completions: {}` and never more pods", parallelism, completions
            )
            related = ((At(job, "completions"), ""),)
            yield Violation(At(job, "parallelism"), Sentence("{}; set both to the same number", message), related)


def _list_job_specs(manifest: Manifest) -> list[Mapping[str, Plain]]:
    """Return the specs of the Jobs of Kubernetes that an object is or creates."""
    if manifest.kind_name == "JobSet":
        jobs = iter_mappings(manifest.spec.get("replicatedJobs"))
        return [as_mapping(get_path(job, "template", "spec")) for job in jobs]
    if manifest.group != "batch":
        return []
    path = ("jobTemplate", "spec") if manifest.kind_name == "CronJob" else ()
    return [as_mapping(get_path(manifest.spec, *path)) if path else manifest.spec]
