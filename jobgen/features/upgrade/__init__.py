"""Rehearse an upgrade: what other versions of Kubernetes, Kueue and operators do to the jobs of a repository."""

from jobgen.model.features import Feature

FEATURE = Feature(needs=("convert", "kueue"))
