"""The environments that a command works on."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.cli.commands import Code, Result, stopped
from jobgen.model.suggest import nearest
from jobgen.pipeline.config import Catalogue, load
from jobgen.repo.layout import SETTINGS
from jobgen.report import text


def environments(shelf: Catalogue, named: Sequence[str]) -> list[str] | Result:
    """The environments to work on: those named, or all; wrong settings, or one that does not exist, are wrong usage."""
    if any(finding.mark.file == SETTINGS for finding in shelf.findings):
        wrong = [finding for finding in load(shelf.root, marked=True).findings if finding.mark.file == SETTINGS]
        return stopped(Code.USAGE, f"{text.summary(wrong)} in the settings; nothing was done", text.render(wrong))
    for env in named:
        if env not in shelf.overlays:
            known = ", ".join(sorted(shelf.overlays)) or "none"
            return stopped(
                Code.USAGE, f"there is no environment `{env}`{nearest(env, list(shelf.overlays))} (known: {known})"
            )
    return list(dict.fromkeys(named or shelf.environments()))
