"""What runs in the process of a kernel, baseline or candidate.

Only this package is mounted there, so it imports the standard library alone, and torch only where the entry needs it.
Nothing that it says is believed but "done", and that only after the outputs were read.
"""
