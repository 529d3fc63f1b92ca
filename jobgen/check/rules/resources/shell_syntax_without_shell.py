"""Shell syntax without a shell."""

from collections.abc import Iterator, Sequence

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_text
from jobgen.k8s.objects import Container
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern

# `;` is not one of them: `find -exec` takes it as an argument.
_OPERATORS = frozenset(("&&", "||", "|", ">", ">>", "<", "2>&1", "&>"))
_BUILTINS = frozenset(("cd", "source", ".", "export", "set", "ulimit", "umask", "exec", "alias", "unset", "trap"))
_SHELL = lazy_pattern(r"(?:^|[/\s])(?:ba|z|da|k|a|c)?sh\b|\beval\b|\.sh\b")
_SCRIPT_OPTION = lazy_pattern(r"-[a-z]*c\Z")


@rule("container", WARNING, fields=("command",))
def shell_syntax_without_shell(container: Container) -> Iterator[Violation]:
    """`&&`, `|`, `cd` and other words of a shell in a command that no shell reads.

    Kubernetes starts the program directly. `cd` is not a program, so the container never starts; `&&` and what follows
    become arguments of the first program. After `sh -c`, only one item is the script.

    Write the whole script as one item after `sh -c`, or use `workingDir` instead of `cd`.
    """
    words = container.command_line
    first = as_text(as_list(container.data.get("command"))[0]) if as_list(container.data.get("command")) else ""
    if first in _BUILTINS:
        advice = "use `workingDir`" if first == "cd" else "set variables in `env`" if first == "export" else ""
        also = f", or {advice}" if advice else ""
        yield Violation(words[0], f"`{first}` is shell syntax, not a program; start a shell with `sh -c`{also}")
        return
    if not first:
        # The entry point of the image may be a shell.
        return
    for index, word in enumerate(words):
        text = as_text(word)
        if text in _OPERATORS and not _may_be_read(words, index):
            message = (
                f"`{text}` is an argument here, because no shell reads it; write the script as one item after `sh -c`"
            )
            yield Violation(word, message)
            return


def _may_be_read(words: Sequence[Node], index: int) -> bool:
    """Return True if a shell before this word may read it: not if an item of `-c` stands between them."""
    shells = [at for at in range(index) if _SHELL.search(as_text(words[at]))]
    if not shells:
        return False
    after = [at for at in range(shells[0], index) if _SCRIPT_OPTION.match(as_text(words[at]))]
    # `sh -c cd /app && …` in items: the script is `cd` alone.
    return not after or index - after[0] == 1
