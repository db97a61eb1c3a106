"""A real tiny FramePack generation that hangs in its first decode, beside something harmless: hang.py MODE [arguments].

Each must be declared within the limits of a known phase, with the agent and without. `after_the_result`: right is
`not_ended` within 240 s, nothing is ended. `log_writer` writes metrics.log into the current folder.
"""
import http.server
import sys
import threading
import time
import urllib.request

import common
import generations
from common import repeat, use_cpu


def paint(text):
    sys.stderr.write(text)
    sys.stderr.flush()


def line_each_10_s():
    repeat(10, lambda: print("[watchdog] still alive", flush=True))


def line_each_44_s():
    repeat(44, lambda: print("INFO:monitor:vram 17.0 GB", flush=True))


def same_bar_again():
    """A refresh thread paints the same text."""
    repeat(1, lambda: paint("\r 62%|██████▎   | 5/8 [00:02<00:01,  1.90it/s]"))


def bar_with_a_clock():
    """The elapsed time moves, the step does not."""
    began = time.time()
    repeat(5, lambda: paint("\rDecoding:  62%%|██████▎   | 5/8 [%02d:%02d<00:01,  1.90it/s]" % divmod(int(time.time() - began), 60)))


def statistics_thread():
    """60 ms of Python each second."""
    repeat(1, lambda: use_cpu(0.06))


def log_writer():
    """200 kB into a file each 10 s."""
    def append():
        with open("metrics.log", "ab") as f:
            f.write(b"m" * 200_000)
    repeat(10, append)


def health_endpoint():
    """The program asks its own HTTP endpoint each second."""
    class Ok(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            """Silent."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ok)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    repeat(1, lambda: urllib.request.urlopen("http://127.0.0.1:%d/" % server.server_port).read())


def after_the_result(rest):
    """Everything is written; a thread keeps the process."""
    threading.Thread(target=threading.Event().wait).start()
    generations.framepack(*rest)
    common.note("hang-began")


COMPANY = (line_each_10_s, line_each_44_s, same_bar_again, bar_with_a_clock, statistics_thread, log_writer, health_endpoint)


def main():
    mode, rest = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    if mode == "after_the_result":
        return after_the_result(rest)
    company = {f.__name__: f for f in COMPANY}
    if mode not in company:
        sys.exit("no mode %r; there are: after_the_result %s" % (mode, " ".join(company)))
    company[mode]()
    return generations.framepack_hangs_in_decode(*rest)


if __name__ == "__main__":
    sys.exit(main())
