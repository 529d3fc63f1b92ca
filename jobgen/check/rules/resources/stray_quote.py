"""A quotation mark without its partner in a command or a variable."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container
from jobgen.model.lazy_re import lazy_pattern

# One quotation mark, at the start or at the end of a word. `$'…'` and JSON have more than one.
_STRAY = lazy_pattern(r"""(?:["'][^"'\s]+|[^"'\s\\]+["'])\Z""")


@rule("container", WARNING, fields=("args", "command", "env"))
def stray_quote(container: Container) -> Iterator[Violation]:
    """A single quotation mark at the start or the end of an argument or of the value of a variable, such as `10"`.

    YAML reads a quotation mark without a partner as a part of the text, and the program gets it: `10"` is not a number.

    Write both quotation marks, or none.
    """
    if '"' not in container.search_text and "'" not in container.search_text:
        return
    for node in (*container.command_line, *(entry.get("value") for _, entry in container.env)):
        text = as_text(node)
        if _STRAY.match(text):
            bare = text.strip("\"'")
            yield Violation(node, f'`{text}` has one quotation mark, which becomes part of the value; write `"{bare}"`')
