"""Honest programs around a job that is over or rests: honest_jobs.py NAME. Each ends well after FPT_SECONDS.

Servers whose job was cancelled, a job that waits for a server of its own which works, and waits between two clips that end
by their own time limit. Those that serve write their port into `port`.
"""
import asyncio
import ctypes
import http.client
import http.server
import multiprocessing
import multiprocessing.managers
import os
import queue
import select
import socket
import socketserver
import subprocess
import sys
import threading
import time
import traceback
import urllib.request

import common
from common import SECONDS, deadline, finish, url, use_cpu

BEHAVIOURS = {}
STEPS = 30


def behaviour(function):
    BEHAVIOURS[function.__name__] = function
    return function


def write_port(port):
    with open("port.new", "w") as f:
        f.write(str(port))
    os.rename("port.new", "port")


def make_clip():
    """A short clip: a bar that becomes full."""
    from tqdm import tqdm
    for _ in tqdm(range(8), desc="Sampling"):
        use_cpu(0.3)


# --- a job that its user cancelled

class Page(http.server.BaseHTTPRequestHandler):
    """/generate makes steps until /interrupt comes, as pages with an interrupt button do."""
    step, interrupted = 0, threading.Event()

    def do_GET(self):
        if self.path == "/generate":
            self.generate()
        elif self.path == "/interrupt":
            self.interrupted.set()
            threading.Timer(SECONDS, self.server.shutdown).start()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"%d" % Page.step)

    def generate(self):
        from tqdm import tqdm
        for n in tqdm(range(STEPS), desc="Sampling"):
            if self.interrupted.is_set():
                break
            use_cpu(0.3)
            Page.step = n + 1

    def log_message(self, *_):
        """Silent."""


@behaviour
def page_with_an_interrupt_button():
    """The steps are made in the thread of the request, which looks at a flag before each; a user outside the tree sets it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    write_port(server.server_port)
    server.serve_forever()
    finish()


@behaviour
def worker_that_gets_an_exception():
    """A worker at its queue is given KeyboardInterrupt in the middle of its bar, prints the traceback, and waits for the next
    order. The main thread looks at its socket twice a second."""
    from tqdm import tqdm
    orders, steps = queue.Queue(), []

    def work():
        while orders.get():
            try:
                for _ in tqdm(range(STEPS), desc="Sampling"):
                    use_cpu(0.3)
                    steps.append(None)
            except KeyboardInterrupt:
                traceback.print_exc()
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    orders.put("a cat")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("orders.sock")
    listener.listen()
    end = None
    while end is None or time.monotonic() < end:
        select.select([listener], [], [], 0.5)
        if len(steps) >= 6 and end is None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident), ctypes.py_object(KeyboardInterrupt))
            end = deadline()
    finish()


def make_steps(count):
    from tqdm import tqdm
    for _ in tqdm(range(STEPS), desc="Sampling"):
        use_cpu(0.3)
        count.value += 1


@behaviour
def server_with_a_process_per_job():
    """A socketserver starts a process for each job; on the user's wish it ends that one in the middle of its bar."""
    context = multiprocessing.get_context("spawn")
    count, jobs = context.Value("i", 0), []

    class Order(socketserver.StreamRequestHandler):
        def handle(self):
            words = self.rfile.readline().split()
            if words[1] == b"/generate":
                jobs.append(context.Process(target=make_steps, args=(count,)))
                jobs[-1].start()
            elif words[1] == b"/interrupt":
                jobs[-1].terminate()
                jobs[-1].join()
                print("\njob 1 was cancelled", flush=True)
                threading.Timer(SECONDS, self.server.shutdown).start()
            self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n%d" % count.value)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Order) as server:
        write_port(server.server_address[1])
        server.serve_forever()
    finish()


@behaviour
def page_whose_task_was_cancelled():
    """The steps are a task of an event loop; it is cancelled and prints the traceback of its cancellation."""
    from tqdm import tqdm
    step, over = [], asyncio.Event()

    async def make_clip_in_steps():
        try:
            for _ in tqdm(range(STEPS), desc="Sampling"):
                use_cpu(0.3)
                step.append(None)
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            traceback.print_exc()

    async def serve():
        tasks = []

        async def answer(reader, writer):
            path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
            if path == b"/generate":
                tasks.append(asyncio.create_task(make_clip_in_steps()))
            elif path == b"/interrupt":
                tasks[-1].cancel()
                over.set()
            writer.write(b"HTTP/1.0 200 OK\r\n\r\n%d" % len(step))
            await writer.drain()
            writer.close()
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        write_port(server.sockets[0].getsockname()[1])
        async with server:
            await over.wait()
            await asyncio.sleep(SECONDS)
    asyncio.run(serve())
    finish()


def serve_orders(orders, progress):
    """Answers each order at once with the number of steps, until SECONDS after /interrupt."""
    class Orders(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            orders.get(self.path, lambda: None)()
            if self.path == "/interrupt":
                threading.Timer(SECONDS, self.server.shutdown).start()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"%d" % progress())

        def log_message(self, *_):
            """Silent."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Orders) as server:
        write_port(server.server_port)
        server.serve_forever()


@behaviour
def page_that_keeps_the_bar_of_a_cancelled_job():
    """A worker takes jobs from a queue; a flag stops one in the middle, and the page keeps its bar, which stays open."""
    from tqdm import tqdm
    orders, interrupted, bars = queue.Queue(), threading.Event(), []

    def make_steps_until_interrupted():
        bar = tqdm(total=STEPS, desc="Sampling")
        bars.append(bar)
        while bar.n < STEPS and not interrupted.is_set():
            use_cpu(0.3)
            bar.update(1)

    def work():
        while True:
            orders.get()
            make_steps_until_interrupted()
    threading.Thread(target=work, daemon=True).start()
    serve_orders({"/generate": lambda: orders.put(None), "/interrupt": interrupted.set}, lambda: bars[0].n if bars else 0)
    finish()


@behaviour
def job_that_its_user_paused():
    """The user pauses the job in the middle of its bar; its thread looks each second whether it may go on."""
    from tqdm import tqdm
    go_on, done = threading.Event(), []
    go_on.set()

    def make_clip_unless_paused():
        for n in tqdm(range(STEPS), desc="Sampling"):
            while not go_on.wait(1 / common.SCALE):
                pass
            use_cpu(0.3)
            done.append(n)

    def pause():
        go_on.clear()
        threading.Timer(SECONDS / 2, go_on.set).start()
    job = threading.Thread(target=make_clip_unless_paused, daemon=True)
    serve_orders({"/generate": job.start, "/interrupt": pause}, lambda: len(done))
    job.join()
    finish()


# --- a server of the program's own that works

class SlowEncoder:
    def encode(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            use_cpu(0.05)


class Encoders(multiprocessing.managers.BaseManager):
    """Serves an encoder from a process of its own."""


Encoders.register("SlowEncoder", SlowEncoder)


@behaviour
def encoder_server_that_computes():
    """The job waits in the middle of its bar for an encoder behind a manager, which computes on one core for minutes."""
    from tqdm import tqdm
    with Encoders(ctx=multiprocessing.get_context("fork")) as encoders:
        encoder = encoders.SlowEncoder()
        for _ in tqdm(range(2), desc="Sampling"):
            use_cpu(1)
            encoder.encode(SECONDS / 2)
    finish()


class Relay(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = urllib.request.urlopen(url(self.path)).read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Silent."""


def relay(port_to):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Relay)
    port_to.send(server.server_port)
    server.serve_forever()


@behaviour
def encoder_server_that_asks_another_machine():
    """The job's own server has the prompt encoded elsewhere, where the answer comes late."""
    from tqdm import tqdm
    mine, its = multiprocessing.Pipe()
    multiprocessing.get_context("fork").Process(target=relay, args=(its,), daemon=True).start()
    port = mine.recv()
    for n in tqdm(range(10), desc="Sampling"):
        use_cpu(0.3)
        if n == 5:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("GET", "/late?after=%f" % SECONDS)
            connection.getresponse().read()
    finish()


# --- waits between clips that end by their own limit

@behaviour
def cools_down_by_an_event():
    """Between two clips the card cools down; a signal of the user's could end each wait before its limit."""
    go_on = threading.Event()
    make_clip()
    for degrees in (81, 74, 66):
        print("cooling down", degrees, flush=True)
        go_on.wait(SECONDS / 3)
    make_clip()
    finish()


@behaviour
def worker_waits_for_an_order_with_a_limit():
    """A worker thread waits at its queue with a limit, again and again, and then takes the next clip of its own list."""
    orders = queue.Queue()

    def work():
        make_clip()
        for _ in range(3):
            try:
                orders.get(timeout=SECONDS / 3)
            except queue.Empty:
                pass
        make_clip()
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    finish()


@behaviour
def looks_for_words_of_its_helper():
    """A select with a limit on the pipe of a helper that has nothing to say, and that lives on."""
    program = "import sys; sys.stdin.read()"
    helper = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    make_clip()
    for _ in range(3):
        select.select([helper.stdout], [], [], SECONDS / 3)
    make_clip()
    helper.stdin.close()
    helper.wait()
    finish()


@behaviour
def event_loop_waits_between_clips():
    """asyncio.wait_for with a limit between two clips that are made in an executor."""
    async def make_clips():
        order = asyncio.Event()
        await asyncio.to_thread(make_clip)
        for _ in range(3):
            try:
                await asyncio.wait_for(order.wait(), SECONDS / 3)
            except asyncio.TimeoutError:
                pass
        await asyncio.to_thread(make_clip)
    asyncio.run(make_clips())
    finish()


@behaviour
def timers_between_clips():
    """Each clip is made by a timer's thread, which sets the next timer; the main thread waits for the last clip."""
    made = threading.Event()

    def look(times):
        if times:
            threading.Timer(SECONDS / 3, look, (times - 1,)).start()
        else:
            make_clip()
            made.set()
    make_clip()
    look(3)
    made.wait()
    finish()


if __name__ == "__main__":
    common.run_named(BEHAVIOURS, "honest behaviour")
