"""Compiles HIP and Triton kernels for AMD GPUs without one, and reads what they use from the code object.

The package runs as a sandboxed one-shot process, because its input is hostile. Whoever reads its answer treats it as
evidence, never as a verdict. It imports nothing of akarena outside itself, so a sandbox needs this folder only: mounted
as ``FOLDER/gfx`` it runs as ``python -m gfx`` with ``PYTHONPATH=FOLDER``. In a checkout the name is
``akarena.targets.gfx``.
"""
