"""Read the CustomResourceDefinitions of files, when an object of their group is checked."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.k8s.custom_kinds import Definition, read_definition
from jobgen.model.lazy_re import lazy_pattern
from jobgen.render import config
from jobgen.render.build import split_list
from jobgen.repo.files import FileEntry, read_file

# The group of a definition, in YAML or JSON.
_GROUP = lazy_pattern(r"group[\"']?\s*:\s*[\"']?([\w.-]+)")


class FileDefinitions:
    """The definitions in files, by API group."""

    def __init__(self, entries: Sequence[FileEntry]) -> None:
        self._entries = entries
        self._named: dict[str, list[int]] = {}
        """The numbers of the files in which each group is written."""
        for number, entry in enumerate(entries):
            for group in dict.fromkeys(_GROUP.findall(read_file(entry).content.decode("latin-1"))):
                self._named.setdefault(group, []).append(number)
        self._read: dict[int, tuple[Definition, ...]] = {}
        self._groups: dict[str, tuple[Definition, ...]] = {}

    def find(self, group: str) -> tuple[Definition, ...]:
        """Return the definitions of a group; only files in which it is written are parsed."""
        if group not in self._groups:
            every = (definition for number in self._named.get(group, ()) for definition in self._parse(number))
            self._groups[group] = tuple(definition for definition in every if definition.group == group)
        return self._groups[group]

    def _parse(self, number: int) -> tuple[Definition, ...]:
        if number not in self._read:
            documents = config.read_documents(read_file(self._entries[number]), [], shared=True).documents
            found = (
                read_definition(data, document.location) for document in documents for data in split_list(document.data)
            )
            self._read[number] = tuple(filter(None, found))
        return self._read[number]
