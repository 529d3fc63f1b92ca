"""Helm charts: which values they are used with, what `helm template` makes of them, and which line wrote each value."""

from jobgen.model.features import Feature

FEATURE = Feature(parts={"lint.charts": "survey:survey_charts"})
