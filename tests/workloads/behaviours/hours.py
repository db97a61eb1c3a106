"""Kinds of honest work for the ten process-hours (tests/proof/honest_hours.py): hours.py KIND. Each lasts FPT_SECONDS.

CPU kinds work for about 5 % of the time, so that 25 of them fit onto two cores; they work in stretches of seconds as real ones
do. What is not here comes from honest_more.py.
"""
import os
import subprocess
import sys
import time

import common
import honest_more
from common import finish, use_cpu
from honest_more import behaviour, make_file, until_deadline

#: Of a stretch of work and a pause.
WORK_S, PAUSE_S = 3, 57


def pace():
    time.sleep(PAUSE_S / common.SCALE)


@behaviour
def numpy_in_stretches():
    import numpy
    a = numpy.random.default_rng(0).random((200, 200))
    for _ in until_deadline():
        end = time.thread_time() + WORK_S
        while time.thread_time() < end:
            numpy.linalg.svd(a)
        pace()
    finish()


@behaviour
def compile_in_stretches():
    with open("unit.c", "w") as f:
        f.write("".join("int f%d(int a) { return a * %d; }\n" % (i, i) for i in range(2000)))
    for _ in until_deadline():
        subprocess.run(["cc", "-O2", "-c", "unit.c"], check=True)
        pace()
    finish()


@behaviour
def imports_in_stretches():
    for _ in until_deadline():
        subprocess.run([sys.executable, "-c", "import numpy, PIL, huggingface_hub"], check=True)
        pace()
    finish()


@behaviour
def unzip_in_stretches():
    import zipfile
    with zipfile.ZipFile("pack.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("lora.bin", os.urandom(16 << 20))
    for _ in until_deadline():
        with zipfile.ZipFile("pack.zip") as archive:
            archive.extractall("pack")
        pace()
    finish()


@behaviour
def upscaling_in_stretches():
    """A bar of steps first, then an upscaler on one core, a frame a minute."""
    import numpy
    honest_more.small_job()
    print("upscaling", flush=True)
    frame = numpy.random.default_rng(0).random((512, 512))
    for _ in until_deadline():
        end = time.thread_time() + WORK_S
        while time.thread_time() < end:
            numpy.fft.irfft2(numpy.fft.rfft2(frame))
        pace()
    finish()


@behaviour
def checksums_in_stretches():
    import hashlib
    make_file("pack.safetensors", 128, sparse=True)
    for _ in until_deadline():
        with open("pack.safetensors", "rb") as f:
            hashlib.file_digest(f, "sha256")
        pace()
    finish()


@behaviour
def queue_between_jobs():
    """A worker with a job each four minutes: a bar, CPU work, a file; between them it looks for jobs each 5 s."""
    for number, _ in enumerate(until_deadline()):
        honest_more.small_job()
        with open("clip_%d.mp4" % number, "wb") as f:
            f.write(os.urandom(1 << 20))
        end = time.monotonic() + 240 / common.SCALE
        while time.monotonic() < end:
            os.path.exists("next-job.json")
            time.sleep(5)
    finish()


@behaviour
def generations_with_pauses():
    """A batch of real tiny generations, each in a process of its own, with pauses of four minutes."""
    import generations
    program = os.path.join(common.WORKLOADS, "tiny_wan.py")
    for number, _ in enumerate(until_deadline()):
        subprocess.run([sys.executable, program, *generations.SMALL_WAN, "--seed", str(number)], check=True)
        time.sleep(240 / common.SCALE)
    finish()


@behaviour
def pages_fall_out_of_memory():
    """A mapped file of twice the memory that the control group allows: each touch reads a page again, as swapping does.

    CGROUP_LIMIT is a memory control group that honest_hours.py has made; this process enters it.
    """
    with open(os.path.join(os.environ["CGROUP_LIMIT"], "cgroup.procs"), "w") as f:
        f.write(str(os.getpid()))
    import mmap
    make_file("model.gguf", 192)
    with open("model.gguf", "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        for number, _ in enumerate(until_deadline()):
            pages[(number * 7919 * 4096) % len(pages)]
            time.sleep(0.05)
    finish()


@behaviour
def lock_waits():
    """Waits for a lock again and again, minutes each time."""
    for _ in until_deadline():
        program = ("import fcntl, sys, time; f = open('hub.lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX);"
                   "print('held', flush=True); time.sleep(float(sys.argv[1]))")
        holder = subprocess.Popen([sys.executable, "-c", program, str(300 / common.SCALE)], stdout=subprocess.PIPE)
        holder.stdout.readline()
        import fcntl
        with open("hub.lock", "w") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
        holder.wait()
        use_cpu(1)
    finish()


if __name__ == "__main__":
    common.run_named(honest_more.BEHAVIOURS, "kind of work")
