"""Scripts that run inside an image while it is built, with the standard library of the base only."""
