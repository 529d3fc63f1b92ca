"""The formats of jobgen itself, and the kinds whose schemas are shipped."""
