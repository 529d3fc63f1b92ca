"""Sync waves that are not integers."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.argocd_annotations import SYNC_WAVE
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest


@rule("manifest", WARNING)
def bad_sync_wave(manifest: Manifest) -> Iterator[Violation]:
    """A sync wave of Argo CD that is not an integer.

    Argo CD ignores the value without an error and uses wave 0.

    Write an integer as a string: `"-1"`.
    """
    annotations = manifest.metadata.get("annotations")
    if not isinstance(annotations, dict) or SYNC_WAVE not in annotations:
        return
    wave = as_text(annotations[SYNC_WAVE])
    digits = wave[1:] if wave[:1] in ("-", "+") else wave
    if not (digits.isascii() and digits.isdigit()):
        yield Violation(
            annotations[SYNC_WAVE], f"`{wave}` is not an integer, so Argo CD uses wave 0; write an integer in quotes"
        )
