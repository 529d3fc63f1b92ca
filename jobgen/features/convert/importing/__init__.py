"""Import: turn existing manifests into job specs. A spec is accepted only if it renders to the manifest again."""
