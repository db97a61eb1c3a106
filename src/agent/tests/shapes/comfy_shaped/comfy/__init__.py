"""Modules with ComfyUI's names, arguments and behaviour; the code is our own."""
