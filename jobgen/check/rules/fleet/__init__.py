"""All the objects of an environment, taken together."""
