"""The judge: decides whether a candidate is right and faster. It has a sandbox of its own and loads no candidate."""
