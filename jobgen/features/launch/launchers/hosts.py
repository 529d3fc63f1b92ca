"""Hosts and their slots: hostfiles, lists of hosts, and those that an operator writes."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.features.launch.values import Pods, Program, Word
from jobgen.model.lazy_re import lazy_pattern

OPERATOR_FILE = "/etc/mpi/hostfile"
_SLOTS = lazy_pattern(r"(\S+?)(?:\s+slots\s*=\s*(\d{1,6})|:(\d{1,6}))?(?:\s.*)?\Z")


def read_hostfile(program: Program, path: str | None, pods: Pods) -> Mapping[str, int | None] | None:
    """Return the slots of each host in a hostfile, None for those without a number; None if it is not known."""
    text = program.files(path) if path else None
    if text is None:
        return None
    hosts: dict[str, int | None] = {}
    for line in (each.partition("#")[0].strip() for each in text.splitlines()):
        found = _SLOTS.match(line) if line else None
        if line and found is None:
            return None
        if found:
            number = found[2] or found[3]
            hosts[found[1]] = int(number) if number else None
    # The operator's hostfile has the first of many hosts only.
    missing = (pods.count or 0) - len(hosts)
    if path == OPERATOR_FILE and missing > 0:
        hosts.update((f"host {number}", pods.slots) for number in range(missing))
    return hosts


def read_list(word: Word) -> dict[str, int | None] | None:
    """Return the slots of each host in a list such as `a:8,b:8`; None if it is not known."""
    if word.text is None:
        return None
    hosts: dict[str, int | None] = {}
    for item in word.text.split(","):
        name, _, slots = item.partition(":")
        number = Word(slots, None).number if slots else None
        known = hosts.get(name)
        hosts[name] = number if known is None or number is None else known + number
    return hosts


def has_host(hosts: Mapping[str, int | None], name: str) -> bool:
    """Return True if a name, or the same name with a domain, is one of the hosts."""
    short = name.partition(".")[0]
    return any(each == name or each.partition(".")[0] == short for each in hosts)
