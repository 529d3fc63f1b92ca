"""Words for the source of a variable that are not fields: `{secret: hub, key: token}` means a `secretKeyRef`."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import untraced, value_of
from jobgen.model.finding import FixStep, Problem
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import find_key
from jobgen.yamlio.write import to_inline_yaml

_WORDS = {
    "secret": "secretKeyRef",
    "secretName": "secretKeyRef",
    "secretRef": "secretKeyRef",
    "configMap": "configMapKeyRef",
    "configMapName": "configMapKeyRef",
    "configMapRef": "configMapKeyRef",
    "config": "configMapKeyRef",
}
_NAMES = frozenset(("name", "key"))
_FIELDS = frozenset("name key optional fieldPath apiVersion resource containerName divisor path volumeName".split())
"""The fields of references."""
_REFERENCES = frozenset("configMapKeyRef fieldRef fileKeyRef resourceFieldRef secretKeyRef".split())


def name_source(variable: str, source: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Report a source that has a word of its own, and return what it means; another source stays as it is."""
    if variable in _REFERENCES or variable == "valueFrom":
        message = Sentence("`{}` is a source, and not the name of a variable; put it below the name", variable)
        problems.append(Problem("unknown-field", message, variable))
        return {str(variable): source}
    if source.keys() == _NAMES and all(isinstance(value_of(each), str) for each in source.values()):
        meant = to_inline_yaml({"secretKeyRef": untraced(source)})
        message = Sentence("`{}` does not say what has this key; write `{}`, or `configMapKeyRef`", variable, meant)
        problems.append(Problem("unknown-field", message, variable, at=next(iter(source)), cause="other form"))
        return {"secretKeyRef": source}
    if "value" in source and source.keys() <= {"name", "value"}:
        message = Sentence(
            "`value` is not a source of `{}`; write the value behind its name, without `value`", variable
        )
        place = find_key(source, "value")
        problems.append(Problem("unknown-field", message, variable, at=place, cause="other form"))
        return source
    empty = next((key for key in source if key in _REFERENCES and value_of(source[key]) is None), None)
    beside = {key: value for key, value in source.items() if key != empty}
    if empty is not None and beside and _FIELDS.issuperset(beside):
        first = next(iter(beside))
        message = Sentence(
            "`{}` belongs to `{}`, which has no value; indent what belongs to `{}` below it", first, empty, empty
        )
        problems.append(Problem("unknown-field", message, variable, at=first))
        return {empty: beside}
    # A reference may have the name beside it: `{secretKeyRef: hub, key: token}`.
    words = {**_WORDS, **dict.fromkeys(_WORDS.values(), "")}
    word = next((key for key in source if key in words and (words[key] or "key" in source)), None)
    if word is None or not source.keys() <= {word, "key"}:
        return source
    meant, own, key = words[word] or word, source[word], find_key(source, "key")
    steps: list[FixStep] = [FixStep("rename", word, meant)] if meant != word else []
    if isinstance(own, dict):
        reference, is_certain = own, key is None and own.keys() == _NAMES
    else:
        # Without a key, it can be the secret itself.
        reference = {"name": "NAME", "key": "KEY"} if key is None else {"name": own, "key": source[key]}
        is_certain = key is not None and all(isinstance(value_of(each), str) for each in reference.values())
        steps += [FixStep("set", own, untraced(reference)), FixStep("remove", key)]
    if not reference.keys() >= _NAMES or isinstance(own, list):
        return source
    is_field = meant == word
    wrong = f"`{word}` of `{variable}` is not a mapping" if is_field else f"`{word}` is not a source of `{variable}`"
    message = Sentence("{}; write `{}`", wrong, to_inline_yaml({meant: untraced(reference)}))
    # Without the word, nothing is left of an incomplete source.
    found = Problem("unknown-field", message, word, fix_steps=tuple(steps), cause="other form")
    problems.append(found if is_certain else found._replace(node=variable, at=word, fix_steps=()))
    return {meant: reference}
