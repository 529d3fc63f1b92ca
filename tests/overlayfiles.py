"""Overlays to edit at random: patches that are added, moved, changed and removed, and what else reaches jobs."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

MATCHES = (
    "",
    'match: {names: ["b*"]}',
    'match: {names: ["bert", "gpt"]}',
    "match: {labels: {team: nlp}}",
    "match: {kinds: [PyTorchJob]}",
    'match: {names: ["*"], exclude: {names: ["t5"]}}',
    'match: {names: ["nothing*"]}',
    "optional: true, match: {frameworks: [mpi]}",
)
CHANGES = (
    "merge: {resources: {gpu: 2}}",
    "merge: {resources: {gpu: 4}}",
    "merge: {nodeSelector: {pool: null}}",
    "merge: {nodeSelector: {pool: gpu}}",
    "merge: {env: {SEED: null}}",
    "merge: {image: registry.example.com/other:latest}",
    "merge: {env: {API_TOKEN: hunter2-and-more}}",
    "merge: {replicas: many}",
    "manifest: {spec: {runPolicy: {backoffLimit: 3}}}",
    "manifest: {metadata: {labels: {fleet: null}}}",
)
REST = (
    "namespace: ml",
    "jobs: {labels: {team: nlp}}",
    'jobs: {names: ["b*"]}',
    "defaults: {nodeSelector: {pool: gpu}}",
    "defaults: {labels: {fleet: training}, env: {OLD: null}}",
    "defaults: {image: registry.example.com/other:latest}",
    "locked: [image]",
    "images: [{name: registry.example.com/train, newTag: '3.0'}]",
    "cluster: {operators: {training-operator: 1.8.1}}",
)


class Overlay(NamedTuple):
    """The lines of an overlay."""

    extends: str
    comments: int = 0
    rest: tuple[str, ...] = ()
    patches: tuple[str, ...] = ()

    def write(self) -> str:
        """Return the text of the overlay."""
        lines = ["# A comment."] * self.comments + ["apiVersion: jobgen.dev/v1", "kind: Overlay", "spec:"]
        lines += [f"  extends: [{self.extends}]"] if self.extends else []
        lines += [f"  {each}" for each in self.rest]
        lines += ["  patches:", *(f"    - {{{each}}}" for each in self.patches)] if self.patches else []
        return "\n".join(lines if len(lines) > 3 + self.comments else [*lines, "  namespace: ml"]) + "\n"


def make_patch(random: Random) -> str:
    """Return a patch in one line."""
    return ", ".join(filter(None, (random.choice(MATCHES), random.choice(CHANGES))))


def edit_overlay(random: Random, overlay: Overlay) -> Overlay:
    """Return an overlay after an edit."""
    patches = list(overlay.patches)
    at = random.randrange(len(patches) + 1)
    match random.randrange(7):
        case 0:
            return overlay._replace(comments=random.randrange(4))
        case 1:
            kept = {each.partition(":")[0]: each for each in overlay.rest}
            new = random.choice(REST)
            name = new.partition(":")[0]
            kept = {key: each for key, each in kept.items() if key != name} | ({} if name in kept else {name: new})
            return overlay._replace(rest=tuple(kept.values()))
        case 2 | 3:
            patches.insert(at, make_patch(random))
        case 4 if patches:
            del patches[at % len(patches)]
        case 5 if patches:
            patches.insert(at % len(patches), patches.pop())
        case _ if patches:
            patches[at % len(patches)] = make_patch(random)
    return overlay._replace(patches=tuple(patches))
