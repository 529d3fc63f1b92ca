"""How a value of a wrong type, or a field of a wrong name, is written: in one line, at the end of a message."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from jobgen.k8s.secrets import OF_SECRETS
from jobgen.k8s.secrets_in_text import find_secrets_in_text
from jobgen.model.data import Node, Plain, untraced, value_of
from jobgen.model.duration import read_seconds
from jobgen.model.finding import pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.quantity import canonicalize_quantity
from jobgen.model.suggest import list_alternatives
from jobgen.yamlio.read.scalars import resolve
from jobgen.yamlio.write import to_inline_yaml

_MAX_NAME = 253
_MAX_FORM = 100
_MAX_LISTED = 8
_PLAIN_TEXT = lazy_pattern(r"(?!(?i:y|n|yes|no|on|off|true|false|null)$)[A-Za-z_/][A-Za-z0-9_@./-]{0,62}")
"""Text that YAML reads as it is written, without quotes."""
# Only a shell understands these, or an assignment before the program.
_SHELL_SYNTAX = lazy_pattern(r"""["'\\$|&;<>()`*?#~%!\[\]{},]|\A[^\s-]\S*=""")
_SHELL_VARIABLE = lazy_pattern(
    r"\$(?:\{(?!(?:HOME|HOSTNAME|PATH|PWD|USER)\})([A-Za-z_]\w*)\}|(?!(?:HOME|HOSTNAME|PATH|PWD|USER)\b)([A-Za-z_]\w*))"
)
"""A variable that Kubernetes expands too, written as `$(NAME)`, if a shell does not set it itself."""
_REFERENCE = lazy_pattern(r"\$\([A-Za-z_]\w*\)")
_ONLY_SHELL = lazy_pattern(r"""[\\$|&;<>()`*?#~!\[\]{}]|\A[^\s-]\S*=""")
# Words that only a shell knows.
_SHELL_WORD = lazy_pattern(r"(?:set [-+]\w|cd |export |source |#!|if |for |while )")
_CLAIM = lazy_pattern(r"([a-z0-9.-]{1,253}):(/\S*)\Z")
_BIND = lazy_pattern(r"(/[\w./-]+|[a-z0-9][a-z0-9.-]*):(/[\w./-]*)(?::(ro|rw|z|Z))?")
"""A folder of the machine, or a volume, and where it is mounted, as Docker reads it."""
_ENTRY = lazy_pattern(r"([A-Z][A-Z0-9_]{0,40})=")
_CAPITALS = lazy_pattern("[A-Z][A-Z0-9_]+")
_CLAIM_NAME = lazy_pattern(r"[a-z0-9](?:[a-z0-9.-]{0,60}[a-z0-9])?")
_SAME_VALUE = ("name", "value", "image", "repository", "size", "sizeLimit", "limit", "request", "path", "secretName")
"""The only entry of a mapping with such a name is the value itself."""
_OPTION = lazy_pattern(r"--?[A-Za-z][\w.-]*")
_FILE = lazy_pattern(r"[\w.-]+\.[A-Za-z]{2,10}")
_PATH = lazy_pattern(r"(?:\.{0,2}/)?(?:[\w.-]+/){0,8}[\w.-]+\.[A-Za-z]{2,10}")
_IMAGE = lazy_pattern(r"[a-z0-9][\w.@-]*[/:][\w./:@-]*\w")
_SOURCES = {
    "configMap": "name",
    "emptyDir": "sizeLimit",
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
    "secret": "secretName",
}
"""The field of a volume's source that is meant by a text in place of the source."""
_LISTS = {"requiredDuringSchedulingIgnoredDuringExecution": "nodeSelectorTerms", "selector": "matchExpressions"}
"""The field of a mapping that is meant by a list in its place."""
_TAGGED = lazy_pattern(r"[a-z0-9][\w./:-]*:[\w][\w.-]*")
_EXPORT = lazy_pattern(r"([A-Za-z0-9.-]{1,253}):(/[\w./-]{0,200})")
_PATTERN = lazy_pattern(r"[\w./-]{0,100}\*[\w./*-]{0,100}")
"""Paths or names, with a star for others."""
_RANGE = lazy_pattern(r"[0-9]{1,6} ?(?:-|:|\.\.|to) ?[0-9]{1,6}")
_WORD = lazy_pattern(r"[A-Za-z][\w.-]*")
_LABEL = lazy_pattern(r" ?([\w./-]+)(?:=|: ?)([\w.-]*)")
_SETTING = lazy_pattern(r"([A-Za-z][\w./-]*)=(\S+)")
_TAINT = lazy_pattern(r"([\w./-]+)(?:=([\w.-]*))?:(NoSchedule|PreferNoSchedule|NoExecute)")
"""A taint as kubectl writes it."""
_ENTRY_WITHOUT_SPACE = lazy_pattern(r"([A-Za-z_][\w./-]*):([^\s:/]\S*)")


_CLOSED_VALUES = {
    "cleanPodPolicy": ("None", "Running", "All"),
    "completionMode": ("Indexed", "NonIndexed"),
    "concurrencyPolicy": ("Allow", "Forbid", "Replace"),
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "preemptionPolicy": ("PreemptLowerPriority", "Never"),
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
}
"""The values of fields whose types say only that they are text."""


def show_closed_value(name: str, value: Plain) -> str:
    """Return `; write …` with what a field of few values has for `no` or a number; empty if it takes any text."""
    values = _CLOSED_VALUES.get(name, ())
    meant = [each for each in ("Never", "None") if value is False and each in values] or values
    return f"; write {list_alternatives(f'`{each}`' for each in meant[:_MAX_LISTED])}" if values else ""


def show_right_item(items: Sequence[Plain], index: int) -> str:
    """Return `; write …` with the item of a command that YAML reads as a mapping, for its colon and space, or null."""
    item = items[index]
    if item is None:
        return '; remove it, or write `""` for an empty argument'
    entry = next(iter(item.items())) if isinstance(item, dict) and len(item) == 1 else None
    if entry is None or isinstance(entry[1], (dict, list)):
        return ""
    key, value = str(entry[0]), "" if entry[1] is None else _spell(entry[1])
    # A variable of a matrix looks like a placeholder in a message.
    value = "…" if "${{" in value else value
    is_option = _OPTION.fullmatch(key) is not None
    shown = f"{key}={value}" if is_option else f"{key}: {value}"
    if len(shown) > _MAX_FORM or "`" in shown or "\n" in shown or find_secrets_in_text(shown):
        return ""
    if is_option and not value:
        return f"; write `{key}`, without the colon"
    return f"; write `{shown if '…' in shown else to_inline_yaml(shown)}`{', or two items' if is_option else ''}"


def _spell(value: Plain) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def show_right_form(
    name: str, value: Node, examples: Iterable[Plain] = (), is_valid: Callable[[Plain], bool] = lambda _: True
) -> str:
    """Return `; write …` with the value in the form that was meant if that is valid, else with an example."""
    if isinstance(value, dict | list) and _FILE.fullmatch(name) and is_valid("a: 1"):
        shown = f"{name}: '{json.dumps(untraced(value))}'" if name.endswith(".json") else "`"
        if len(shown) <= _MAX_FORM and shown.count("'") == 2 and "`" not in shown and not find_secrets_in_text(shown):
            return f"; write `{shown}`"
        return f"; write `{name}: |`, and keep the lines below it as its text"
    if fixed := _show_other_level(name, value, is_valid):
        return fixed
    is_claim = isinstance(value_of(value), str) and _CLAIM.match(value_of(value)) is not None
    is_volume = is_valid({"pvc": "a", "mountPath": "/a"}) and not is_valid({"pvcs": "a"})
    if name in OF_SECRETS and not is_valid("/data") and not is_claim and not is_volume:
        # Every text in it may be a secret.
        own = _ENTRY.match(str(value_of(value)))
        return f"; write `{name}: {{{own[1] if own else 'name'}: …}}`"
    text = untraced(value)
    if isinstance(text, str) and _FILE.fullmatch(name) and is_valid({"mountPath": "/etc/x", "data": {name: text}}):
        # A file that stands where its ConfigMap belongs.
        config = name.partition(".")[0].lower().replace("_", "-") or "files"
        return f"; write `{config}: {{mountPath: /etc/{config}, data: {{{name}: …}}}}`, with this text for `…`"
    if name in ("command", "args") and isinstance(text, str) and (form := _show_words(name, text)):
        return form
    examples = _choose_examples(name, text, examples, is_volume=is_volume)
    # An example that is too long for a message is shown by its first entry.
    first: list[Plain] = [dict([next(iter(each.items()))]) for each in examples if isinstance(each, dict) and each]
    first += [each[:1] for each in examples if isinstance(each, list) and each]
    if roles := _show_roles(name, text):
        return roles
    guesses = [*_guess_forms(name, text, examples), *_guess_claim(name, text, is_volume=is_volume)]
    if shown := _show_accepted(name, guesses, [*examples, *first], is_valid):
        return shown
    shown = next((f"{{{next(iter(each), '')}: …}}" for each in examples if isinstance(each, dict)), "")
    shown = shown or next(
        (
            f"[{{{next(iter(each[0]))}: …}}]"
            for each in examples
            if isinstance(each, list) and isinstance(each[0], dict)
        ),
        "",
    )
    return f"; write `{name}: {shown.replace('{: …}', '{}')}`" if shown else ""


def _choose_examples(name: str, value: Plain, examples: Iterable[Plain], *, is_volume: bool) -> list[Plain]:
    """Return the examples for a value; that of a volume has its path, and one number says nothing about two."""
    if not isinstance(value, str):
        return [*examples]
    own_path: list[Plain] = [{"pvc": name, "mountPath": value}] if is_volume and value.startswith("/") else []
    return [] if _RANGE.fullmatch(value) else [*own_path, *examples]


def _show_words(name: str, text: str) -> str:
    """Return `; write …` for a command with syntax of a shell, in one text; empty if its words are as they are."""
    if "\n" not in text.strip() and not _SHELL_WORD.match(text):
        if not _SHELL_SYNTAX.search(text) or text.endswith("]"):
            return ""
        replaced = _SHELL_VARIABLE.sub(r"$(\1\2)", text)
        if not _ONLY_SHELL.search(_REFERENCE.sub("", replaced)):
            words = replaced.split() if "'" not in text and '"' not in text else _split_quoted(replaced)
            shown = f"{name}: {to_inline_yaml(words)}"
            if len(shown) > _MAX_FORM:
                shown = f"{name}: [{', '.join(to_inline_yaml(word) for word in words[:2])}, …]"
            if words and len(shown) <= _MAX_FORM and "`" not in shown and not find_secrets_in_text(shown):
                return f"; write `{shown}`"
    if name == "command":
        return "; write `command: [bash, -c]`, and the script as the only item of `args`, below `- |`"
    return "; write it as the only item of `args`, below `- |`, after `command: [bash, -c]`"


def _split_quoted(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _show_accepted(name: str, guesses: list[Plain], examples: list[Plain], is_valid: Callable[[Plain], bool]) -> str:
    """Return `; write …` with the first form that is valid; what the author did not write is only an example."""
    for number, form in enumerate((*guesses, *examples)):
        shown = f"{name}: {to_inline_yaml(form)}"
        is_short = len(shown) <= _MAX_FORM and not re.search("[`\n]", shown)
        is_guess = number < len(guesses)
        if form in (None, [], {}) or not (is_short or is_guess) or not is_valid(form):
            continue
        if not is_short:
            if isinstance(form, list) and len(form) == 1 and isinstance(form[0], dict):
                return f"; write `- ` before its first field, `{next(iter(form[0]))}`"
            continue
        if not find_secrets_in_text(shown):
            return f"; write `{shown}`" if is_guess else f"; for example, write `{shown}`"
        if is_guess and isinstance(form, dict):
            return f"; write `{name}: {{{', '.join(f'{key}: …' for key in form)}}}`"
    return ""


def _show_other_level(name: str, value: Node, is_valid: Callable[[Plain], bool]) -> str:
    """Return `; write …` for a mapping that must be text, for a list that lacks its field, and for a variable."""
    if _CAPITALS.fullmatch(name) and is_valid({"env": {name: "key"}}) and not is_valid("text"):
        return f"; write the name of the Secret as the key, and `{{env: {{{name}: …}}}}` as its value"
    if isinstance(value, dict) and name.endswith(("YAML", "serveConfigV2")) and is_valid("a: 1"):
        return f"; write `{name}: |`, and keep the lines below it as its text"
    if isinstance(value, dict) and name == "values" and is_valid("a: 1"):
        kept = "write `values: |`, and keep the lines below it as its text"
        return f"; {kept}, or rename it to `valuesObject` in an Application of Argo CD"
    if isinstance(value, list) and name in _LISTS and is_valid({_LISTS[name]: untraced(value)}):
        return f"; write `{_LISTS[name]}:` above its items, and indent them below it"
    return ""


def _show_roles(name: str, counts: Plain) -> str:
    """Return `; write …` with the roles that `replicas: {master: 1, worker: 3}` counts; empty without roles."""
    if name != "replicas" or not isinstance(counts, dict) or not all(type(each) is int for each in counts.values()):
        return ""
    shown = f"roles: {to_inline_yaml({str(key): {'replicas': count} for key, count in counts.items()})}"
    return f"; write `{shown}`" if counts and len(shown) <= _MAX_FORM and "`" not in shown else ""


def show_command(text: Plain) -> str:
    """Return `; write …` with a command that stands as a text in another field; empty if it is none."""
    words = text.split() if isinstance(text, str) and not _SHELL_SYNTAX.search(text) else []
    shown = f"command: {to_inline_yaml(words)}"
    is_plain = len(words) > 1 and len(shown) <= _MAX_FORM and "`" not in shown and not find_secrets_in_text(shown)
    return f"; write `{shown}`" if is_plain else ""


def show_config(name: str, text: Node) -> str:
    """Return `write …` with a ConfigMap around a file that stands directly in `configs`; empty if it is none."""
    if not isinstance(text, str) or not (_FILE.fullmatch(name) or "\n" in text or _PATH.fullmatch(text)):
        return ""
    file = text.rpartition("/")[2] if _PATH.fullmatch(text) else name
    own = write_as_name(name.partition(".")[0])
    shown = f"{own}: {{mountPath: /etc/{own}, data: {{{file}: …}}}}"
    text_of = ", with the text of the file for `…`" if file != name and "\n" not in text else ""
    return f"write `{shown}`{text_of}" if own and len(shown) <= _MAX_FORM and "`" not in shown else ""


_VARIABLE = lazy_pattern(r"([A-Za-z_]\w*) ?= ?(.*)")


_UPDATES = ("OnDelete", "Recreate", "RollingUpdate")
_PROFILES = ("RuntimeDefault", "Unconfined")
_TYPES = {
    "strategy": _UPDATES,
    "updateStrategy": _UPDATES,
    "appArmorProfile": _PROFILES,
    "seccompProfile": _PROFILES,
}
"""The values of `type` in a mapping that needs no other field."""


def _guess_forms(name: str, value: Plain, examples: list[Plain]) -> Iterator[Plain]:
    """Yield what a value may mean: items by name, the only item or entry, the value of the example's only field."""
    only = value[0] if isinstance(value, list) and len(value) == 1 else value
    shown = [each for each in examples if isinstance(each, dict)]
    if isinstance(value, str):
        if name.startswith("env[") and (pair := _VARIABLE.fullmatch(value)):
            yield {"name": pair[1], "value": pair[2]}
        yield from _guess_from_text(name, value)
        yield {"name": value} if any("name" in each for each in shown) else None
        # Where there is an example, an item has more than its name.
        yield [{"name": value}] if not examples or name.endswith("Secrets") else None
        yield {"command": value.split()} if name == "exec" and not _SHELL_SYNTAX.search(value) else None
        yield {"image": value} if _IMAGE.fullmatch(value) else None
        yield _guess_source(name, value) if name in _SOURCES else None
        yield {"type": value} if value in _TYPES.get(name, ()) else None
        yield {"name": value} if name.endswith("Ref") else None
        # Each variable has the value of the key of the same name.
        yield {value: value} if name == "env" and _CAPITALS.fullmatch(value) else None
    elif isinstance(value, list):
        yield from _guess_from_list(name, value)
    elif isinstance(value, dict):
        if name == "env":
            yield [{"name": key, "value": str(each)} for key, each in value.items() if not isinstance(each, dict)]
        yield from _guess_from_scalars(name, value)
        inner = {key: each for key, each in value.items() if isinstance(each, dict) and each}
        is_unnamed = not any(map(_has_name, inner.values()))
        yield [{"name": key, **each} for key, each in inner.items()] if is_unnamed else None
        yield f"{value.get('name') or value.get('repository')}:{value['tag']}" if "tag" in value else None
        yield (
            next((each for key, each in value.items() if key in (name, *_SAME_VALUE)), None)
            if len(value) == 1
            else None
        )
        yield [*value] if name == "environments" or not any(value.values()) else None
        yield [value]
    if isinstance(only, int) and not isinstance(only, bool):
        yield from (
            {key: only} for each in shown if len(each) == 1 for key, old in each.items() if isinstance(old, int)
        )
        yield [only]


def _guess_from_scalars(name: str, value: Mapping[str, Plain]) -> Iterator[Plain]:
    """Yield the options, or the images with their tags, that a mapping of scalars means."""
    if any(isinstance(each, (dict, list, type(None))) for each in value.values()):
        return
    if name == "args" and all(map(_WORD.fullmatch, value)):
        yield [f"--{key}={_spell(each)}" for key, each in value.items()]
    if name == "images":
        yield [{"name": key, "newTag": str(each)} for key, each in value.items()]


def _guess_from_list(name: str, value: list[Plain]) -> Iterator[Plain]:
    """Yield what a list may mean: a mapping by the names of its items, its only item, or its items as one text."""
    if name == "env" and all(isinstance(item, str) and _CAPITALS.fullmatch(item) for item in value):
        yield {str(item): item for item in value}
    if name == "plugins" and all(isinstance(item, str) for item in value):
        # Those of Volcano, with their arguments.
        yield {str(item): [] for item in value}
    texts = [item for item in value if isinstance(item, str)]
    if name == "images" and len(texts) == len(value) and all(map(_TAGGED.fullmatch, texts)):
        yield [dict(zip(("name", "newTag"), text.rsplit(":", 1), strict=True)) for text in texts]
    yield {"add": value} if name == "capabilities" else None
    if name == "configs" and all(isinstance(item, str) for item in value):
        yield {str(item): {"mountPath": f"/etc/{item}"} for item in value}
    binds = [_BIND.fullmatch(item) for item in value if isinstance(item, str)] if name == "volumes" else []
    if binds and len(binds) == len(value) and all(binds):
        yield dict(_to_volume(bind) for bind in binds if bind)
    named = [_split_name(item, name) for item in value]
    yield {key: rest for each in named if each for key, rest in [each]} if all(named) else None
    settings = [_SETTING.fullmatch(item) for item in value if isinstance(item, str)]
    if settings and len(settings) == len(value) and all(settings):
        yield {setting[1]: resolve(setting[2]) for setting in settings if setting}
    pairs = [_split_pair(item) for item in value]
    yield dict(each for each in pairs if each) if all(pairs) else None
    only = value[0] if len(value) == 1 else None
    yield None if isinstance(only, (dict, list)) else only
    yield shlex.join(texts) if name == "entrypoint" and len(texts) == len(value) else None
    # The name of an environment variable.
    is_text = name.isupper() and not any(isinstance(item, (dict, list, type(None))) for item in value)
    yield ",".join(map(_spell, value)) if is_text else None


def _guess_source(name: str, text: str) -> Plain:
    """Return the source of a volume that a text in its place means: its size, medium, or name."""
    if "=" in text:
        return None
    if name == "emptyDir" and text.lower() == "memory":
        return {"medium": "Memory"}
    return {_SOURCES[name]: text} if name != "emptyDir" or canonicalize_quantity(text) else None


def _to_volume(bind: re.Match[str]) -> tuple[str, dict[str, Plain]]:
    """Return the volume, and its name, of `/path/data:/data:ro`, as containers are started elsewhere."""
    source, path, mode = bind.groups()
    kind = "hostPath" if source.startswith("/") else "pvc"
    name = write_as_name(source.rstrip("/").rpartition("/")[2]) or "data"
    return name, {kind: source, "mountPath": path, **({"readOnly": True} if mode == "ro" else {})}


def _guess_claim(name: str, text: Plain, *, is_volume: bool) -> Iterator[Plain]:
    """Yield the volume that the name of a claim means."""
    if is_volume and isinstance(text, str) and _CLAIM_NAME.fullmatch(text):
        yield {"pvc": text, "mountPath": f"/{name}"}


def _has_name(item: Mapping[str, Plain]) -> bool:
    return "name" in item


def _guess_from_text(name: str, text: str) -> Iterator[Plain]:
    """Yield what a text may mean: a duration in seconds, the words of a command, a variable, a claim, or items."""
    if "Seconds" in name and (seconds := read_seconds(text)) is not None:
        yield seconds
    if (number := text.strip(" ,;")) != text and number.isascii() and number.isdigit() and len(number) < 10:
        yield int(number)
    yield from _guess_entries(name, text)
    yield from _guess_from_signs(name, text)
    if claim := _CLAIM.match(text):
        yield {"pvc": claim[1], "mountPath": claim[2]}
    if name == "env" and "=" in text:
        pairs = text.split()
        pairs = pairs if all("=" in each for each in pairs) else [text]
        yield {key: value for key, _, value in (each.partition("=") for each in pairs)}
    is_command = name in ("command", "args")
    if is_command and text.endswith("]") and "[" not in text:
        yield text[:-1].split(", ")
    words = text.split() if is_command else text.replace(",", " ").split()
    # No program begins with one dash, and no option with three: the dash is that of an item, without its space.
    if words and all(word.startswith("---" if name == "args" else "-") for word in words):
        words = [word[1:] for word in words]
    if not _SHELL_SYNTAX.search(text) if is_command else all(map(_PLAIN_TEXT.fullmatch, words)):
        yield [*words]


def _guess_from_signs(name: str, text: str) -> Iterator[Plain]:
    """Yield the export of NFS, or the list of one pattern, that the signs in a text stand for."""
    if name == "nfs" and (export := _EXPORT.fullmatch(text)):
        yield {"server": export[1], "path": export[2]}
    if _PATTERN.fullmatch(text):
        yield [text]


def _guess_entries(name: str, text: str) -> Iterator[Plain]:
    """Yield the mapping that a text may mean: `pool:a100`, or `pool=a100,zone=b`."""
    entries = [_ENTRY_WITHOUT_SPACE.fullmatch(word) for word in text.split()]
    if entries and all(entries):
        yield {entry[1]: resolve(entry[2]) for entry in entries if entry}
    labels = [_LABEL.fullmatch(word) for word in text.split(",")]
    if name in ("nodeSelector", "labels", "matchLabels") and all(labels):
        yield {label[1]: label[2] for label in labels if label}
    settings = [_SETTING.fullmatch(word) for word in re.split("[, ]+", text.strip(", "))]
    if name not in ("command", "args", "env") and all(settings):
        yield {setting[1]: resolve(setting[2]) for setting in settings if setting}


def _split_name(item: Plain, field: str) -> tuple[str, Plain] | None:
    """Return the name of a list's item and the rest of it, for a mapping by name."""
    if isinstance(item, str):
        key, sign, text = item.partition("=")
        return (key, text if sign else {}) if sign or field in ("roles", "queues") else None
    name = item.get("name") if isinstance(item, dict) else None
    if isinstance(item, dict) and isinstance(name, str):
        return name, {key: value for key, value in item.items() if key != "name"}
    only = next(iter(item.items())) if isinstance(item, dict) and len(item) == 1 else None
    return (str(only[0]), only[1]) if only else None


def _split_pair(item: Plain) -> tuple[str, Plain] | None:
    """Return the entry of a mapping that an item such as `{name: cpu, value: 8}` stands for."""
    if not isinstance(item, dict) or item.keys() not in ({"name", "value"}, {"key", "value"}):
        return None
    name = item.get("name", item.get("key"))
    return (name, item["value"]) if isinstance(name, str) else None


def split_entry(key: str, known: Iterable[str]) -> str:
    """Return `replicas: 3` for `replicas:3`, which YAML reads as a key in braces; empty if it names no known field."""
    name, colon, text = key.partition(":")
    return f"{name}: {text}" if colon and text and name in known else ""


def write_as_entry(item: Mapping[str, Node], known: Iterable[str]) -> str:
    """Return `; write …` for an item `NCCL_DEBUG: INFO` of a list whose items have a name and a value."""
    value = untraced(next(iter(item.values()))) if len(item) == 1 else None
    if not {"name", "value"} <= {*known} or not isinstance(value, (str, int, float)):
        return ""
    text = value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    shown = f"- {to_inline_yaml({'name': str(next(iter(item))), 'value': text})}"
    is_shown = len(shown) <= _MAX_FORM and "`" not in shown and not find_secrets_in_text(shown)
    return f"; write `{shown}`" if is_shown else "; write `- {name: …, value: …}`"


def show_named_item(name: str, value: Node, is_valid: Callable[[Plain], bool]) -> str:
    """Return `; write …` for an item that is only the name of what is meant, or its name and value: `LR=0.001`."""
    text = untraced(value)
    if not isinstance(text, str):
        return ""
    taint = _TAINT.fullmatch(text) if name.startswith("tolerations[") else None
    if taint:
        operator: dict[str, Plain] = {"value": taint[2]} if taint[2] else {"operator": "Exists"}
        shown = f"- {to_inline_yaml({'key': taint[1], **operator, 'effect': taint[3]})}"
        return f"; write `{shown}`"
    pair = _VARIABLE.fullmatch(text)
    if pair and is_valid({"name": pair[1], "value": pair[2]}):
        shown = f"- {to_inline_yaml({'name': pair[1], 'value': pair[2]})}"
        is_shown = len(shown) <= _MAX_FORM and not re.search("[`\n]", shown)
        is_secret = bool(find_secrets_in_text(text) or find_secrets_in_text(shown))
        return f"; write `{shown}`" if is_shown and not is_secret else f"; write `- {{name: {pair[1]}, value: …}}`"
    if not _PLAIN_TEXT.fullmatch(text) or not is_valid({"name": text}):
        return ""
    return f"; write `- name: {text}`" if not find_secrets_in_text(text) else f"; write `- name: …` in `{name}`"


def show_first_item(value: Mapping[str, Node], is_valid: Callable[[Plain], bool]) -> str:
    """Return `; write …` with the beginning of the first item of a list that is written as a mapping."""
    first = next(iter(value))
    inner = {key: each for key, each in value.items() if isinstance(each, dict)}
    for name in ("name", "groupName") if len(inner) == len(value) else ():
        items: list[Plain] = [{name: str(key), **untraced(each)} for key, each in inner.items()]
        if not any(name in each for each in inner.values()) and is_valid(items):
            return f"; write `- {name}: {first}` in place of `{first}:`"
    return f"; write `- ` before its first field, `{first}`"


def show_blocks(path: Iterable[str], value: Node) -> str:
    """Return `a: {b: 1}` in backticks for the path `a.b`; a value that is long or secret is left out."""
    *blocks, last = path
    shown = f"{last}: {to_inline_yaml(untraced(value))}"
    is_shown = len(shown) <= _MAX_FORM and "`" not in shown and "\n" not in shown and not find_secrets_in_text(shown)
    shown = shown if is_shown else f"{last}: …"
    for name in reversed(blocks):
        shown = f"{name}: {{{shown}}}"
    return f"`{shown}`"


def list_fields(known: Iterable[str], title: str = "") -> str:
    """Return `; it has …` with the fields of a mapping, or the advice to remove the field if there are many."""
    names = [f"`{name}`" for name in known if name != "$patch"]
    if 0 < len(names) <= _MAX_LISTED:
        return f"; it has {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"
    return "; remove it, or write a field of the object below `manifest`" if title == "a job" else "; remove it"


def describe_missing_level(key: str, others: int, level: str, beside: str = "") -> str:
    """Say that a field and some others belong below a field that is missing; `beside` is the mapping they are in."""
    where = f" of `{beside}`" if beside else ""
    subject = f"`{key}`{where} belongs in"
    if others:
        subject = f"`{key}` and {pluralize(others, 'other field')}{where} belong in"
    them = "them" if others else "it"
    move = f"at the depth of `{beside}`" if beside else f"and indent {them} below" + " it" * (others > 0)
    shown = ":` and `".join(level.split("."))
    return f"{subject} `{level}`, which is missing; write `{shown}:` above {them}, {move}"


def write_as_folder(text: str) -> str:
    """The folder of jobs that was probably meant: `jobs/nlp` for `nlp`, `./jobs/nlp/` and `/jobs/nlp/**`."""
    parts = [part for part in text[:_MAX_NAME].split("/") if part not in ("", ".", "*", "**")]
    return "/".join(parts if parts[:1] == ["jobs"] else ["jobs", *parts])


def write_as_name(text: str) -> str:
    """The name that was probably meant: `resnet-50` for `ResNet_50`; none for a secret, which it would show."""
    if find_secrets_in_text(text):
        return ""
    meant = re.sub(r"[^a-z0-9.]+", "-", text[:_MAX_NAME].lower()).strip("-.")
    # What is left of a name in another script says nothing.
    return meant if 2 * len(meant) >= min(len(text), _MAX_NAME) else ""
