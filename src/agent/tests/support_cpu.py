"""One thread for torch in the tests and in every program that they start: their tensors are tiny, and threads that wait
for each other on a busy machine of two cores make the same work take ten times as long. To be imported before torch."""
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
