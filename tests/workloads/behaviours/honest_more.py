"""More honest behaviours, as machines that make videos have them: honest_more.py NAME. Each ends well after FPT_SECONDS.

They are written so that little moves: bytes in small pieces, one core or none, no line and no bar. Those that use PEER need
`peer.py serve` outside the tree. Everything is written into the current folder.
"""
import asyncio
import ctypes
import fcntl
import gc
import hashlib
import http.server
import importlib
import mmap
import multiprocessing
import os
import pty
import re
import selectors
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time
import urllib.request
import zipfile

import common
from common import PEER, SECONDS, deadline, finish, url, use_cpu

BEHAVIOURS = {}


def behaviour(function):
    BEHAVIOURS[function.__name__] = function
    return function


def until_deadline():
    """Yields until the behaviour's time is over."""
    end = deadline()
    while time.monotonic() < end:
        yield


def make_file(name, megabytes, sparse=False):
    with open(name, "wb") as f:
        if sparse:
            f.truncate(megabytes << 20)
        else:
            piece = os.urandom(1 << 20)
            for _ in range(megabytes):
                f.write(piece)
    return name


def drop_cache(name):
    """Asks the kernel to forget the file's pages, so that the next read is one of the disk."""
    with open(name, "rb") as f:
        os.fdatasync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# --- imports and computation on one core

@behaviour
def imports_many_modules():
    """Packages whose modules take long to import, without a line."""
    os.makedirs("bulky", exist_ok=True)
    sys.path.insert(0, os.getcwd())
    open("bulky/__init__.py", "w").close()
    for number, _ in enumerate(until_deadline()):
        with open("bulky/part_%d.py" % number, "w") as f:
            f.write("TABLE = {i: str(i) * 3 for i in range(60_000)}\n" * 4)
        importlib.invalidate_caches()
        importlib.import_module("bulky.part_%d" % number)
        del sys.modules["bulky.part_%d" % number]
        time.sleep(0.2)
    finish()


@behaviour
def imports_torch_cold():
    """The real imports, again and again in new interpreters, with their files dropped from the cache."""
    for _ in until_deadline():
        subprocess.run([sys.executable, "-c", "import torch, diffusers, transformers"], check=True)
        import torch
        drop_cache(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
    finish()


@behaviour
def numpy_on_one_core():
    import numpy
    a = numpy.random.default_rng(0).random((400, 400))
    for _ in until_deadline():
        a = numpy.linalg.svd(a)[0]
        time.sleep(0.05)
    finish()


@behaviour
def regular_expressions():
    text = "a cat walks on the grass, realistic style, " * 20_000
    for _ in until_deadline():
        re.findall(r"(\w+)\s(?=\w+\s\w+)", text)
        time.sleep(0.1)
    finish()


@behaviour
def garbage_collection():
    """A heap of millions of objects is walked for seconds at a time."""
    heap = [[i, str(i)] for i in range(1_000_000)]
    for _ in until_deadline():
        gc.collect()
        time.sleep(0.1)
    del heap
    finish()


@behaviour
def checksum_of_weights():
    """sha256 of a file as large as weights, on one core, without a bar."""
    make_file("model.safetensors", 512, sparse=True)
    for _ in until_deadline():
        with open("model.safetensors", "rb") as f:
            digest = hashlib.sha256()
            while piece := f.read(1 << 20):
                digest.update(piece)
                time.sleep(0.01)
    finish()


@behaviour
def pool_works_main_waits():
    """A pool computes, the main thread waits for its result."""
    with multiprocessing.Pool(2) as pool:
        pool.map(use_some_cpu, [SECONDS] * 2)
    finish()


def use_some_cpu(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        use_cpu(0.05)
        time.sleep(0.15)


@behaviour
def pool_idle_between_tasks():
    """A process pool has no task for long."""
    from concurrent.futures import ProcessPoolExecutor
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(use_some_cpu, [1, 1]))
        time.sleep(SECONDS)
        list(pool.map(use_some_cpu, [1, 1]))
    finish()


# --- archives, files, disks

@behaviour
def unzip_archive():
    with zipfile.ZipFile("assets.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("weights.bin", os.urandom(8 << 20))
    for _ in until_deadline():
        with zipfile.ZipFile("assets.zip") as archive:
            archive.extractall("unzipped")
        time.sleep(0.5)
    finish()


@behaviour
def tar_in_a_child():
    make_file("data.bin", 16)
    with tarfile.open("data.tar.gz", "w:gz") as archive:
        archive.add("data.bin")
    for _ in until_deadline():
        subprocess.run(["tar", "xzf", "data.tar.gz"], check=True)
        time.sleep(0.3)
    finish()


@behaviour
def copy_file_tree():
    """rsync-like: small files, one after the other, at a low rate."""
    os.makedirs("from", exist_ok=True)
    os.makedirs("to", exist_ok=True)
    for number in range(20):
        make_file("from/%02d.png" % number, 1)
    for _ in until_deadline():
        for name in os.listdir("from"):
            shutil.copy2("from/" + name, "to/" + name)
            time.sleep(0.4)
    finish()


@behaviour
def slow_disk_read():
    """A network drive at 200 kB/s: reads of a file whose pages are not in the cache."""
    make_file("scan.bin", 64)
    drop_cache("scan.bin")
    with open("scan.bin", "rb", buffering=0) as f:
        for _ in until_deadline():
            if not f.read(20_000):
                f.seek(0)
            time.sleep(0.1)
    finish()


@behaviour
def mapped_file_page_by_page():
    """A mapped file of which a page is touched now and then, as a model larger than memory."""
    make_file("big.gguf", 256, sparse=True)
    with open("big.gguf", "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        for number, _ in enumerate(until_deadline()):
            pages[(number * 7919 * 4096) % len(pages)]
            time.sleep(0.02)
    finish()


@behaviour
def pip_installs_wheels():
    """pip installs a local wheel into a folder, many times."""
    wheel = "toy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("toy/__init__.py", "")
        archive.writestr("toy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        archive.writestr("toy-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("toy-1.0.dist-info/RECORD", "")
    for _ in until_deadline():
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check",
                        "--upgrade", "--target", "site", wheel], check=True, stdout=subprocess.DEVNULL)
        time.sleep(5)
    finish()


# --- networks

@behaviour
def curl_without_a_bar():
    """curl -s at 20 kB/s; the main thread waits for the child."""
    subprocess.run(["curl", "-s", "--max-time", "%d" % SECONDS, "-o", "vae.safetensors", url("/drip?rate=20000")])
    finish()


@behaviour
def download_in_small_pieces():
    """urllib at 20 kB/s, without a bar."""
    with urllib.request.urlopen(url("/drip?rate=20000")) as answer, open("lora.safetensors.part", "wb") as f:
        for _ in until_deadline():
            f.write(answer.read(4096))
    finish()


@behaviour
def upload_over_http():
    """A PUT whose body the other side reads at 20 kB/s."""
    connection = socket.create_connection(("127.0.0.1", PEER))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
    connection.sendall(b"PUT /clip.mp4?rate=20000 HTTP/1.1\r\nHost: archive\r\nContent-Length: 100000000\r\n\r\n")
    for _ in until_deadline():
        connection.sendall(b"v" * 8192)
    finish()


@behaviour
def clone_in_a_child():
    """Like `git clone`: a child receives 30 kB/s, its parent waits for it."""
    program = ("import socket, sys, time\nc = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
               "c.sendall(b'GET /drip?rate=30000 HTTP/1.0\\r\\n\\r\\n')\nend = time.monotonic() + float(sys.argv[2])\n"
               "while time.monotonic() < end: c.recv(4096)\n")
    subprocess.run([sys.executable, "-c", program, str(PEER), str(SECONDS)], check=True)
    finish()


@behaviour
def event_stream_client():
    """Waits for server-sent events, one each 60 s."""
    with urllib.request.urlopen(url("/events?each=%f" % (60 / common.SCALE))) as answer:
        for _ in until_deadline():
            answer.readline()
    finish()


@behaviour
def long_poll():
    """One request that the other side answers at the end, as a gRPC stream or a job service does."""
    with urllib.request.urlopen(url("/late?after=%f" % SECONDS)) as answer:
        answer.read()
    finish()


@behaviour
def queue_on_another_machine():
    """Asks a remote queue for a job each 3 s."""
    for _ in until_deadline():
        urllib.request.urlopen(url("/poll")).read()
        time.sleep(3)
    finish()


@behaviour
def blocking_pop():
    """redis' BLPOP: blocks in recv until something comes."""
    connection = socket.create_connection(("127.0.0.1", PEER))
    connection.sendall(b"silent\n")
    connection.settimeout(SECONDS)
    try:
        connection.recv(100)
    except TimeoutError:
        pass
    finish()


@behaviour
def connection_with_back_off():
    """The service is not up: attempts with growing pauses."""
    pause = 1.0
    for _ in until_deadline():
        try:
            socket.create_connection(("127.0.0.1", 9), 2).close()
        except OSError:
            time.sleep(min(pause, 60) / common.SCALE)
            pause *= 2
    finish()


# --- servers without a job

@behaviour
def waits_for_a_unix_socket():
    """A worker whose master has not made its socket yet."""
    for _ in until_deadline():
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect("master.sock")
        except OSError:
            time.sleep(2)
        client.close()
    finish()


@behaviour
def asyncio_on_a_unix_socket():
    async def serve():
        server = await asyncio.start_unix_server(lambda reader, writer: writer.close(), "api.sock")
        async with server:
            await asyncio.sleep(SECONDS)
    asyncio.run(serve())
    finish()


class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        """Silent."""


def serve_in_main_thread():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Timer(SECONDS, server.shutdown).start()
    server.serve_forever()


@behaviour
def http_server_in_main_thread():
    serve_in_main_thread()
    finish()


@behaviour
def prefork_master():
    """gunicorn-like: the master looks after its workers each second, they wait in accept."""
    listener = socket.create_server(("127.0.0.1", 0))
    workers = []
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            listener.settimeout(SECONDS + 5)
            try:
                listener.accept()
            finally:
                os._exit(0)
        workers.append(pid)
    for _ in until_deadline():
        os.waitpid(-1, os.WNOHANG)
        time.sleep(1)
    for pid in workers:
        os.kill(pid, 15)
        os.waitpid(pid, 0)
    finish()


def small_job():
    from tqdm import tqdm
    for _ in tqdm(range(8), desc="Sampling"):
        use_cpu(0.3)


@behaviour
def server_after_a_job():
    """One job in this process: a bar and CPU work. Then it waits for the next."""
    small_job()
    print("job done", flush=True)
    serve_in_main_thread()
    finish()


def cancelled_job():
    """What a job leaves behind that its user cancelled at a third: a bar that is closed by the way out of the loop."""
    from tqdm import tqdm
    try:
        for n in tqdm(range(30), desc="Sampling"):
            use_cpu(0.3)
            if n == 10:
                raise InterruptedError("cancelled by the user")
    except InterruptedError as e:
        print(e, flush=True)


@behaviour
def page_whose_job_was_cancelled():
    """A page: its worker was cancelled in the middle of a bar, and waits for the next order."""
    import queue
    orders = queue.Queue()

    def work():
        while orders.get():
            cancelled_job()
    threading.Thread(target=work, daemon=True).start()
    orders.put("a cat")
    serve_in_main_thread()
    finish()


@behaviour
def asyncio_server_whose_job_was_cancelled():
    """The same with an event loop that runs its jobs in an executor."""
    import asyncio

    async def serve():
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        await asyncio.get_running_loop().run_in_executor(None, cancelled_job)
        await asyncio.sleep(SECONDS)
        server.close()
    asyncio.run(serve())
    finish()


def work_on_queue(jobs, results):
    while jobs.get() is not None:
        small_job()
        results.put("clip.mp4")


@behaviour
def server_after_a_job_of_its_worker():
    """The job was done by a spawned worker, which waits at its queue."""
    context = multiprocessing.get_context("spawn")
    jobs, results = context.Queue(), context.Queue()
    worker = context.Process(target=work_on_queue, args=(jobs, results))
    worker.start()
    jobs.put("a cat")
    print(results.get(), flush=True)
    serve_in_main_thread()
    jobs.put(None)
    worker.join()
    finish()


@behaviour
def notebook_kernel_idle():
    """A kernel after a cell with a bar: a poll on five sockets."""
    small_job()
    selector = selectors.DefaultSelector()
    for _ in range(5):
        selector.register(socket.create_server(("127.0.0.1", 0)), selectors.EVENT_READ)
    selector.select(SECONDS)
    finish()


@behaviour
def model_loaded_and_idle():
    """64 MiB of weights are mapped, torch is imported, no step was made: the owner waits for a job."""
    import torch
    make_file("wan.safetensors", 80)
    weights = torch.from_file("wan.safetensors", size=80 << 18)
    print("model loaded", flush=True)
    threading.Event().wait(SECONDS)
    del weights
    finish()


# --- waits for somebody or something else

@behaviour
def pause_between_clips():
    """A batch script lets the card cool down between two clips."""
    small_job()
    print("cooling down", flush=True)
    time.sleep(SECONDS)
    small_job()
    finish()


@behaviour
def waits_at_a_prompt():
    """A question at a terminal, which nobody answers for long."""
    master, slave = pty.openpty()
    threading.Timer(SECONDS, lambda: os.write(master, b"y\n")).start()
    os.write(slave, b"Overwrite clip.mp4? [y/N] ")
    os.read(slave, 10)
    finish()


@behaviour
def waits_for_a_debugger():
    """Like debugpy's wait_for_client: a listening thread, the main thread waits for its event."""
    attached = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        listener.settimeout(SECONDS)
        try:
            listener.accept()
        except TimeoutError:
            attached.set()
    threading.Thread(target=accept, daemon=True).start()
    attached.wait()
    finish()


@behaviour
def waits_for_a_file_lock():
    """A POSIX lock that another process of the tree holds."""
    program = ("import fcntl, sys, time; f = open('weights.lock', 'w'); fcntl.lockf(f, fcntl.LOCK_EX);"
               "print('held', flush=True); time.sleep(float(sys.argv[1]))")
    holder = subprocess.Popen([sys.executable, "-c", program, str(SECONDS)], stdout=subprocess.PIPE)
    holder.stdout.readline()
    with open("weights.lock", "w") as f:
        fcntl.lockf(f, fcntl.LOCK_EX)
    holder.wait()
    finish()


@behaviour
def watches_a_folder():
    """inotify: waits for a picture to be dropped into a folder."""
    libc = ctypes.CDLL(None, use_errno=True)
    os.makedirs("inbox", exist_ok=True)
    watch = libc.inotify_init()
    libc.inotify_add_watch(watch, b"inbox", 0x100)
    threading.Timer(SECONDS, lambda: open("inbox/cat.png", "w").close()).start()
    os.read(watch, 4096)
    finish()


@behaviour
def timer_descriptor():
    """A scheduler that sleeps in one long poll for its time."""
    select = selectors.DefaultSelector()
    reader, writer = os.pipe()
    select.register(reader, selectors.EVENT_READ)
    select.select(SECONDS)
    os.close(writer)
    finish()


# --- children that work

def ffmpeg():
    import imageio_ffmpeg
    return imageio_ffmpeg.get_ffmpeg_exe()


@behaviour
def encoder_in_a_child():
    """ffmpeg encodes at the pace of its input; its parent waits."""
    subprocess.run([ffmpeg(), "-v", "error", "-y", "-re", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=10",
                    "-t", "%d" % SECONDS, "clip.mp4"], check=True, stdin=subprocess.DEVNULL)
    finish()


@behaviour
def frames_through_a_pipe():
    """Frames are written into the encoder's pipe, slowly."""
    command = [ffmpeg(), "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "64x64", "-r", "8", "-i", "-", "piped.mp4"]
    encoder = subprocess.Popen(command, stdin=subprocess.PIPE)
    for _ in until_deadline():
        encoder.stdin.write(bytes(64 * 64 * 3))
        encoder.stdin.flush()
        time.sleep(0.5)
    encoder.stdin.close()
    encoder.wait()
    finish()


@behaviour
def compiles_kernels():
    """cc, one source after the other, as the first run of an extension."""
    source = "#include <stdio.h>\n" + "".join("int f%d(int a) { return a * %d + f%d(a); }\n" % (i, i, max(i - 1, 0)) for i in range(1, 1500))
    with open("kernel.c", "w") as f:
        f.write(source.replace("int f1(int a)", "int f0(int a);\nint f1(int a)"))
    for _ in until_deadline():
        subprocess.run(["cc", "-w", "-O2", "-c", "kernel.c"], check=True)
        time.sleep(0.2)
    finish()


@behaviour
def launcher_leaves_a_child():
    """The launcher returns at once; its child works and writes the result."""
    if os.fork():
        os._exit(0)
    use_some_cpu(SECONDS)
    finish()


@behaviour
def child_of_a_double_fork():
    """A daemon: two forks and a session of its own, then work."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    use_some_cpu(SECONDS)
    finish()


# --- a generation that goes on without the card

@behaviour
def upscaling_after_the_pipeline():
    """A real tiny pipeline, then minutes of upscaling on one core."""
    import generations
    import numpy
    generations.wan()
    print("upscaling", flush=True)
    frame = numpy.random.default_rng(0).random((256, 256))
    for _ in until_deadline():
        numpy.kron(numpy.fft.irfft2(numpy.fft.rfft2(frame)), numpy.ones((2, 2)))
        time.sleep(0.02)
    finish()


@behaviour
def decode_on_the_cpu():
    """A bar of steps, then a decode of minutes on the CPU in one thread: convolutions in Python's eyes, no line."""
    import torch
    torch.set_num_threads(1)
    small_job()
    print("decoding on the CPU", flush=True)
    clip, kernel = torch.rand(1, 8, 8, 64, 64), torch.rand(8, 8, 3, 3, 3)
    for _ in until_deadline():
        torch.nn.functional.conv3d(clip, kernel, padding=1)
        time.sleep(0.05)
    finish()


@behaviour
def saves_png_frames():
    """Hundreds of frames become files, slowly, after the bar."""
    import numpy
    from PIL import Image
    small_job()
    for number, _ in enumerate(until_deadline()):
        Image.fromarray(numpy.full((256, 256, 3), number % 255, numpy.uint8)).save("frame_%05d.png" % number)
        time.sleep(0.2)
    finish()


@behaviour
def slow_steps():
    """A real tiny generation whose steps take half a minute."""
    import generations
    generations.wan("--steps", "6", "--step-seconds", "%f" % (SECONDS / 6))
    finish()


@behaviour
def record_of_sensors():
    """A monitor reads a packed record each second and waits for more."""
    for _ in until_deadline():
        struct.unpack("16d", os.urandom(128))
        time.sleep(1)
    finish()


if __name__ == "__main__":
    common.run_named(BEHAVIOURS, "honest behaviour")
