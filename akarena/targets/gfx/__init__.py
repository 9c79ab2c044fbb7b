"""Compiles HIP and Triton kernels for AMD GPUs without one, and reads what they use from the code object.

The package runs as ``python -m akarena.targets.gfx`` in a sandboxed one-shot process, because its input is hostile. So it
imports nothing of akarena outside itself, and whoever reads its answer treats it as evidence, never as a verdict.
"""
