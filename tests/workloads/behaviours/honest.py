"""Honest behaviours that show nothing for a while: honest.py NAME. Each ends well by itself after FPT_SECONDS.

A supervisor must not end any of them unless its user asks for it. `upload` and `slow_download` need a peer outside the
tree: `honest.py serve` started beside it, its port in FPT_PEER. Writes model.part and the.lock into the current folder.
"""
import fcntl
import http.server
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import common
from common import PEER, SECONDS, deadline, finish


def listen_and_wait(line, family=socket.AF_INET):
    listener = socket.socket(family)
    listener.bind(("127.0.0.1", 0))
    listener.listen(5)
    print(line, flush=True)
    listener.settimeout(SECONDS)
    try:
        listener.accept()
    except OSError:
        pass
    finish()


def own_server():
    """An API server of the user's own, whose words no adapter knows."""
    listen_and_wait("my video api v2: up")


def own_server_after_job():
    """The same after one job: a bar, then idle."""
    from tqdm import tqdm
    for _ in tqdm(range(8)):
        time.sleep(0.5)
    listen_and_wait("job 1 done, video sent")


def http_server():
    """`python -m http.server 0` prints the like."""
    listen_and_wait("Serving HTTP on 0.0.0.0 port 8000 (http://0.0.0.0:8000/) ...")


def queue_worker():
    """Looks for a job file each 5 s."""
    print("--- worker started, no job yet ---", flush=True)
    end = deadline()
    while time.monotonic() < end:
        os.path.exists("no-such-job.json")
        time.sleep(5)
    finish()


def remote_encoder():
    """One HTTP request that is answered late: the work is done elsewhere."""
    class Late(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            time.sleep(SECONDS - 5)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Silent."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Late)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("encoding the prompt on the other machine", flush=True)
    urllib.request.urlopen("http://127.0.0.1:%d/" % server.server_port).read()
    finish()


def connect(order):
    connection = socket.create_connection(("127.0.0.1", PEER))
    connection.sendall(order)
    return connection


def serve():
    """Outside the tree: prints its port, swallows an upload, sends 100 kB/s to a download."""
    def answer(connection):
        try:
            if connection.recv(4) == b"down":
                while True:
                    connection.sendall(b"d" * 10000)
                    time.sleep(0.1)
            while connection.recv(1 << 16):
                pass
        except OSError:
            pass

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(5)
    print(listener.getsockname()[1], flush=True)
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


def upload():
    """After the clip: 50 kB/s are sent, without a bar."""
    connection = connect(b"up  ")
    print("Saving video to the archive", flush=True)
    end = deadline()
    while time.monotonic() < end:
        connection.sendall(b"x" * 50000)
        time.sleep(1)
    finish()


def slow_download():
    """100 kB/s: the bar moves and the file grows twice only."""
    from tqdm import tqdm
    connection = connect(b"down")
    half = int(50_000 * SECONDS)
    bar = tqdm(total=2 * half, unit="B", unit_scale=True, desc="model-00001-of-00002.safetensors")
    with open("model.part", "wb") as f:
        for _ in range(2):
            received = bytearray()
            while len(received) < half:
                received += connection.recv(65536)
            f.write(received)
            bar.update(len(received))
    finish()


def back_off():
    """A server asked for a pause."""
    print("429 Too Many Requests, retrying in %d s" % SECONDS, flush=True)
    time.sleep(SECONDS)
    finish()


def waits_for_lock():
    """Another process holds the lock of the cache."""
    holder = subprocess.Popen([sys.executable, "-c", "import fcntl, time; f = open('the.lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX);"
                               "time.sleep(%f)" % SECONDS])
    time.sleep(1)
    with open("the.lock", "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
    holder.wait()
    finish()


if __name__ == "__main__":
    common.run_named({f.__name__: f for f in (
        own_server, own_server_after_job, http_server, queue_worker, remote_encoder, serve, upload, slow_download,
        back_off, waits_for_lock)}, "honest behaviour")
