"""More hanging programs: hang_more.py MODE. Real tiny generations that block in a known place, with company that goes on.

Company is what runs beside the hang (a spinner, a scraper, an idle page …); other modes differ in where the generation
blocks. `hang-began` notes the moment. Modes that serve write their port into `port`; PEER is `peer.py serve` outside the tree.
"""
import asyncio
import ctypes
import http.server
import itertools
import json
import multiprocessing
import os
import queue
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import common
import generations
from common import PEER, note, repeat, use_cpu

BEHAVIOURS = {}


def behaviour(function):
    BEHAVIOURS[function.__name__] = function
    return function


def paint(text):
    sys.stderr.write(text)
    sys.stderr.flush()


def write_port(port):
    with open("port.new", "w") as f:
        f.write(str(port))
    os.rename("port.new", "port")


# --- company that writes

@behaviour
def spinner():
    """| / - \\ each 0.2 s."""
    faces = itertools.cycle("|/-\\")
    repeat(0.2, lambda: paint("\r%s decoding" % next(faces)))
    generations.framepack_hangs_in_decode()


@behaviour
def json_log_line():
    """A structured log line with a counter and the time, each 5 s."""
    counter = itertools.count()
    repeat(5, lambda: print(json.dumps({"ts": time.time(), "level": "info", "msg": "tick", "n": next(counter)}), flush=True))
    generations.framepack_hangs_in_sampling()


@behaviour
def random_heartbeat():
    """A line of random hexadecimal digits each 3 s."""
    repeat(3, lambda: print("hb %016x" % random.getrandbits(64), flush=True))
    generations.wan_hangs_in_decode()


@behaviour
def tips_of_the_day():
    tips = itertools.cycle(["Tip: use tiles for long clips.", "Did you know? Seeds repeat a clip.", "Tip: press R to retry.",
                            "Star us if you like it!", "Tip: smaller previews are faster."])
    repeat(8, lambda: print(next(tips), flush=True))
    generations.framepack_hangs_in_decode()


@behaviour
def bar_of_a_monitor():
    """tqdm's bar of another thread refreshes, its count stays."""
    from tqdm import tqdm
    bar = tqdm(total=100, desc="waiting for frames", mininterval=0)
    bar.update(40)
    repeat(1, bar.refresh)
    generations.wan_hangs_in_sampling("--step-seconds", "0.2")


@behaviour
def vram_report():
    """Memory figures that differ in each line."""
    repeat(4, lambda: print("vram used %.2f GB, free %.2f GB" % (17 + random.random(), 6 + random.random()), flush=True))
    generations.framepack_hangs_in_decode()


# --- company that works

@behaviour
def statistics_by_a_subprocess():
    """`ps` each 3 s, as rocm-smi by a monitor."""
    repeat(3, lambda: subprocess.run(["ps", "-e", "-o", "pid,rss"], stdout=subprocess.DEVNULL))
    generations.framepack_hangs_in_decode()


@behaviour
def heartbeat_file():
    """A file whose time is renewed each 2 s."""
    repeat(2, lambda: note("heartbeat"))
    generations.wan_hangs_in_decode()


@behaviour
def reads_proc():
    """psutil-like: /proc is read each second."""
    def read_everything():
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open("/proc/%s/stat" % entry) as f:
                        f.read()
                except OSError:
                    pass
    repeat(1, read_everything)
    generations.framepack_hangs_in_sampling()


@behaviour
def busy_thread():
    """Another thread uses a third of a core."""
    def work():
        while True:
            use_cpu(0.02)
            time.sleep(0.04)
    threading.Thread(target=work, daemon=True).start()
    generations.framepack_hangs_in_decode()


@behaviour
def helper_that_logs():
    """A helper process of the tree writes lines and a file."""
    program = ("import time, itertools\nfor n in itertools.count():\n time.sleep(2)\n print('helper: pass', n, flush=True)\n"
               " open('helper.log', 'a').write('x' * 50000)\n")
    subprocess.Popen([sys.executable, "-c", program])
    generations.framepack_hangs_in_decode()


@behaviour
def thumbnails_by_a_helper():
    """A helper process of the tree draws previews of older clips: CPU and small pictures."""
    program = ("import time, hashlib\nwhile True:\n hashlib.sha256(bytes(1 << 24)).digest()\n"
               " open('thumbnail.png', 'wb').write(bytes(30000))\n time.sleep(1)\n")
    subprocess.Popen([sys.executable, "-c", program])
    generations.wan_hangs_in_decode()


@behaviour
def folder_events():
    """A file watcher wakes up at each of its own events."""
    libc = ctypes.CDLL(None)
    os.makedirs("inbox", exist_ok=True)
    watch = libc.inotify_init()
    libc.inotify_add_watch(watch, b"inbox", 0x100 | 0x2)

    def read_events():
        while True:
            os.read(watch, 4096)
    threading.Thread(target=read_events, daemon=True).start()
    repeat(1, lambda: open("inbox/%d.txt" % time.time(), "w").close())
    generations.framepack_hangs_in_decode()


# --- company on the network

class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"frames_total 17\n" * 50)

    def log_message(self, *_):
        """Silent."""


def serve_in_a_thread():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    write_port(server.server_port)


@behaviour
def metrics_are_scraped():
    """An endpoint for Prometheus, asked each second from outside the tree."""
    serve_in_a_thread()
    generations.framepack_hangs_in_decode()


@behaviour
def websocket_pings():
    """A connection to outside with a ping each 5 s."""
    connection = socket.create_connection(("127.0.0.1", PEER))
    connection.sendall(b"swallow\n")
    repeat(5, lambda: connection.sendall(b"\x89\x80abcd"))
    generations.framepack_hangs_in_decode()


@behaviour
def keep_alive_with_a_peer():
    """100 bytes a second each way with a process outside the tree."""
    connection = socket.create_connection(("127.0.0.1", PEER))
    connection.sendall(b"echo 1\n")

    def exchange():
        while True:
            connection.sendall(connection.recv(4096))
    threading.Thread(target=exchange, daemon=True).start()
    generations.wan_hangs_in_sampling()


@behaviour
def idle_page_is_polled():
    """A Gradio page beside the generation; a browser outside the tree polls it."""
    import gradio
    with gradio.Blocks() as page:
        gradio.Textbox("idle")
    _, local, _ = page.launch(server_name="127.0.0.1", prevent_thread_lock=True, quiet=True)
    write_port(int(local.rstrip("/").rsplit(":", 1)[1]))
    generations.framepack_hangs_in_decode()


@behaviour
def asyncio_in_the_main_thread():
    """An event loop ticks in the main thread, the pipeline hangs in an executor's thread."""
    async def main():
        loop = asyncio.get_running_loop()
        job = loop.run_in_executor(None, lambda: generations.wan("--main-thread", "--fault", "hang-idle", "--fault-section", "1"))
        while not job.done():
            await asyncio.sleep(0.5)
    asyncio.run(main())


# --- other places to hang in

@behaviour
def outside_any_pipeline():
    """The pipeline has ended; what the script does next never does."""
    generations.wan()
    print("interpolating", flush=True)
    generations.pause_for_ever()


def hang_as_a_worker(results):
    generations.wan_hangs_in_decode()
    results.put("never")


@behaviour
def worker_process_hangs():
    """The main process waits at the queue of a spawned worker, which hangs in its decode."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    worker = context.Process(target=hang_as_a_worker, args=(results,))
    worker.start()
    results.get()


@behaviour
def worker_process_hangs_while_main_polls():
    """The same; the main process looks each 5 s whether the worker lives and says so."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    worker = context.Process(target=hang_as_a_worker, args=(results,))
    worker.start()
    while worker.is_alive():
        try:
            results.get(timeout=5)
        except queue.Empty:
            print("worker %d is alive" % worker.pid, flush=True)


@behaviour
def deadlock_after_sampling():
    """Two threads take two locks in opposite order, after a generation."""
    first, second = threading.Lock(), threading.Lock()
    generations.wan()

    def take(one, other):
        with one:
            time.sleep(1)
            note("hang-began")
            with other:
                pass
    threads = [threading.Thread(target=take, args=order) for order in ((first, second), (second, first))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def sample_a_little():
    """A bar of steps that becomes full, with torch imported: a job without diffusers."""
    import torch
    from tqdm import tqdm
    torch.set_num_threads(1)
    latent = torch.rand(1, 16, 3, 12, 12)
    for _ in tqdm(range(8), desc="Sampling"):
        latent = torch.nn.functional.conv3d(latent, torch.rand(16, 16, 3, 3, 3), padding=1)
        time.sleep(0.3)
    return latent


@behaviour
def child_that_pauses():
    """os.wait for a child of the tree that itself never ends."""
    sample_a_little()
    child = subprocess.Popen([sys.executable, "-c", "import ctypes; ctypes.CDLL(None).pause()"])
    note("hang-began")
    os.waitpid(child.pid, 0)


@behaviour
def pipe_from_a_stuck_writer():
    """Reads frames of a process of the tree that has stopped writing."""
    sample_a_little()
    program = "import os, ctypes; os.write(1, bytes(4096)); ctypes.CDLL(None).pause()"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    child.stdout.read(4096)
    note("hang-began")
    child.stdout.read(4096)


@behaviour
def stopped_encoder():
    """The encoder of the tree is stopped by SIGSTOP; its parent waits for it."""
    sample_a_little()
    child = subprocess.Popen(["sleep", "3600"])
    child.send_signal(signal.SIGSTOP)
    note("hang-began")
    child.wait()


@behaviour
def interpreter_lock_held():
    """A native wait with Python's lock held: no other thread runs."""
    repeat(1, lambda: print("never seen in the hang", flush=True))
    generations.framepack("--fault", "hang-idle-gil", "--fault-section", "1")


@behaviour
def native_spin():
    """Native work without an end, in a decode."""
    generations.framepack("--fault", "hang-spin", "--fault-section", "1")


@behaviour
def python_spin():
    """A loop of Python without an end, after a generation."""
    sample_a_little()
    note("hang-began")
    while True:
        pass


@behaviour
def second_clip():
    """The first clip of a batch is whole; the second hangs in its decode."""
    generations.wan()
    generations.wan_hangs_in_decode("--seed", "43")


@behaviour
def third_section():
    """Two sections are whole; the third hangs in its sampling."""
    generations.framepack("--fault", "hang-sampling", "--fault-section", "3")


@behaviour
def writer_is_blocked():
    """The save writes into a pipe that nobody reads."""
    sample_a_little()
    print("Saving video", flush=True)
    os.mkfifo("clip.mp4")
    both_ends = os.open("clip.mp4", os.O_RDWR)
    note("hang-began")
    while True:
        os.write(both_ends, bytes(65536))


@behaviour
def hang_in_save():
    """After the decode, before the file."""
    generations.framepack("--fault", "hang-save", "--fault-section", "1")


def read_weights(name, megabytes):
    with open(name, "wb") as f:
        f.truncate(megabytes << 20)
    weights = open(name, "rb")
    while weights.read(1 << 20):
        time.sleep(0.002)
    return weights


@behaviour
def load_stops_half_way():
    """Gigabytes of weights were read; the next file never gives a byte."""
    import torch
    print("Loading checkpoint shards", flush=True)
    shards = [read_weights("model-0000%d.safetensors" % n, 1024) for n in (1, 2, 3)]
    os.mkfifo("model-00004.safetensors")
    last = os.open("model-00004.safetensors", os.O_RDWR)
    note("hang-began")
    os.read(last, 1 << 20)
    del torch, shards


@behaviour
def weights_never_arrive():
    """Weights are mapped and copied to the device; the copy never ends."""
    import torch
    with open("dit.safetensors", "wb") as f:
        f.truncate(128 << 20)
    weights = torch.from_file("dit.safetensors", size=128 << 18)
    print("Moving weights to the device", flush=True)
    weights.clone()
    generations.pause_for_ever()


@behaviour
def stopped_by_sigstop():
    """The whole program is stopped in the middle of its sampling: `paused`."""
    import tiny_wan  # noqa: F401 - the imports take longer than the timer on a busy machine

    def stop():
        note("hang-began")
        os.kill(os.getpid(), signal.SIGSTOP)
    threading.Timer(10, stop).start()
    generations.wan("--steps", "400", "--step-seconds", "0.5")


@behaviour
def stopped_by_a_debugger():
    """A debugger outside the tree has attached and holds the program: `paused`."""
    import tiny_wan  # noqa: F401

    def give_pid():
        with open("pid.new", "w") as f:
            f.write(str(os.getpid()))
        os.rename("pid.new", "pid")
    threading.Timer(10, give_pid).start()
    generations.wan("--steps", "400", "--step-seconds", "0.5")


#: Steps before those that hang.
DONE, STEPS = 9, 30


def steps_of(bar):
    for _ in range(DONE):
        use_cpu(0.3)
        bar.update(1)


@behaviour
def job_thread_that_died():
    """The thread of the steps leaves without a word in the middle of its bar; the main thread asks each 0.3 s for its result."""
    from tqdm import tqdm
    bar, results = tqdm(total=STEPS, desc="Sampling"), []

    def job():
        steps_of(bar)
        note("hang-began")
        sys.exit()
    threading.Thread(target=job).start()
    while not results:
        time.sleep(0.3)


def encoder_server(port_to):
    """Answers one request, and waits for ever in the second."""
    answered = []

    class Encoder(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if answered:
                threading.Event().wait()
            answered.append(True)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            """Silent."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Encoder)
    port_to.send(server.server_port)
    server.serve_forever()


@behaviour
def encoder_server_of_its_own():
    """The job asks an encoder that it started as a server of its own; that one hangs in its second request."""
    import http.client
    from tqdm import tqdm
    mine, its = multiprocessing.Pipe()
    multiprocessing.get_context("fork").Process(target=encoder_server, args=(its,), daemon=True).start()
    port = mine.recv()

    def ask():
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/encode")
        connection.getresponse().read()
    ask()
    bar = tqdm(total=STEPS, desc="Sampling")
    steps_of(bar)
    note("hang-began")
    ask()
    bar.close()


if __name__ == "__main__":
    common.run_named(BEHAVIOURS, "hanging program")
