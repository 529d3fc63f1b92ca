"""The HTML page: values of the fleet, of changes and of capacity, and their encoding as one page."""
