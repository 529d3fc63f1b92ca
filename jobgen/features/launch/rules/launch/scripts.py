"""Shell scripts that no shell runs as they were meant."""

from collections.abc import Iterator
from functools import partial

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.objects import Container
from jobgen.model.sentence import Sentence


@rule("container", ERROR, fields=("command", "args"))
def script_syntax(container: Container) -> Iterator[Violation]:
    r"""A shell script with a quotation mark that is not closed, an `if` without `fi`, or a line that ends too early.

    The shell refuses the script, and the container fails at once, or after the commands before the fault. A space
    behind the `\` at the end of a line ends the command there: the options in the next line are run as a program.
    It is a warning if other commands can follow, or if a command can end the script before. So are names that are
    nearly those of a program, tests without their brackets, commands behind `exec`, which never run, a script that
    ends while a command runs in the background, commands that write to a read-only volume, and files
    of a ConfigMap without a mode to be executed with.
    Scripts of `sh -c` are checked, code of `python -c`, and scripts in ConfigMaps of the repository that a command
    names.

    Syntax of Bash is also a warning in a script that `sh` runs: dash, the `sh` of Debian and Ubuntu, has no `[[`,
    `source`, arrays and `pipefail`. It is not reported if the name of the image says that it has another `sh`.

    Close the quotation mark or the block at the place that is named. `bash -n FILE` finds most of these faults.

    When to turn it off: for an image whose `sh` is another shell with these features, start the script with `bash`
    by name: that is true for each image that has it, and the warning about dash is gone.
    """
    text = container.search_text
    program = container.words[0] if container.words else ""
    if program[:1] == "/" and "bin/" not in program[:9] and not _is_read(container):
        # Imported late: few commands are paths of files in volumes.
        from jobgen.features.launch.modes import check_mode
        from jobgen.features.launch.report import report_mode

        yield from (report_mode(fault) for fault in check_mode(container))
    if "\n-c\n" in text and "python" in program:
        # Imported late: few commands have the text of a program.
        from jobgen.features.launch.script_files import find_code_fault

        found = find_code_fault(container)
        if found is not None:
            place, (fault, where) = found
            yield Violation(place, Sentence("in line {} of the code, {}", where.line, fault), at=place, inside=where)
    if "sh" not in text:
        return
    # Few containers have scripts.
    from jobgen.features.launch.scripts import finish_mistake, list_mistakes
    from jobgen.yamlio.inner_text import find_line

    for script, mistake in list_mistakes(container):
        severity = ERROR if mistake.is_error else WARNING
        related = ((script.item, "the file is read here"),) if script.path else ()
        at, inside = (None, None) if script.path else (script.item, find_line(script.text, mistake.line))
        is_finished = not (script.in_spec[0] or script.is_comment or script.path or mistake.fault)
        finish = None if is_finished else partial(finish_mistake, script, mistake)
        message = Sentence("{}{}", script.name_line(mistake.line), mistake.message)
        yield Violation(script.item, message, related, severity, at=at, inside=inside, finish=finish)


def _is_read(container: Container) -> bool:
    """Return True for a container whose command the rule `launch-refused` reads."""
    pod = container.pod
    return container is pod.main_container or (pod.manifest.kind is None and container in pod.containers)
