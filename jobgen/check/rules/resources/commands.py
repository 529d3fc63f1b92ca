"""Commands of which a shell runs more or less than was meant, and those that only wait."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.operators.checks import is_since
from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest, Role
from jobgen.k8s.shell.commands import NAMES_SHELL, Script, find_script, shorten, split_words
from jobgen.k8s.workloads import RAY_CLUSTERS
from jobgen.model.data import Location, Plain, location_of
from jobgen.model.finding import FixStep, Problem, pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At
from jobgen.model.sentence import Sentence
from jobgen.yamlio.read import read

if TYPE_CHECKING:
    from jobgen.k8s.shell.tree import AndOr

_JOBS = {"RayCronJob": ("spec", "jobTemplate"), "RayJob": ("spec",)}
_CLUSTERS = {**RAY_CLUSTERS, "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec")}
_QUOTING = ("aws.amazon.com/neuroncore", "google.com/tpu")
_SHELL_MODES = ("", "K8sJobMode", "SidecarMode")
_TO_FILE = frozenset((">", ">>", ">|", "&>", "&>>", "<", "<>"))
_PLACEHOLDER = lazy_pattern(r"<[\w-]+>")
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

    Write the entrypoint as `sh -c '…'`. Write JSON in two pairs of quotes, single ones around double ones, so that the
    shell leaves one pair for Ray.

    When to turn it off: when the first part starts the cluster's work and the rest is meant for the submitter, such
    as a notification, suppress it on `entrypoint`.
    """
    if manifest.group != "ray.io":
        return
    if manifest.kind_name in _JOBS:
        yield from _check_entrypoint(manifest, as_mapping(get_path(manifest.object, *_JOBS[manifest.kind_name])))
    cluster = as_mapping(get_path(manifest.object, *_CLUSTERS[manifest.kind_name]))
    for group in map(as_mapping, (cluster.get("headGroupSpec"), *as_list(cluster.get("workerGroupSpecs")))):
        container = next(iter_mappings(get_path(group, "template", "spec", "containers")), {})
        limits = as_mapping(get_path(container, "resources", "limits"))
        parameters = as_mapping(group.get("rayStartParams"))
        for name in parameters:
            # KubeRay adds these accelerators to the resources, and then quotes them.
            if name != "resources" or not any(each in limits for each in _QUOTING):
                yield from _check_parameter(At(parameters, name))
        yield from _check_container(as_mapping(group.get("template")))


def _check_entrypoint(manifest: Manifest, job: Mapping[str, Plain]) -> Iterator[Violation]:
    node = job.get("entrypoint")
    text = as_text(node).strip()
    submitter = next(iter_mappings(get_path(job, "submitterPodTemplate", "spec", "containers")), {})
    in_shell = as_text(job.get("submissionMode")) in _SHELL_MODES and not as_list(submitter.get("command"))
    if not text or not in_shell or not is_since(manifest, "kuberay", "1.3"):
        return
    sign = _find_end(text)
    if sign:
        where = "a line break" if sign == "\n" else f"`{sign}`"
        what = "the output goes to a file of" if sign == ">" else "the rest runs in"
        message = Sentence(
            "the shell of the submitter ends the entrypoint at {}: only what is before it runs in the", where
        )
        message += f" cluster, and {what} the submitter, without GPUs"
        yield Violation(
            At(job, "entrypoint"), Sentence("{}; write `sh -c '…'` around all of it", message), evidence=(text,)
        )
        return
    own = {as_text(each.get("name")) for each in iter_mappings(submitter.get("env"))}
    for name in _VARIABLE.findall(_QUOTED.sub("", text)):
        if name not in own and name in _list_cluster_variables(job):
            message = Sentence(
                "the shell of the submitter replaces `${}`, which is set only in the Ray cluster, by nothing", name
            )
            yield Violation(
                At(job, "entrypoint"),
                Sentence("{}; write `sh -c '…'` around the entrypoint", message),
                evidence=(name,),
            )
            return


def _find_end(text: str) -> str:
    """Return the sign at which a shell ends the first command of an entrypoint; "" if it is the only one."""
    # Imported late, as below: few jobs have scripts.
    from jobgen.k8s.shell.steps import list_steps, parse_command_line
    from jobgen.k8s.shell.tree import Simple

    before = "ray "
    parsed = parse_command_line(f"{before}{text}")
    steps = [*list_steps(parsed.script)]
    if not steps:
        # `ray job submit -- (…)`
        sign = text[parsed.end - len(before) :][:1]
        return sign if sign in ("(", ")") else ""
    first = steps[0].commands[0]
    if len(steps[0].commands) > 1 or len(steps) > 1 or parsed.failure:
        return "|" if len(steps[0].commands) > 1 else steps[0].end
    redirections = first.redirections if isinstance(first, Simple) else ()
    is_sent = any(redirection.operator in _TO_FILE for redirection in redirections)
    return ">" if is_sent and not _PLACEHOLDER.search(text) else ""


def _list_cluster_variables(job: Mapping[str, Plain]) -> set[str]:
    """Return the variables that the driver of the job has: those of the head and of the runtime environment."""
    head = get_path(job, "rayClusterSpec", "headGroupSpec", "template", "spec", "containers")
    names = {as_text(each.get("name")) for each in iter_mappings(next(iter_mappings(head), {}).get("env"))}
    text = as_text(job.get("runtimeEnvYAML"))
    for document in read(text.encode(errors="replace"), "runtimeEnvYAML").documents if "env_vars" in text else ():
        names.update(map(str, as_mapping(as_mapping(document.data).get("env_vars"))))
    return names


def _check_parameter(place: At) -> Iterator[Violation]:
    """Check a value that KubeRay writes as `--name=value` into a line for a shell."""
    text, name = as_text(place.node), place.key
    # A command whose output is the value is meant for the shell.
    if not text or "$(" in text or "`" in text or (not _SPECIAL.search(text) and '"' not in text and "'" not in text):
        return
    words = split_words(text)
    is_json = text.lstrip(" '\"").startswith("{")
    reached = words[0] if len(words) == 1 else ""
    if (is_json and _is_json(reached)) or (not is_json and (len(words) == 1 or _PLACEHOLDER.search(text))):
        return
    message = Sentence("KubeRay writes `{}` of `rayStartParams` into a shell command without quotes", name)
    if not is_json:
        yield Violation(place, Sentence("{}, so the shell splits `{}` into words; quote it: `'\"…\"'`", message, text))
        return
    quoted = json.dumps(text) if _is_json(text) else ""
    advice = "write the JSON in two pairs of quotes"
    if quoted and "'" not in quoted:
        advice += f", in YAML: `'{quoted}'`"
    message += ", so the shell removes the quotes of the JSON, and `ray start` fails"
    yield Violation(place, Sentence("{}; {}", message, advice), evidence=(name,))


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _check_container(template: Mapping[str, Plain]) -> Iterator[Violation]:
    """Check the command of the Ray container, which KubeRay joins with spaces before `ray start`."""
    annotations = as_mapping(as_mapping(template.get("metadata")).get("annotations"))
    container = next(iter_mappings(get_path(template, "spec", "containers")), {})
    lists = [as_list(container.get("command")), as_list(container.get("args"))]
    places = [At(words, index) for words in lists for index in range(len(words))]
    texts = [as_text(place.node) for place in places]
    keeps = as_text(annotations.get("ray.io/overwrite-container-cmd")).lower() == "true"
    if keeps or any("ray start" in text for text in texts):
        return
    for before, text, place in zip(texts, texts[1:], places[1:], strict=False):
        # `sh -c` takes one word; the script is several words when KubeRay has joined it.
        if before in ("-c", "-lc", "-ec", "-ce", "-xc") and len(text.split()) > 1 and text[0] not in "'\"":
            message = (
                "KubeRay joins the command of the Ray container with spaces, so the shell gets only the first word"
            )
            yield Violation(
                place, Sentence("{} of this script; remove `{} {}`", message, texts[0], before), evidence=()
            )
            return


# `;` is not one of them: `find -exec` takes it as an argument.
_OPERATORS = frozenset(("&&", "||", "|", ">", ">>", "<", "2>&1", "&>"))
_BUILTINS = frozenset(("cd", "source", ".", "export", "set", "ulimit", "umask", "exec", "alias", "unset", "trap"))
_SCRIPT_OPTION = lazy_pattern(r"-[a-z]*c\Z")


@rule("container", WARNING, fields=("command",))
def shell_syntax_without_shell(container: Container) -> Iterator[Violation]:
    """`&&`, `|`, `cd` and other words of a shell in a command that no shell reads.

    Kubernetes starts the program directly. `cd` is not a program, so the container never starts; `&&` and what follows
    become arguments of the first program, and quotes such as those of `--name='bert'` become a part of the value. After
    `sh -c`, only one item is the script.

    Write the whole script as one item after `sh -c`, or use `workingDir` instead of `cd`.

    When to turn it off: a program that has its own parser for `|` or `&&`, such as a query tool, gets them as
    intended; suppress the finding on that argument.
    """
    words = container.words
    first = container.words[0] if container.command else ""
    if "\n~/" in container.search_text:
        yield from _find_homes(container)
    if first and ("='" in container.search_text or '="' in container.search_text):
        yield from _find_quotes(container)
    if first in _BUILTINS:
        advice = "use `workingDir`" if first == "cd" else "set variables in `env`" if first == "export" else ""
        also = f", or {advice}" if advice else ""
        yield Violation(
            container.word_place(0),
            Sentence("`{}` is shell syntax, not a program; start a shell with `sh -c`{}", first, also),
        )
        return
    if not first or _OPERATORS.isdisjoint(container.words):
        # Without a command, the entry point of the image may be a shell.
        return
    for index, text in enumerate(words):
        if text in _OPERATORS and not _may_be_read(words, index):
            message = Sentence(
                "`{}` is an argument here, because no shell reads it; write the script as one item after `sh -c`", text
            )
            yield Violation(container.word_place(index), message)
            return


_QUOTED_VALUE = lazy_pattern(r"""(--?[A-Za-z][\w.-]{0,60}=)(?:'([^'`\n]{1,200})'|"([^"`\n]{1,200})")""")


def _find_quotes(container: Container) -> Iterator[Violation]:
    """Report items such as `--name='bert'`, whose quotes only a shell removes."""
    for index, text in enumerate(container.words):
        found = _QUOTED_VALUE.fullmatch(text)
        if found and not any(map(NAMES_SHELL.search, container.words[:index])):
            meant, place = f"{found[1]}{found[2] or found[3]}", container.word_place(index)
            message = f"the quotes in `{text}` are a part of the value, because no shell removes them; write `{meant}`"
            yield Violation(place, message, fix_steps=(FixStep("set", place, meant),), safe=False)


def _find_homes(container: Container) -> Iterator[Violation]:
    """Report items such as `~/train.py`, of which only a shell makes a path."""
    for index, text in enumerate(container.words):
        if text[:2] == "~/" and " " not in text and "\n" not in text:
            message = Sentence("`~` of `{}` stays as it is, because no shell reads it", text)
            yield Violation(
                container.word_place(index), Sentence("{}; write the whole path, such as `/root{}`", message, text[1:])
            )


def _may_be_read(words: Sequence[str], index: int) -> bool:
    """Return True if a shell before this word may read it: not if an item of `-c` stands between them."""
    shells = [at for at in range(index) if NAMES_SHELL.search(words[at])]
    if not shells:
        return False
    after = [at for at in range(shells[0], index) if _SCRIPT_OPTION.match(words[at])]
    # `sh -c cd /app && …` in items: the script is `cd` alone.
    return not after or index - after[0] == 1


# Scripts that read their parameters, and those whose text Kubernetes completes.
_READS_PARAMETERS = lazy_pattern(
    r"\$[\d@*#]|\$\{[#!]?[\d@*#]|\b(?:shift|getopts|BASH_ARGV|eval)\b|\bfor\s+\w+\s*(?:;|\n|do\b)|\$\(\w+\)"
)
# Programs that do nothing useful without arguments.
_NEED_ARGUMENTS = lazy_pattern(
    r"(?:\S*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|mpirun|mpiexec|horovodrun|sleep|cd)"
)

# What is written for `$0`, the name of the script in messages.
_NAMES = frozenset(("sh", "bash", "_", "-", "--", "/bin/sh", "/bin/bash", "arg0", "argv0", "dummy", "ignored"))


@rule("container", WARNING, fields=("command", "args"))
def arguments_after_script(container: Container) -> Iterator[Violation]:
    """Arguments after the script of `sh -c`, such as `[bash, -c, torchrun, train.py]`.

    A shell takes one item after `-c` as its script. The items after that are the parameters `$0`, `$1` and so on of the
    script, which this script does not use, so they have no effect. It is an error if the program needs them: `python`
    and `torchrun` end at once without a script.

    Write the whole command as one item after `-c`, or leave out the shell.

    When to turn it off: if the script calls a file that reads `$0` and `$1` of its parent, which is rare, write
    `"$@"` in the script: then they are used, and nothing is reported.
    """
    script = find_script(container)
    if script is None or not script.rest or not _loses_arguments(script):
        return
    lost, program = script.rest[0], script.text.strip()
    is_certain = bool(container.command) and _NEED_ARGUMENTS.fullmatch(program)
    message = Sentence("`{} -c` runs `{}` without `{}`", script.shell, shorten(program), shorten(lost))
    advice = Sentence("write the whole command as one item: `{}`", shorten(_join(script)))
    if _has_lines(program, script.rest):
        advice = Sentence("write all {} commands as the lines of one item, below `- |`", len(script.rest) + 1)
    yield Violation(
        container.word_place(script.at + 1),
        Sentence("{}; {}", message, advice),
        severity=ERROR if is_certain else WARNING,
    )


def _has_lines(program: str, words: Sequence[str]) -> bool:
    """Return True if the items are commands of their own, as the lines of a script."""
    return " " in program and any(" " in word for word in words) and not any(word.startswith("-") for word in words)


def _loses_arguments(script: Script) -> bool:
    """Return True if the script uses none of the words after it, and they are more than a name for it."""
    words = script.rest
    if script.reads_files or _READS_PARAMETERS.search(script.text) or _OPERATORS.intersection(words):
        # The rule shell-syntax-without-shell reports operators.
        return False
    from jobgen.k8s.shell.steps import parse_command_line
    from jobgen.k8s.shell.syntax import SyntaxFault

    failure = parse_command_line(script.text).failure
    if isinstance(failure, SyntaxFault) and failure.kind == "open" and failure.sign in ("'", '"'):
        return False
    is_single = len(split_words(script.text) or script.text.split()) == 1
    if words[0] in _NAMES or not words[0]:
        return len(words) > 1
    # One word after a longer script may be a name for it.
    return len(words) > 1 or is_single or words[0].startswith("-") or " " in words[0]


def _join(script: Script) -> str:
    return " ".join((script.text.strip(), *script.rest))


_KEEPS_CODE = lazy_pattern(r"pipefail|PIPESTATUS|pipestatus|mispipe")
_PROGRAM = lazy_pattern(
    r"(?:\S*/)?(python[\d.]*|torchrun|accelerate|deepspeed|mpirun|mpiexec|horovodrun|\w[\w.-]*\.(?:sh|py))"
)
# Commands after the pipeline whose own exit codes say nothing about it.
_HARMLESS = frozenset(("", "echo", "printf", "date", "ls", "true", "wait", "sync", "exit"))


@rule("container", WARNING, fields=("command", "args"), words=("tee",))
def lost_exit_code(container: Container) -> Iterator[Violation]:
    """A script whose training command is piped into `tee`, without `pipefail`.

    A pipeline has the exit code of its last command. `tee` succeeds even if the training failed, so the job is
    reported as complete, and nothing restarts it.

    Write `set -o pipefail` before it, and start the script with `bash`: not every `sh` has the option.

    When to turn it off: if the log matters and the result of the command does not, as in a report at the end,
    suppress it on the line on which the script begins.
    """
    manifest = container.pod.manifest
    # The exit code of a server, which is restarted in any case, matters little.
    if "tee" not in container.search_text or (manifest.kind is None and manifest.kind_name != "CronJob"):
        return
    script = find_script(container)
    if script is None or script.reads_files or any(name in ("SHELLOPTS", "BASH_ENV") for name, _ in container.env):
        return
    if _KEEPS_CODE.search(script.text) or "pipefail" in script.options:
        return
    program = _find_program(script.text)
    if program:
        message = Sentence("the exit code of `{}` is lost: `tee` succeeds even if `{}` fails", program, program)
        fix = "write `set -o pipefail` before it"
        if script.shell not in ("bash", "zsh", "ksh"):
            fix += f", and start the script with `bash` instead of `{script.shell}`"
        inside = _find_pipe(script.text) if "\n" in script.text.strip() else None
        message = Sentence("{}, and so does the job; {}", message, fix)
        if inside is None:
            yield Violation(script.place, message)
        else:
            where = f"in line {inside.line} of the script, "
            yield Violation(script.place, Sentence("{}{}", where, message), at=script.place, inside=inside)


_PIPE_TO_TEE = lazy_pattern(r"(?!\s*#).*\|&?[ \t]*(?:[\w./-]{0,80}/)?tee\b")
_TEE = lazy_pattern(r"\s*(?:\|&?\s*)?(?:[\w./-]{0,80}/)?tee\b")


def _find_pipe(text: str) -> Location | None:
    """Return the last line of a script on which something is piped into `tee`, outside of comments."""
    from jobgen.yamlio.inner_text import find_line

    last, before = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        if _PIPE_TO_TEE.match(line) or (before.rstrip("\\ ").endswith("|") and _TEE.match(line)):
            last = number
        before = line
    return find_line(text, last) if last else None


def _find_program(text: str) -> str:
    """Return the program whose exit code would be that of the script if it were not piped into `tee`; "" if none."""
    from jobgen.k8s.shell.steps import list_steps, list_words, read_commands
    from jobgen.k8s.shell.tree import Simple

    steps = [*list_steps(read_commands(text))]
    for before, step in reversed([*zip((None, *steps), steps, strict=False)]):
        words = [list_words(command) for command in step.commands]
        names = [each[0] if each else "" for each in words]
        if len(names) > 1 and names[-1].rpartition("/")[2] == "tee":
            found = next((match for word in words[0] if (match := _PROGRAM.fullmatch(word))), None)
            return found[1] if found else ""
        # What follows `||` runs only if `tee` fails.
        is_harmless = isinstance(step.commands[0], Simple) and names[0] in _HARMLESS
        if not is_harmless and not (before and before.end == "||"):
            return ""
    return ""


_DURATION = lazy_pattern(r"(\d{1,9})([smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DAY = 86400
_ALWAYS = frozenset((("true",), (":",), ("[", "1", "]"), ("[", "true", "]"), ("1",)))
_MPI = ("MPIJob",)
# In jobs of these kinds every pod with GPUs computes by itself. Elsewhere, such as in jobs of MPI, another pod may
# start processes in a pod that waits.
_KINDS = """JAXJob Job JobSet PaddleJob PyTorchJob PyTorchTrainingJob TensorFlowTrainingJob TFJob TrainJob XGBoostJob
XGBoostTrainingJob""".split()


@rule("job", WARNING, kinds=(*_KINDS, *_MPI), words=("sleep", "tail", "wait"))
def idle_command(manifest: Manifest) -> Iterator[Violation]:
    """A command that only waits, such as `sleep infinity`, in a job that holds GPUs.

    The job holds its GPUs and its quota until it is deleted. So does a script that starts the training in the
    background, and then follows its log, or waits for a server such as TensorBoard.

    Write the command that trains. To try something by hand, use a pod or a notebook with few GPUs and a deadline, such
    as `activeDeadlineSeconds`.

    When to turn it off: for an interactive session that was agreed upon, suppress it on the command with `until`
    and the date of its end, so that the GPUs come back.
    """
    roles = [role for role in manifest.roles if role.count]
    if manifest.kind_name in ("Job", "JobSet") and len(roles) > 1:
        return
    waiting: list[tuple[_Waiting, str, int]] = []
    for role in roles:
        main = role.pod.main_container
        found = _find_waiting(main) if main else None
        gpus = _count_gpus(role) if found else 0
        if found and gpus:
            waiting.append((found, role.title, gpus))
    places = tuple((found.place, "") for found, _, _ in waiting) if len(waiting) > 1 else ()
    for number, (found, title, gpus) in enumerate(waiting):
        finish = partial(_join_roles, waiting, number) if places else None
        yield Violation(found.place, _describe_waiting(found, title, gpus), places, finish=finish)


def _join_roles(waiting: Sequence[tuple[_Waiting, str, int]], number: int, problem: Problem, _: bool) -> Problem | None:
    """Return a problem of all roles that have their command from one line; None if it is that of an earlier role."""
    lines = [location_of(node) or index for index, (node, _) in enumerate(problem.related)]
    same = [index for index, line in enumerate(lines) if line == lines[number]]
    if same[0] != number:
        return None
    found, title, gpus = waiting[number]
    if len(same) > 1:
        # What roles have in common is said of the job.
        title, gpus = "each pod", sum(waiting[index][2] for index in same)
    return problem._replace(sentence=_describe_waiting(found, title, gpus), related=())


def _describe_waiting(found: _Waiting, title: str, gpus: int) -> str:
    what = f"only runs `{found.command}`" if found.is_all else f"ends with `{found.command}`"
    if found.beside:
        what = f"runs `{found.beside}` in the background and {what}"
    message = f"{title} {what}, so the job never ends and holds {pluralize(gpus, 'GPU')}"
    return f"{message}; {'write the command that trains' if found.is_all else found.advice}"


def _count_gpus(role: Role) -> int:
    """Return the number of GPUs that wait with a role: its own; those of the whole job for a launcher."""
    if role.manifest.kind_name in _MPI:
        return role.manifest.gpus if role.name == "launcher" else 0
    return role.gpus or (role.pod.main_container.gpus if role.pod.main_container else 0)


class _Waiting(NamedTuple):
    """A command that never ends: the place of its item, how messages name it, and what runs beside it."""

    place: At
    command: str
    is_all: bool
    """True if there is nothing else."""
    advice: str = "remove it"
    beside: str = ""
    """The program that trains in the background."""


def _find_waiting(container: Container) -> _Waiting | None:
    script = find_script(container)
    if script is None:
        words = container.words
        return _Waiting(container.word_place(0), " ".join(words), True) if _waits(words) else None
    from jobgen.k8s.shell.steps import list_steps, list_words, read_commands
    from jobgen.k8s.shell.tree import Loop

    commands = read_commands(script.text)
    if not commands or len(commands[-1].pipelines[-1][1].commands) > 1:
        return None
    operator, pipeline = commands[-1].pipelines[-1]
    last = pipeline.commands[0]
    is_all = len(commands) == len(commands[-1].pipelines) == 1
    if isinstance(last, Loop):
        inner = [list_words(each) for step in list_steps(last.condition + last.body) for each in step.commands]
        is_endless = not last.until and len(inner) == 2 and inner[0] in _ALWAYS and inner[1][:1] == ("sleep",)
        return _Waiting(script.place, "while true; do sleep …; done", is_all) if is_endless else None
    words = list_words(last)
    # What runs only after a failure, in the background or beside it does not keep every job.
    if operator == "||" or commands[-1].is_background:
        return None
    if not operator and any(each.is_background for each in commands[:-1]):
        found = _find_endless(script, commands, words)
        if found or commands[-2].is_background:
            return found
    return _Waiting(script.place, " ".join(words), is_all) if _waits(words) else None


# Programs that never end by themselves, which a script starts beside the training.
_SERVERS = lazy_pattern(
    r"tensorboard\b|jupyter(?:-lab|-notebook)?\b|(?:\S*/)?sshd\b|visdom\b|mlflow\s+(?:server|ui)\b|nvidia-smi\s+dmon\b|"
    r"python[\d.]*\s+-m\s+(?:http\.server|tensorboard\.main|visdom\.server)\b|dcgm-exporter\b|node_exporter\b"
)
_TRAINS = lazy_pattern(r"(?:\S*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|mpirun|mpiexec|horovodrun)")
_NUMBER_OF_LAST = lazy_pattern(r"\A\$\{?(\w+)\}?\Z")


def _find_endless(script: Script, commands: Sequence[AndOr], words: Sequence[str]) -> _Waiting | None:
    """Return the last command of a script if it never ends, though the training in the background does."""
    from jobgen.k8s.shell.steps import list_words
    from jobgen.k8s.shell.tree import Simple

    started: list[Sequence[str]] = []
    numbers: dict[str, Sequence[str]] = {}
    for each in commands[:-1]:
        last = each.pipelines[-1][1].commands[-1]
        if each.is_background:
            started.append(list_words(last))
        elif started and isinstance(last, Simple) and not last.words:
            # `PID=$!`
            numbers.update({found.name: started[-1] for found in last.assignments if not isinstance(found.value, list)})
        elif _TRAINS.fullmatch((list_words(last) or ("",))[0]) or list_words(last)[:1] in (("wait",), ("kill",)):
            return None
    trained = next((each for each in started if each and _TRAINS.fullmatch(each[0]) and not _serves(each)), None)
    if trained is None:
        return None
    program, shown = trained[0].rpartition("/")[2], " ".join(words)
    if (
        words[:1] == ("tail",)
        and "--pid" not in shown
        and any(word in ("-f", "-F", "-fn", "--follow") for word in words)
    ):
        return _Waiting(script.place, shown, False, f"start `{program}` without `&`", program)
    if _waits(words):
        return _Waiting(script.place, shown, False, f"write `wait $!` behind `{program}` instead", program)
    if words[:1] != ("wait",):
        return None
    found = [numbers.get(match[1]) for word in words[1:] if (match := _NUMBER_OF_LAST.match(word))]
    waited = [each for each in found if each] if len(words) > 1 else started
    server = next((each for each in waited if _serves(each)), None)
    if server is None or (len(words) > 1 and len(waited) != len(words) - 1):
        return None
    name = server[0].rpartition("/")[2]
    advice = f"start `{program}` without `&`, as the last command"
    return _Waiting(script.place, f"{shown}`, which waits for `{name}", False, advice, program)


def _serves(words: Sequence[str]) -> bool:
    return _SERVERS.match(" ".join(words)) is not None or _waits(words)


def _waits(words: Sequence[str]) -> bool:
    program = words[0].rpartition("/")[2] if words else ""
    if program == "sleep":
        return len(words) == 2 and (words[1] in ("inf", "infinity") or _lasts_a_day(words[1]))
    return program == "tail" and words[-1] == "/dev/null" and any(word in ("-f", "-F") for word in words[1:-1])


def _lasts_a_day(duration: str) -> bool:
    found = _DURATION.fullmatch(duration)
    return found is not None and int(found[1]) * _SECONDS[found[2]] >= _DAY
