"""Typographic quotation marks that stand where straight ones were meant: around a value, an argument, a word of JSON.

Inside of straight quotation marks, and in the middle of a sentence, they are text.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.model.lazy_re import lazy_pattern

STRAIGHT = {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "‚": "'"}
_ANY = lazy_pattern(f"[{''.join(STRAIGHT)}]")
_NAME = lazy_pattern(r"[-\w.]{1,100}=(?=.)")
_JSON = lazy_pattern(rf"[\[{{,:]\s{{0,9}}([{''.join(STRAIGHT)}])")
# A word of a script that begins with such a mark, also after `=`; another one ends it.
_WORD = lazy_pattern(r"(?:^|(?<=[\s=(\[]))([“„‘])[^\n“”„‘’]{0,400}[”’](?=[\s;)\]|&]|$)")
_STRAIGHT = lazy_pattern(r""""(?:[^"\\]|\\[\s\S])*"|'[^']*'""")
_STRAIGHT_OR_COMMENT = lazy_pattern(r""""(?:[^"\\]|\\[\s\S])*"|'[^']*'|(?<!\S)#[^\n]*|\\\n""")
_SHOWN = lazy_pattern(r"\b(?:echo|printf|log|warn|die|fail)\b[^;&|\n]*")
_HEREDOC = lazy_pattern(r"(?<!<)<<(?!<)-?\s*(?:([\"'])(\w+)\1|(\w+))")
# An apostrophe between letters is one of a sentence.
_APOSTROPHE = lazy_pattern(r"(?<=[^\W\d_])’(?=[^\W\d_])")


def find_around(text: str, *, is_quoted: bool) -> str:
    """Return the first mark of a value in the place of quotation marks; empty if all are text."""
    name = _NAME.match(text)
    value = _APOSTROPHE.sub("", text[name.end() :] if name else text).strip()
    if value[:1] in ("[", "{"):
        found = _JSON.search(_STRAIGHT.sub("0", value))
        return found[1] if found else ""
    marks = _ANY.findall(value)
    if is_quoted or not marks:
        return ""
    is_opened, is_closed = value[0] in STRAIGHT, value[-1] in STRAIGHT
    if is_opened and is_closed:
        # In `“a” or “b”`, they belong to the words.
        return marks[0] if len(marks) <= 2 else ""
    # A value that was split at its comma has one of them.
    return marks[0] if len(marks) == 1 and (is_opened or is_closed) else ""


def find_in_script(text: str) -> str:
    """Return the first mark around a word of a shell script; empty if all are text, in messages or comments."""
    code = "\n".join(_leave_out_documents(_APOSTROPHE.sub("", text)))
    code = _SHOWN.sub("", _STRAIGHT_OR_COMMENT.sub(" ", code))
    found = next((match for line in code.split("\n") for match in _WORD.finditer(line)), None)
    return found[1] if found else ""


def _leave_out_documents(text: str) -> Iterator[str]:
    """Yield the lines of a script that are not the text of a here-document."""
    end = ""
    for line in text.split("\n"):
        if end:
            end = "" if line.strip() == end else end
            continue
        yield line
        found = _HEREDOC.search(line)
        end = (found[2] or found[3]) if found else ""
