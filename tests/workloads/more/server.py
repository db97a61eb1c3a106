"""A server whose optional part fails at the start with a traceback; it goes on without it and waits: server.py KIND SECONDS."""
import sys
import time

import error_texts

error_texts.raise_and_handle(sys.argv[1], "optional attention kernel is off")
time.sleep(1)
print("* Running on local URL:  http://127.0.0.1:7860", flush=True)
time.sleep(float(sys.argv[2]))
