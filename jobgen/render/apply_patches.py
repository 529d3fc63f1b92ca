"""Apply the patches of overlays for rendered objects: merges, JSON patches, and other names of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobgen.model.finding import Problem
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import Deletion, merge
from jobgen.spec.overlay import Environment, Patch


def apply_patches(
    made: Mapping[str, Any], patches: Sequence[Patch], problems: list[Problem], deletions: list[Deletion]
) -> Mapping[str, Any]:
    """Apply the parts of patches that change objects, in order."""
    for patch in patches:
        if patch.manifest is not None:
            made = merge(made, patch.manifest, deletions)
        if patch.json_patch is not None:
            # Imported late: most overlays have none.
            from jobgen.spec import json_patch

            made = json_patch.apply_json_patch(made, patch.json_patch, problems)
    return made


def apply_images(
    made: Mapping[str, Any],
    environment: Environment,
    kinds: Sequence[Kind],
    deletions: list[Deletion],
    *,
    is_spec: bool,
) -> Mapping[str, Any]:
    """Rewrite the images of an object as the environment says."""
    images = environment.images_for(is_spec=is_spec)
    if not images:
        return made
    from jobgen.render.rewrite_images import rewrite_images

    return rewrite_images(made, images, kinds, deletions)
