"""Text that another tool should have replaced, or would replace."""

import re
from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container, Manifest
from jobgen.model.features import find_part
from jobgen.model.finding import FixStep
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence

# Expressions of Helm, Argo Workflows and similar tools; other braces may be meant for the program.
_TEMPLATE = lazy_pattern(
    r"\{\{-?\s*(?:\.|\$\.|include |template |tpl |printf |quote |default "
    r"|(?:workflow|inputs|outputs|steps|tasks|item|pod|retries|values)\b[.}\s])[^}]*\}\}"
)


@rule("container", WARNING, fields=("image", "command", "args", "env"), words=("{{",))
def template_text(container: Container) -> Iterator[Violation]:
    """A template expression, such as `{{ .Values.image }}`, that was not rendered.

    The program receives the braces literally.

    Render the template first, or set in an overlay what differs.

    When to turn it off: programs with templates of their own, such as a prompt in Jinja, get the braces on purpose:
    suppress it on the argument and name the program.
    """
    image = find_at(container.data, "image")
    for place in (*([image] if image is not None else ()), *container.value_places):
        text = as_text(place.node)
        if "{{" in text and (found := _TEMPLATE.search(text)):
            yield Violation(
                place,
                Sentence("`{}` is an unrendered template expression; render it first or use an overlay", found[0]),
            )


_SHELL_VARIABLE = lazy_pattern(r"(?<!\$)\$\{([A-Z_][A-Z0-9_]*)\}")
# Without braces, names in capitals that end with the word; `$1` and `$HOMEdir` may be anything else.
_BARE_VARIABLE = lazy_pattern(r"(?<![\w$\\])\$(?:\{([A-Z_][A-Z0-9_]*)\}|([A-Z][A-Z0-9_]+)(?![\w(]))")
_OF_IMAGES = frozenset("HOME HOSTNAME LANG LOGNAME OLDPWD PATH PWD SHELL TMPDIR USER".split())
_ITSELF = lazy_pattern(r"(?<![\w$\\])\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\}|\(([A-Za-z_]\w*)\))")
_SHELL = lazy_pattern(r"(?:^|[/\s])(?:ba|z|da|k|a|c)?sh\b|\beval\b|\benvsubst\b|\.sh\b|\bsource\b|\bexport\b")

_OF_SLURM = lazy_pattern(r"(?<![\\$])\$\{?(SLURM_[A-Z0-9_]+)\b(?![:+=?-])")
_MAY_BE_SLURM = lazy_pattern(
    r"\bs(?:run|batch|alloc|control)\b|[Ss]lurm|SLURM_\w+=|SLURM_\w+:?[-=+?]|-[nvz] [\"']?\$?\{?SLURM"
)
# Each counts the processes or the nodes of a job from 0.
_RANKS = frozenset(("SLURM_ARRAY_TASK_ID", "SLURM_NODEID", "SLURM_PROCID"))


@rule("container", WARNING, fields=("command", "args", "env"), words=("$",))
def unexpanded_variable(container: Container) -> Iterator[Violation]:
    """A `$NAME` or `${NAME}` in a command without a shell, or a `${NAME}` in the value of an environment variable.

    Kubernetes expands only `$(NAME)`. The program receives the literal text `${NAME}` and, for example, creates a
    directory of that name. In the value of an environment variable, a name that the container does not set is not
    reported: Kubernetes could not expand it, and another tool probably fills it in. A script that reads a variable
    of Slurm, such as `$SLURM_PROCID`, gets an empty text: no Slurm starts the container.

    Write `$(NAME)`, or start a shell: `sh -c`.

    When to turn it off: a program that replaces `${NAME}` itself, as Hydra and OmegaConf do, gets it literally on
    purpose: suppress it on the argument, with the name of the library.
    """
    if "$" not in container.search_text or "${" in container.image:
        # A `${` in the image shows that another tool expands the manifest.
        return
    if container.pod.manifest.cluster.gitops != "flux":
        yield from _check_values(container)
    if not container.command:
        # The entry point of the image may be a shell.
        return
    for index, word in enumerate(container.words):
        if _SHELL.search(word):
            if "$" in container.search_text and "SLURM_" in container.search_text:
                yield from _check_scripts(container)
            return
        if "$" in word:
            yield from _check_word(container, container.word_place(index))


def _check_scripts(container: Container) -> Iterator[Violation]:
    """Report the first variable of Slurm in a script, unless the script can do without it, or Slurm may run there."""
    is_unset = find_part("container.variables.unset")
    if is_unset is None or "envFrom" in container.data or _MAY_BE_SLURM.search(container.search_text + container.image):
        return
    manifest = container.pod.manifest
    is_numbered = manifest.kind_name == "JobSet" or as_text(manifest.spec.get("completionMode")) == "Indexed"
    for at, text in enumerate(container.words):
        found = _OF_SLURM.search(text)
        name = found[1] if found else ""
        if found and is_unset(container, name):
            # Imported late: few commands name variables of Slurm.
            from jobgen.yamlio.inner_text import find_line

            index = "`$JOB_COMPLETION_INDEX`" if is_numbered and name in _RANKS else ""
            message = Sentence("nothing sets `{}` here, because no Slurm starts the container", name)
            advice = Sentence("write {}", index) if index else Sentence("set it in `env`")
            inside = find_line(text, text.count("\n", 0, found.start()) + 1) if "\n" in text else None
            yield Violation(container.word_place(at), Sentence("{}; {}", message, advice), inside=inside)
            return


def _check_word(container: Container, place: At) -> Iterator[Violation]:
    """Check a word of a command; what refers to a variable that nothing sets cannot be written as a reference."""
    word = as_text(place.node)
    if not _BARE_VARIABLE.search(word):
        return
    is_unset = find_part("container.variables.unset")
    names = {next(filter(None, match.groups())) for match in _BARE_VARIABLE.finditer(word)}
    unset = [name for name in sorted(names) if is_unset is not None and is_unset(container, name)]
    if not unset and "envFrom" not in container.data:
        # The variables of an image have no value in `$(NAME)`.
        unset = sorted((names & _OF_IMAGES) - container.variables.keys())
    if not unset:
        yield from _check(place, "without a shell", _BARE_VARIABLE)
        return
    shown = next(match[0] for match in _BARE_VARIABLE.finditer(word) if unset[0] in match.groups())
    message = Sentence(
        "Kubernetes does not expand `{}` without a shell, and the container has no variable `{}`", shown, unset[0]
    )
    yield Violation(
        place, Sentence("{}; set it in `env` and write `$({})`, or start a shell: `[sh, -c, …]`", message, unset[0])
    )


def _check_values(container: Container) -> Iterator[Violation]:
    """Check the values that refer to a variable that Kubernetes could expand: one that is set before them."""
    known: set[str] = set()
    for name, entry in container.env:
        text = as_text(entry.get("value"))
        used = {match[1] for match in _SHELL_VARIABLE.finditer(text)}
        if name not in known and "$" in text and (found := _find_itself(name, text)):
            message = Sentence(
                "Kubernetes does not expand `{}`, so that the value that `{}` has in the image is lost", found, name
            )
            advice = Sentence("write the whole value, or start a shell that runs `export {}=…`", name)
            yield Violation(At(entry, "value"), Sentence("{}; {}", message, advice))
        elif used and (used <= known or "envFrom" in container.data):
            yield from _check(At(entry, "value"), "in a value", _SHELL_VARIABLE)
        elif "$" in text and (below := _find_set_below(text, {*known, name}, container)):
            message = Sentence(
                "Kubernetes does not expand `{}` in a value, and `{}` is set below `{}`", below[0], below[1], name
            )
            yield Violation(
                At(entry, "value"), Sentence("{}; write `$({})`, and `{}` above it", message, below[1], below[1])
            )
        elif "$" in text and " " not in text and known.issuperset(_list_bare(text)):
            yield from _check(At(entry, "value"), "in a value", _BARE_VARIABLE)
        known.add(name)


def _list_bare(text: str) -> Iterator[str]:
    """Yield the variables that a text names with or without braces."""
    return (match[1] or match[2] for match in _BARE_VARIABLE.finditer(text))


def _find_set_below(text: str, known: set[str], container: Container) -> tuple[str, str] | None:
    """Return a reference in braces to a variable that the container sets only later, and its name."""
    found = ((match[0], match[1]) for match in _SHELL_VARIABLE.finditer(text))
    return next((each for each in found if each[1] not in known and each[1] in container.variables), None)


def _find_itself(name: str, text: str) -> str:
    """Return how the value of a variable refers to itself to add something: `$PATH:/opt/bin`; empty if it does not."""
    found = _ITSELF.search(text)
    if found is None or name not in found.groups() or found[0] == text:
        return ""
    # In braces, another tool may fill it in.
    return found[0] if found[1] or name.endswith("PATH") else ""


def _check(place: At, where: str, pattern: re.Pattern[str]) -> Iterator[Violation]:
    text = as_text(place.node)
    found = pattern.search(text) if "$" in text else None
    if found:
        name = next(filter(None, found.groups()))
        # `($NAME)` for `$(NAME)`.
        shown = f"({found[0]})" if f"(${name})" in text else found[0]
        message = Sentence("Kubernetes does not expand `{}` {}; write `$({})`", shown, where, name)
        plain = text.replace(f"(${name})", f"${name}")
        meant = pattern.sub(lambda match: f"$({next(filter(None, match.groups()))})", plain)
        yield Violation(place, message, fix_steps=(FixStep("set", place, meant),), safe=False)


_SUBSTITUTE = "kustomize.toolkit.fluxcd.io/substitute"
_FLUX_VARIABLE = lazy_pattern(r"(?<!\$)\$\{([A-Za-z_]\w*)[^}]*\}")


@rule("container", WARNING, fields=("command", "args"), words=("$",), gitops=("flux",))
def flux_substitution(container: Container) -> Iterator[Violation]:
    """A `${NAME}` in a command of a job that Flux applies.

    With post-build substitution, Flux replaces `${NAME}` before the script sees it. It fails for a variable that it
    does not know, or, before 2.9, inserts an empty string.

    Set the annotation `kustomize.toolkit.fluxcd.io/substitute: disabled`, or write `$${NAME}`.

    When to turn it off: if `postBuild` is meant to fill in this variable, suppress the finding on the argument and
    name the source of the value; from Flux 2.9 on, a missing value is then an error and not an empty text.
    """
    manifest = container.pod.manifest
    if "${" not in container.search_text or _is_substitution_disabled(manifest):
        return
    if "${" in container.image:
        # The image relies on substitution, so the command may rely on it, too.
        return
    for index, word in enumerate(container.words):
        if "${" in word and (found := _FLUX_VARIABLE.search(word)):
            message = Sentence("Flux substitutes its own variable for `{}`", found[0])
            yield Violation(
                container.word_place(index), Sentence("{}; set the annotation `{}: disabled`", message, _SUBSTITUTE)
            )
            return


def _is_substitution_disabled(manifest: Manifest) -> bool:
    values = (manifest.annotations.get(_SUBSTITUTE), manifest.labels.get(_SUBSTITUTE))
    return any(as_text(value).lower() == "disabled" for value in values)
