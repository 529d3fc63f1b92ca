"""Typographic quotation marks in commands and variables."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern

_QUOTES = {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "‚": "'"}
_QUOTE = lazy_pattern(f"[{''.join(_QUOTES)}]")
# An apostrophe between letters is one of a sentence.
_APOSTROPHE = lazy_pattern(r"(?<=[^\W\d_])’(?=[^\W\d_])")
# Chinese and Japanese text has these quotation marks of its own: kana, ideographs, hangul, full-width forms.
_EAST_ASIAN = lazy_pattern("[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


@rule("container", WARNING, fields=("args", "command", "env"))
def curly_quote(container: Container) -> Iterator[Violation]:
    """A typographic quotation mark, such as `“`, in a command, an argument or the value of a variable.

    Chat tools and word processors replace straight quotation marks when text is pasted. Neither YAML nor a shell nor a
    program takes them for quotation marks, so they become a part of the value.

    Write straight quotation marks, `"` or `'`. Chinese, Japanese and Korean text is not reported.
    """
    if container.search_text.isascii():
        return
    # A name with such a mark is an error of its own.
    for node in (*container.command_line, *(entry.get("value") for _, entry in container.env)):
        found = _find_quote(node)
        if found:
            message = (
                f"`{found}` is a typographic quotation mark and becomes part of the value; write `{_QUOTES[found]}`"
            )
            yield Violation(node, message)


def _find_quote(node: Node) -> str:
    """The first typographic quotation mark of a text; empty if it has none, or if its language has them."""
    text = as_text(node)
    if text.isascii() or _EAST_ASIAN.search(text):
        return ""
    found = _QUOTE.search(_APOSTROPHE.sub("", text))
    return found[0] if found else ""
