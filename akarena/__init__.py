"""akarena measures AI coding agents on GPU-kernel optimisation."""

__version__ = "0.1.0"
