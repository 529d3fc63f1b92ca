"""Read, write and edit YAML text."""
