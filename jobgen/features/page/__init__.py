"""The HTML page: values of the fleet, of changes and of capacity, and their encoding as one page."""

from jobgen.model.features import Feature

FEATURE = Feature(parts={"diff.html": "pull_request", "queue.html": "timeline"}, needs=("kueue",))
