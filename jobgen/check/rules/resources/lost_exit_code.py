"""Exit codes that a pipe hides."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Container
from jobgen.k8s.shell_script import Pipeline, find_script, split_pipelines, split_words
from jobgen.model.lazy_re import lazy_pattern

_KEEPS_CODE = lazy_pattern(r"pipefail|PIPESTATUS|pipestatus|mispipe")
_PROGRAM = lazy_pattern(
    r"(?:\S*/)?(python[\d.]*|torchrun|accelerate|deepspeed|mpirun|mpiexec|horovodrun|\w[\w.-]*\.(?:sh|py))"
)
# Commands after the pipeline whose own exit codes say nothing about it.
_HARMLESS = frozenset(("", "echo", "printf", "date", "ls", "true", "wait", "sync", "fi", "done", "esac", "}", "exit"))


@rule("container", WARNING, fields=("command", "args"))
def lost_exit_code(container: Container) -> Iterator[Violation]:
    """A script whose training command is piped into `tee`, without `pipefail`.

    A pipeline has the exit code of its last command. `tee` succeeds even if the training failed, so the job is
    reported as complete, and nothing restarts it.

    Write `set -o pipefail` before it, and start the script with `bash`: not every `sh` has the option.
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
    program = _find_program(split_pipelines(script.text))
    if program:
        message = f"the exit code of `{program}` is lost: `tee` succeeds even if `{program}` fails"
        fix = "write `set -o pipefail` before it"
        if script.shell not in ("bash", "zsh", "ksh"):
            fix += f", and start the script with `bash` instead of `{script.shell}`"
        yield Violation(script.node, f"{message}, and so does the job; {fix}")


def _find_program(pipelines: tuple[Pipeline, ...]) -> str:
    """Return the program whose exit code would be that of the script if it were not piped into `tee`; "" if none."""
    for before, pipeline in zip(reversed((None, *pipelines[:-1])), reversed(pipelines), strict=True):
        words = [split_words(command) for command in pipeline.commands]
        names = [each[0] if each else "" for each in words]
        if len(names) > 1 and names[-1].rpartition("/")[2] == "tee":
            found = next((match for word in words[0] if (match := _PROGRAM.fullmatch(word))), None)
            return found[1] if found else ""
        # What follows `||` runs only if `tee` fails.
        if names[0] not in _HARMLESS and not (before and before.end == "||"):
            return ""
    return ""
