"""Hanging programs whose fault is not a call of the job itself: hang_jobs.py NAME. `hang-began` notes the moment.

The thread or process of the job died and nobody noticed, a server of the program's own is stuck, or a wait between two clips
has no limit and nobody ends it.
"""
import asyncio
import http.client
import http.server
import multiprocessing
import multiprocessing.managers
import os
import queue
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import common
from common import note, repeat, use_cpu

BEHAVIOURS = {}
#: Steps before the hang, and of the whole bar.
DONE, STEPS = 9, 30


def behaviour(function):
    BEHAVIOURS[function.__name__] = function
    return function


def new_bar():
    from tqdm import tqdm
    return tqdm(total=STEPS, desc="Sampling")


def steps_of(bar):
    for _ in range(DONE):
        use_cpu(0.3)
        bar.update(1)


# --- who did the job has died

@behaviour
def job_thread_that_raised():
    """The thread of the steps ends with a traceback; the main thread waits for its event without a limit."""
    bar, finished, frames = new_bar(), threading.Event(), []

    def job():
        steps_of(bar)
        note("hang-began")
        if not frames:
            raise RuntimeError("the preview could not be drawn")
        finished.set()
    threading.Thread(target=job).start()
    finished.wait()


@behaviour
def first_stage_that_left():
    """Two stages and a queue: the first leaves its loop early and hands nothing on, the second waits for its latents."""
    from tqdm import tqdm
    latents = queue.Queue()

    def sample():
        for n in tqdm(range(STEPS), desc="Sampling"):
            if n == DONE:
                note("hang-began")
                return
            use_cpu(0.3)
        latents.put(n)
    threading.Thread(target=sample).start()
    decoder = threading.Thread(target=latents.get)
    decoder.start()
    decoder.join()


@behaviour
def future_that_nobody_reads():
    """The error lies in a future of a thread pool; the main thread looks each second for the clip."""
    bar = new_bar()

    def job():
        steps_of(bar)
        note("hang-began")
        raise ValueError("no frames")
    pool = ThreadPoolExecutor(1)
    result = pool.submit(job)
    while not os.path.exists("clip.mp4"):
        time.sleep(1)
    result.result()


@behaviour
def task_that_nobody_awaits():
    """The same with an event loop: the task has failed, what waits is another one."""
    bar, frames = new_bar(), []

    async def job(finished):
        await asyncio.to_thread(steps_of, bar)
        note("hang-began")
        if not frames:
            raise ValueError("no frames")
        finished.set()

    async def main():
        finished = asyncio.Event()
        task = asyncio.create_task(job(finished))
        await finished.wait()
        await task
    asyncio.run(main())


def killed_in_its_steps():
    steps_of(new_bar())
    note("hang-began")
    os.kill(os.getpid(), signal.SIGKILL)


@behaviour
def pool_worker_that_was_killed():
    """A worker of multiprocessing.Pool was killed, as for want of memory: the pool starts another, its task is lost."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(killed_in_its_steps)


@behaviour
def request_whose_worker_died():
    """A client outside the tree waits for its clip; the thread of the steps left without a word, the thread of the request
    waits for it for ever, and the server takes other clients all the time."""
    bar = new_bar()

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            made = threading.Event()

            def job():
                steps_of(bar)
                note("hang-began")
                sys.exit()
            threading.Thread(target=job).start()
            made.wait()
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Silent."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    with open("port.new", "w") as f:
        f.write(str(server.server_port))
    os.rename("port.new", "port")
    server.serve_forever()


@behaviour
def steps_without_cpu_beside_a_busy_page():
    """A worker takes a job from a queue, waits for nearly all of its steps' time, and then for a lock that nobody releases;
    the page answers its order and many questions."""
    from tqdm import tqdm
    orders, lock = queue.Queue(), threading.Lock()

    def make_steps():
        for n in tqdm(range(STEPS), desc="Sampling"):
            if n == DONE:
                note("hang-began")
                lock.acquire()
                lock.acquire()
            time.sleep(0.4)

    def work():
        while True:
            orders.get()
            make_steps()
    threading.Thread(target=work, daemon=True).start()

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/generate":
                orders.put(None)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(bytes(100_000))

        def log_message(self, *_):
            """Silent."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    with open("port.new", "w") as f:
        f.write(str(server.server_port))
    os.rename("port.new", "port")
    server.serve_forever()


@behaviour
def child_that_pauses_while_it_is_polled():
    """A helper of the job works for a while and then pauses for ever; its parent looks each second whether it has ended."""
    steps_of(new_bar())
    program = "import ctypes\nfor n in range(9): sum(range(10 ** 7)); print('frame', n, flush=True)\nctypes.CDLL(None).pause()"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    for _ in range(9):
        child.stdout.readline()
    note("hang-began")
    while child.poll() is None:
        time.sleep(1)


@behaviour
def pipe_that_an_idle_helper_keeps_open():
    """Reads to the end of a pipe whose writer has ended; a helper that has inherited the other end waits for nothing."""
    bar = new_bar()
    steps_of(bar)
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    subprocess.Popen([sys.executable, "-c", "import select; select.select([], [], [])"], close_fds=False)
    os.close(writer)
    note("hang-began")
    while os.read(reader, 65536):
        bar.refresh()


# --- a server of the program's own is stuck

def in_the_middle_of_a_bar(ask):
    """Asks once before the steps, and once more in the middle of them: the answer that never comes."""
    ask()
    bar = new_bar()
    steps_of(bar)
    note("hang-began")
    ask()
    bar.close()


class DeadlockedEncoder(socketserver.StreamRequestHandler):
    """In its second request two threads take two locks in opposite order."""
    cache, weights, requests = threading.Lock(), threading.Lock(), []

    def handle(self):
        self.requests.append(self.rfile.readline())
        if len(self.requests) > 1:
            self.deadlock()
        self.wfile.write(b"encoded\n")

    def deadlock(self):
        def clean_up():
            with self.weights:
                time.sleep(1)
                with self.cache:
                    pass
        with self.cache:
            threading.Thread(target=clean_up).start()
            time.sleep(0.5)
            with self.weights:
                pass


def serve_on_a_unix_socket(ready):
    server = socketserver.ThreadingUnixStreamServer("encoder.sock", DeadlockedEncoder)
    ready.send("encoder.sock")
    server.serve_forever()


def start_server(serve, way="fork"):
    """Starts a server of this program's own; returns what it says of its address."""
    context = multiprocessing.get_context(way)
    mine, its = context.Pipe()
    context.Process(target=serve, args=(its,), daemon=True).start()
    return mine.recv()


@behaviour
def unix_socket_encoder_in_a_deadlock():
    """The job waits at a Unix socket for an encoder of its own, whose threads wait for each other."""
    path = start_server(serve_on_a_unix_socket)

    def ask():
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            client.sendall(b"a cat\n")
            client.recv(100)
    in_the_middle_of_a_bar(ask)


class AskingServer(http.server.BaseHTTPRequestHandler):
    """Runs a program for each request; that of the second never ends."""
    requests = []

    def do_GET(self):
        self.requests.append(self.path)
        program = "" if len(self.requests) == 1 else "import ctypes; ctypes.CDLL(None).pause()"
        subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Silent."""


def serve_by_programs(port_to):
    server = http.server.HTTPServer(("127.0.0.1", 0), AskingServer)
    port_to.send(server.server_port)
    server.serve_forever()


def ask_over_http(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/encode")
    connection.getresponse().read()


@behaviour
def server_that_waits_for_its_own_child():
    """The job asks a server with one thread, which waits for a program of its own."""
    port = start_server(serve_by_programs, "spawn")
    in_the_middle_of_a_bar(lambda: ask_over_http(port))


class Encoder:
    def __init__(self):
        self.requests = []

    def encode(self):
        self.requests.append(None)
        if len(self.requests) > 1:
            threading.Event().wait()


class Encoders(multiprocessing.managers.BaseManager):
    """Serves an encoder from a process of its own."""


Encoders.register("Encoder", Encoder)


@behaviour
def manager_whose_method_hangs():
    """The job calls a method of an object behind multiprocessing's manager."""
    with Encoders() as encoders:
        in_the_middle_of_a_bar(encoders.Encoder().encode)


def answer_calls(calls, lock):
    for n in range(2):
        calls.recv()
        if n:
            lock.acquire()
        calls.send("encoded")


@behaviour
def child_that_inherited_a_held_lock():
    """Another thread held a lock at the fork: in the child nobody ever gives it back. The job is a thread that waits at the
    child's pipe, the main thread joins it."""
    context, lock = multiprocessing.get_context("fork"), threading.Lock()
    mine, its = context.Pipe()
    with lock:
        context.Process(target=answer_calls, args=(its, lock), daemon=True).start()

    def ask():
        mine.send("a cat")
        mine.recv()
    job = threading.Thread(target=in_the_middle_of_a_bar, args=(ask,))
    job.start()
    job.join()


def serve_with_an_executor(port_to):
    """As web frameworks run their plain functions: in threads beside the event loop."""
    requests, lock = [], threading.Lock()

    def encode():
        requests.append(None)
        lock.acquire()

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.get_running_loop().run_in_executor(None, encode)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def serve():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port_to.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()
    asyncio.run(serve())


@behaviour
def event_loop_with_a_stuck_thread():
    """The job asks a server whose event loop is at rest and whose thread waits for a lock that it never gave back."""
    port = start_server(serve_with_an_executor)
    in_the_middle_of_a_bar(lambda: ask_over_http(port))


# --- a wait between clips that has no limit

def make_clip():
    from tqdm import tqdm
    for _ in tqdm(range(8), desc="Sampling"):
        use_cpu(0.3)


@behaviour
def cools_down_for_ever():
    """Between two clips the program waits for its thermometer, whose thread found no sensor and left."""
    cool = threading.Event()

    def measure():
        while os.path.exists("no-such-sensor"):
            time.sleep(5)
            cool.set()
    make_clip()
    threading.Thread(target=measure).start()
    note("hang-began")
    cool.wait()
    make_clip()


@behaviour
def cools_down_for_ever_beside_a_heartbeat():
    """The same beside a thread that writes a file each minute: that one's pauses end, the wait does not."""
    repeat(60, lambda: note("heartbeat"))
    cools_down_for_ever()


@behaviour
def event_loop_waits_for_nobody():
    """Between two clips an event loop waits for an event that nothing sets."""
    async def make_clips():
        order = asyncio.Event()
        await asyncio.to_thread(make_clip)
        note("hang-began")
        await order.wait()
        await asyncio.to_thread(make_clip)
    asyncio.run(make_clips())


if __name__ == "__main__":
    common.run_named(BEHAVIOURS, "hanging program")
