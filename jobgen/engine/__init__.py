"""The engine: inputs whose reads are recorded, queries over them, and one store of their answers."""
