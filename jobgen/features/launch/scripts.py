"""The shell scripts of a container: those of `sh -c`, and files of ConfigMaps that its command names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from jobgen.features.convert.operators.created import as_fields, as_items
from jobgen.features.launch.mounted_files import MountedFiles, to_text
from jobgen.features.launch.shell.mistakes import Mistake, find_mistakes
from jobgen.k8s.objects import Container
from jobgen.k8s.shell.commands import find_script
from jobgen.model.data import TracedScalar, location_of, untraced
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import Place
from jobgen.model.sentence import Sentence, replace_words
from jobgen.yamlio.inner_text import find_line

_SHELLS = frozenset(("sh", "bash", "ash", "dash"))
_POSIX = frozenset(("sh", "dash"))
_PATH = lazy_pattern(r"(?<![\w$}.-])/[\w.-][\w./-]*")
_SHEBANG = lazy_pattern(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(?:\S*/)?((?:ba|da|a)?sh)\b")
# A command without these signs has nothing that a shell could refuse.
_SIGNS = lazy_pattern(r"['\"`(){}\\<;\n]|[|&]\s*\Z|\A\s*[|&]|\b(?:if|then|fi|do|done|case|esac)\b")

# Words that mean something else in a shell than in a file of variables, in Python or in a list of requirements.
_MAY_SLIP = lazy_pattern(
    r"(?m)^\s*(?:(?:export|readonly|declare|local)\s+(?:\$|\w+\s+=|\w+=[ \t]+[\w\"'$/.]|\w+:\s|\w+=[^\s,]*,\s)|"
    r"setenv\s|set\s+(?:\w+=|(?:-[a-np-z]+\s+)*pipefail)|\$\w+=|\w+=[ \t]+[\d\"'])|\A\s*(?:import|from)\s|^\s*//|"
    r"\bcd[ \t]+[^\s;&|]+[ \t]+[A-Za-z]|(?:^|[;&])\s*(?:srun|conda\s+activate)\b|"
    r"(?:^|[;&|])\s*(?!(?:accelerate|bash|case|cat|deepspeed|mpirun|python[\d.]*|torchrun|touch|trap|true)\b)"
    r"(?:py|pt|to|ot|tr|ac|ca|de|ed|mp|pm|ba|bs|ho)[a-z]{2,}[ \t]+[\w./-]|"
    r"\\n[ \t]*[a-z]|\bpip3?\s+install\s.*\w[><]|\[\s+\S+=\S+\s+\]|\s[–—−]|\$\{\w+(?:[\s\"'/;]|\Z)|\$\(\((?!.*\)\))"
)
_MAY_BE_BASH = lazy_pattern(
    r"\[\[|\bsource\s|\w\]?\+?=\(|\+=|\]=|\bpipefail\b|\bfunction\s|\(\(|<<<|[<>]\(|&>|==|\$\{!|"
    r"\$\{\w+[\[/^,]|\$\{\w+:\s*[\d$-]|\b(?:declare|typeset|shopt|mapfile|readarray|pushd|popd)\s"
)
_COMMENT = lazy_pattern(r"(?:[ \t]*(?:#[^\n]*)?(?:\n|\Z))+")
_WRITES = lazy_pattern(
    r"(?:>\s*|\b(?:chmod|chown|cp|install|ln|mkdir|mv|rsync|sed|tee|touch|truncate)\s[^\n;&|]*)/(?!(?:dev|proc|tmp)\b)\w"
)


class Script(NamedTuple):
    """A shell script: its text, the item of the command that has it or names it, and the path of its file."""

    text: str
    item: Place
    path: str = ""
    locate: Callable[[], Any] | None = None
    """Returns the text of a file with its location, which is in another object."""
    shell: str = ""
    """The shell that runs it."""
    in_spec: tuple[str, str] = ("", "")
    """Words of a message about it, and what it says instead if the job is rendered from a spec."""

    @property
    def is_comment(self) -> bool:
        """Return True for a script of a command that has nothing but comments."""
        return self.text[:1] == "#" and not self.path and _COMMENT.fullmatch(self.text) is not None

    def name_line(self, line: int) -> str:
        """Return where a line is, for a message; empty if the script has only one."""
        if "\n" not in self.text.strip():
            return ""
        return f"in line {line} of {f'`{self.path}`' if self.path else 'the script'}, "


def list_mistakes(container: Container) -> Iterator[tuple[Script, Mistake]]:
    """Yield what is wrong with the scripts of a container."""
    if "${" in container.image:
        # Another tool expands the manifest, and so the script.
        return
    volumes = [volume for volume in container.pod.volumes if "configMap" in volume or "projected" in volume]
    has_files = volumes and container.volume_mounts
    for script in _list_scripts(container, has_files=has_files != []):
        text = script.text
        if script.is_comment:
            yield script, Mistake(1, _COMMENTED, is_error=False)
            continue
        if _SIGNS.search(text):
            for mistake in find_mistakes(text, is_whole=not script.path):
                yield script, mistake
        is_posix = script.shell in _POSIX and _MAY_BE_BASH.search(text) is not None
        slips = _list_slips(text, container) if _MAY_SLIP.search(text) else ()
        for mistake in (*slips, *(_find_bash_syntax(script, container.image) if is_posix else ())):
            yield script, mistake
        if has_files and not script.path and (text[:1] == "/" or "\n/" in text or "&& /" in text or "; /" in text):
            yield from _list_modes(container)
        if _WRITES.search(text) and container.volume_mounts:
            # Imported late: few scripts write to their volumes.
            from jobgen.features.launch.writes import find_writes

            for mistake in find_writes(container, text):
                yield script, mistake


_COMMENTED = "the whole script is a comment, so that nothing runs; write the command in a line of its own"


def finish_mistake(script: Script, mistake: Mistake, problem: Problem, is_spec: bool) -> Problem:
    """Return a problem of a script with what is known of its file: that YAML has joined its lines, or of a spec."""
    if script.locate is not None:
        text = script.locate()
        inside = find_line(script.text, mistake.line) if type(text) is TracedScalar else None
        problem = problem._replace(at=text if inside else None, inside=inside)
    if is_spec and script.in_spec[0]:
        return problem._replace(sentence=replace_words(problem.sentence, *script.in_spec))
    at = location_of(problem.node)
    if mistake.fault and at is not None and at.end_line > at.line + 1 and "\n" not in script.text.strip():
        return problem._replace(
            sentence=Sentence("{}, because `>` joins the lines; write `|`, or remove each `\\`", mistake.fault)
        )
    if not script.is_comment or at is None or at.end_line <= at.line + 2 or "\n" in script.text.strip():
        return problem
    message = "the whole script is a comment, because YAML joins its lines, so that nothing runs"
    return problem._replace(sentence=Sentence("{}; remove the comment, or write `|` instead of `>`", message))


def _list_modes(container: Container) -> Iterator[tuple[Script, Mistake]]:
    # Imported late: few containers have files of ConfigMaps.
    from jobgen.features.launch.modes import check_commands

    for started, line, fault in check_commands(container):
        yield Script(started.text, started.place, in_spec=fault.in_spec), Mistake(line, fault.message, fault.is_error)


def _list_slips(text: str, container: Container | None = None) -> Iterator[Mistake]:
    # Imported late: few scripts have such words.
    from jobgen.features.launch.script_slips import find_activation, find_slips

    yield from find_slips(text)
    if container is not None and "BASH_ENV" not in container.variables:
        yield from find_activation(text, container.words)


def _find_bash_syntax(script: Script, image: str) -> Iterator[Mistake]:
    # Imported late: few scripts of `sh` are written for Bash.
    from jobgen.features.launch.shell.bash_syntax import find_bash_syntax

    advice = "start the script with `bash -c`" if not script.path else f"start it with `bash {script.path}`"
    yield from find_bash_syntax(script.text, image, advice)


def list_text_mistakes(text: str) -> Iterator[Mistake]:
    """Yield what is wrong with the text of a script in a file."""
    if _SIGNS.search(text):
        yield from find_mistakes(text)
    if _MAY_SLIP.search(text):
        yield from _list_slips(text)


def _list_scripts(container: Container, *, has_files: bool) -> Iterator[Script]:
    own = find_script(container)
    if own is not None and own.shell in _SHELLS:
        # Kubernetes makes one `$` of two.
        yield Script(own.text.replace("$$", "$"), own.place, shell=own.shell)
    if has_files:
        yield from _list_files(container)


def _list_files(container: Container) -> Iterator[Script]:
    """Yield the scripts in ConfigMaps whose paths the command names."""
    manifest = container.pod.manifest
    mounts, volumes = (
        [*map(as_fields, as_items(untraced(node)))]
        for node in (container.data.get("volumeMounts"), container.pod.spec.get("volumes"))
    )
    files = MountedFiles(mounts, volumes, partial(manifest.find_config, manifest.namespace))
    seen: set[str] = set()
    before = ""
    for index, text in enumerate(container.words):
        for path in _PATH.findall(text) if "/" in text else ():
            if path in seen:
                continue
            seen.add(path)
            script = to_text(files.find_text(path))
            if script is None:
                continue
            is_run = before.rpartition("/")[2] in _SHELLS and text == path
            if _SHEBANG.match(script) or (not script.startswith("#!") and (is_run or path.endswith(".sh"))):
                yield Script(
                    script,
                    container.word_place(index),
                    path,
                    partial(files.locate_text, path),
                    _find_shell(script, path, text, before),
                )
        before = text


def _find_shell(script: str, path: str, item: str, before: str) -> str:
    """Return the shell that runs a file: the one before its path in the command, or else that of its first line."""
    if item == path and (name := before.rpartition("/")[2]) in _SHELLS:
        return name
    at = item.find(path)
    words = [word for word in item[:at].rpartition("\n")[2].split() if word[:1] != "-"]
    if words and (name := words[-1].rpartition("/")[2]) in (*_SHELLS, "source", "."):
        return name
    found = _SHEBANG.match(script)
    return found[1] if found else ""
