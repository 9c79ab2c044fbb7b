"""The judge: decides whether a candidate is right and faster. It runs in a sandbox of its own and loads no candidate."""
