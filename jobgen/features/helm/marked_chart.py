"""A copy of a chart that helm renders twice in one run: as it is, and with a mark after the text of each line.

Almost all of the time of helm is that of its start. So the copy has one more template in each of its folders of
templates, which includes the others once more and prints them in an object of its own. In these only, marks write
something: the named template that stands for a mark is empty, and `tpl` replaces it.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from jobgen.features.helm.fixed_functions import fix_functions
from jobgen.features.helm.template_text import MAX_MARKS, Marked, Template, mark_lines, read_template
from jobgen.model.digest import blake2b
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_SUFFIXES = (".yaml", ".yml", ".json")
# What a template may change for those after it, besides the values, of which the copies have their own.
_CHANGES = lazy_pattern(r"\b(?:set|unset|(?:mustM|m)erge(?:Overwrite)?)\s+\(?\s*\$?\.(?!Values\b)[A-Z]")
# helm begins a path with the name of the chart.
_PLACE = lazy_pattern(r"/([^\s:()]+):(\d+):(\d+)")
_EXECUTION = "executing "
_INCLUDE = """\
{{ define "%(name)s" }}{{ . }}{{ end }}{{ $found := dict }}{{ $context := . }}{{ $folder := .Template.BasePath }}\
{{ range list %(files)s }}{{ $path := print $folder "/" . }}\
{{ $_ := set $context "Template" (dict "Name" $path "BasePath" $folder) }}\
{{ $_ := set $found $path (include $path $context) }}{{ end }}{{ $found | toJson }}"""
_CONTEXT = (
    'dict "Values" (deepCopy .Values) "Chart" .Chart "Release" .Release "Files" .Files "Capabilities" .Capabilities '
    '"Subcharts" .Subcharts "Template" .Template'
)
# helm prints hooks after all objects, so that nothing else changes.
_OBJECT = (
    '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "marks", "annotations": {"helm.sh/hook": "test"}}, '
    '"data": {{ tpl `%s` (%s) }}}\n'
)


class MarkedOutput(NamedTuple):
    """What helm printed of such a copy."""

    plain: bytes
    """What it prints of the chart itself."""
    marked: Mapping[str, list[str]]
    """The text of each template with marks, by the path that helm prints: once for each chart that has it."""


class MarkedChart:
    """The texts of such a copy, and the template and line of each mark."""

    def __init__(self, templates: Mapping[str, str], printed: Sequence[bytes] = ()) -> None:
        """Start with the templates of a chart, by path, and the files that helm prints as they are."""
        self._templates = templates
        self._printed = printed
        self.places: list[tuple[str, int]] = []
        self.is_fixed = False
        """True if the copy has other functions than the chart."""
        self._marked: dict[str, tuple[Template, Marked]] = {}

    @cached_property
    def name(self) -> str:
        """What the names of its own templates begin with: nothing that helm prints of the chart can know it."""
        texts = json.dumps(sorted(self._templates.items())).encode("utf-8", "surrogatepass")
        return f"jobgen-{blake2b(b''.join((texts, *self._printed))).hexdigest()[:32]}"

    @cached_property
    def can_print_marks(self) -> bool:
        """Return True if a template that is rendered twice changes nothing for the others."""
        return not any(_CHANGES.search(text) for text in self._templates.values())

    @cached_property
    def files(self) -> dict[str, str]:
        """The texts of the files that differ from those of the chart, or are not in it, by path."""
        found: dict[str, str] = {}
        defined: list[str] = []
        folders: dict[str, list[str]] = {}
        for path, text in self._templates.items():
            template = read_template(text)
            if template is None:
                continue
            fixed = fix_functions(template, path, self.name)
            defined.append(fixed.defined)
            self.is_fixed = self.is_fixed or fixed.text != text
            template = read_template(fixed.text) if fixed.text != text else template
            if template is None or not self.can_print_marks or len(self.places) + len(template.starts) >= MAX_MARKS:
                found[path] = fixed.text
                continue
            # Lines are counted from 1.
            marked = mark_lines(template, len(self.places), self.name)
            found[path] = marked.text
            self._marked[path] = template, marked
            self.places += [(path, line) for line in range(len(template.starts) + 1)]
            folder, inside = _split(path)
            if not posixpath.basename(path).startswith("_"):
                folders.setdefault(folder, []).append(inside)
        if not self.is_fixed and not folders:
            return {}
        # The last one that helm renders, so that a failure of another template is that of the chart.
        found |= {f"{folder}/+{self.name}.yaml": self._write_object(each) for folder, each in folders.items()}
        silent = f'{{{{ define "{self.name}" }}}}{{{{ "" }}}}{{{{ end }}}}'
        found[f"templates/_{self.name}.tpl"] = "".join((silent, *defined))
        return found

    def _write_object(self, paths: list[str]) -> str:
        files = " ".join(json.dumps(path) for path in paths)
        return _OBJECT % (_INCLUDE % {"name": self.name, "files": files}, _CONTEXT)

    def explains(self, error: str) -> bool:
        """Return True if helm says the same of the chart itself: a template failed, and none of those of the copy."""
        return _EXECUTION in error and self.name not in error

    def restore_columns(self, error: str, sources: Mapping[str, str]) -> str:
        """Return what helm says of the copy as it says it of the chart; `sources` has its files by printed paths."""

        def restore(match: re.Match[str]) -> str:
            path, line, column = sources.get(match[1], ""), int(match[2]), int(match[3])
            if path in self._marked:
                template, marked = self._marked[path]
                start = template.starts[line - 1] if line <= len(template.starts) else 0
                for place, text in marked.inserted:
                    column -= len(text) if start < place <= start + column - len(text) else 0
            return f"/{match[1]}:{line}:{column}"

        return _PLACE.sub(restore, error)

    def separate(self, output: bytes) -> MarkedOutput:
        """Return what helm printed of the chart itself, and of the copies."""
        marked: dict[str, list[str]] = {}

        def collect(match: re.Match[bytes]) -> bytes:
            for path, text in json.loads(match[1])["data"].items():
                marked.setdefault(path, []).append(text)
            return b""

        own = rb"---\n# Source: [^\n]*/\+%s\.yaml\n([^\n]*)\n" % self.name.encode()
        return MarkedOutput(re.sub(own, collect, output), marked)


def _split(path: str) -> tuple[str, str]:
    """Return the folder of the templates that a template is in, and its path from there."""
    names = path.split("/")
    # Charts in a chart are in `charts`, each in its folder.
    depth = 0
    while names[depth] == "charts" and len(names) > depth + 2:
        depth += 2
    return "/".join(names[: depth + 1]), "/".join(names[depth + 1 :])
