"""Characters that look like those of YAML and are others: what input methods, word processors and chats write."""

from __future__ import annotations

from jobgen.model.lazy_re import lazy_pattern

_FULL_WIDTH = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_MARKS = {
    **dict.fromkeys("，、﹐", ","),
    **dict.fromkeys("。﹒", "."),
    **dict.fromkeys("：﹕∶", ":"),
    **dict.fromkeys("【［〔", "["),
    **dict.fromkeys("】］〕", "]"),
    **dict.fromkeys("“”„‟«»「」『』″＂", '"'),
    **dict.fromkeys("‘’‚‛′´＇", "'"),
    **dict.fromkeys("‐‑‒–—―−－﹣", "-"),
}
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_NOTHING = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
# Cyrillic and Greek letters that no font distinguishes from Latin ones.
_LETTERS = dict(zip("аеорсухіѕјАВЕКМНОРСТХІЅЈοΟ", "aeopcyxisjABEKMHOPCTXISJoO", strict=True))
_ASCII = {
    **_FULL_WIDTH,
    **_MARKS,
    **dict.fromkeys(_SPACES, " "),
    **dict.fromkeys(_NOTHING, ""),
    **_LETTERS,
}
_TABLE = str.maketrans(_ASCII)
_LOOK_ALIKE = lazy_pattern(f"[{''.join(_ASCII)}]")
# Kana, ideographs and hangul: between two of them, a full-width mark is text.
_EAST_ASIAN = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_IN_TEXT = lazy_pattern(f"(?<=[{_EAST_ASIAN}])[^ -~](?=[{_EAST_ASIAN}])")


def find_look_alike(text: str) -> str:
    """Return the first character of a text that looks like one of ASCII; empty if it has none."""
    if text.isascii():
        return ""
    found = _LOOK_ALIKE.search(_IN_TEXT.sub("x", text))
    return found[0] if found else ""


def count_look_alikes(text: str) -> int:
    """Return how many characters of a text look like one of ASCII."""
    return 0 if text.isascii() else len(_LOOK_ALIKE.findall(_IN_TEXT.sub("x", text)))


def to_ascii(text: str) -> str:
    """Return a text with the characters of ASCII that its look-alikes are taken for."""
    if text.isascii():
        return text
    kept = {at.start() for at in _IN_TEXT.finditer(text)}
    return "".join(each if at in kept else each.translate(_TABLE) for at, each in enumerate(text))


def describe_look_alike(character: str) -> str:
    """Say what a character is: a full-width `:`, or a mark that is not `,`."""
    meant = _ASCII[character]
    if character in _FULL_WIDTH:
        return f"`{character}`, a full-width `{meant}`"
    shown = character if character.isprintable() and not character.isspace() else f"U+{ord(character):04X}"
    if not meant:
        return f"`{shown}`, which is invisible"
    letter = "the letter " if meant.isalpha() else ""
    return f"`{shown}`, which is not {'a space' if meant == ' ' else f'{letter}`{meant}`'}"
