"""A handled, chained traceback at the start of a server that is well."""
import time
import traceback

try:
    try:
        raise OSError("name or service not known")
    except OSError as error:
        raise RuntimeError("could not fetch ffmpeg") from error
except RuntimeError:
    traceback.print_exc()
    print("going on without it", flush=True)
time.sleep(2)
print("* Running on local URL:  http://127.0.0.1:7860", flush=True)
time.sleep(12)
