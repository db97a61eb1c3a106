"""Cells of a proof: one program under the real supervisor, what was expected of it, and what happened."""
