"""The thread that the job hangs on, and the digest of the part of its stack that stays."""
import gc
import os
import sys
import textwrap
import threading
import time
import unittest
import weakref

from support_vault import PACKAGE, Supervisor, until

sys.path.insert(0, PACKAGE)

from fpt_agent.holder import LOOK_S, Threads, Watch, common, may_be_one, outline  # noqa: E402


class Over(Exception):
    """Ends a loop."""


class Program:
    """A thread that runs `function(self)`; the function calls `self.point()` now and then and is ended by it."""

    def __init__(self, function):
        self.over, self.stage, self.ready = False, 0, threading.Event()
        self.thread = threading.Thread(target=self._run, args=(function,), daemon=True)
        self.thread.start()
        self.ready.wait(60)

    def _run(self, function):
        try:
            self.ready.set()
            function(self)
        except Over:
            pass

    def point(self):
        if self.over:
            raise Over

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join(60)


def digests(program, seconds, watch, now=0.0):
    """The digests that are seen in so many seconds of the agent's clock."""
    watch.follow(program.thread.ident) if watch.thread != program.thread.ident else None
    seen = []
    for _ in range(int(seconds / LOOK_S)):
        now += LOOK_S * 1.01
        watch.look(now)
        time.sleep(0.001)
        if watch.digest is not None and (not seen or seen[-1] != watch.digest):
            seen.append(watch.digest)
    return seen, now


def spin(p):
    while True:
        if p.over:
            raise Over


def ask(p):
    def f():
        p.point()
        return False

    while not f():
        pass


def two_calls(p):
    def f():
        for _ in range(2000):
            p.point()

    def g():
        for _ in range(2000):
            p.point()

    while True:
        f()
        g()


def recurse(p):
    def deeper(n):
        p.point()
        return n and deeper(n - 1)

    while True:
        deeper(300)


def listed(p):
    def f(n):
        p.point()
        return n

    while True:
        [f(n) for n in range(5000)]


def waits(p):
    done = threading.Event()
    while not done.wait(0.01):
        p.point()


class Digest(unittest.TestCase):
    def test_a_loop_keeps_its_digest(self):
        for function in (spin, ask, two_calls, recurse, listed, waits):
            with self.subTest(function.__name__), Program(function) as program:
                seen, _ = digests(program, 60, Watch())
                self.assertEqual(len(seen), 1, seen)

    def test_a_program_that_goes_on_changes_it(self):
        def work(p, stage):
            while p.stage == stage:
                p.point()

        def stages(p):
            work(p, 0)
            work(p, 1)
            work(p, 2)
            work(p, 3)
            spin(p)

        watch, now, found = Watch(), 0.0, []
        with Program(stages) as program:
            for stage in range(5):
                program.stage = stage
                time.sleep(0.05)
                seen, now = digests(program, 5.2, watch, now)
                found += seen[-1:]
        self.assertEqual(len(set(found)), 5, found)

    def test_a_deep_stack_and_one_that_is_gone_are_none(self):
        def deep(n):
            return deep(n - 1) if n else outline(sys._getframe())

        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(20000)
        try:
            done = []
            threading.stack_size(512 << 20)
            thread = threading.Thread(target=lambda: done.append(deep(5000)))
            thread.start()
            thread.join(60)
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(0)
        self.assertEqual(done, [None])
        self.assertIsNone(outline(None))
        watch = Watch()
        watch.follow(thread.ident)
        watch.look(1.0)
        self.assertIsNone(watch.digest)

    def test_no_frame_is_kept(self):
        class Tensor:
            """Stands for one."""

        gone = []

        def hold(p):
            def inner():
                tensor = Tensor()
                gone.append(weakref.ref(tensor))
                while not p.stage:
                    p.point()

            inner()
            spin(p)

        watch = Watch()
        with Program(hold) as program:
            digests(program, 10, watch)
            self.assertIsNotNone(gone[0]())
            program.stage = 1
            end = time.monotonic() + 60
            while gone[0]() is not None and time.monotonic() < end:
                time.sleep(0.01)
            gc.disable()
            self.addCleanup(gc.enable)
            self.assertIsNone(gone[0]())

    def test_parts_of_one_place(self):
        a, b = (1, 10), (2, 20)
        self.assertEqual(common([(a, b)]), (a, (2, 0)))
        self.assertEqual(common([(a, b, (3, 1)), (a, b)]), (a, (2, 0)))
        self.assertEqual(common([(a, b, (3, 1)), (a, b, (4, 1))]), (a, (2, 0)))
        self.assertEqual(common([(a, b), (a, (2, 21))]), (a, (2, 0)))
        self.assertEqual(common([(a, b), ((1, 11), b)]), ((1, 0),))
        self.assertEqual(common([(a,), (b,)]), ())
        self.assertTrue(may_be_one((a, (2, 0)), (a, b, (3, 0))))
        self.assertFalse(may_be_one((a, (2, 0)), ((1, 11), (2, 0))))
        self.assertTrue(may_be_one((), (a,)))


class Holders(unittest.TestCase):
    def flight(self, ident, age):
        return ident, "conv3d", None, None, "native", age

    def test_the_oldest_operation_then_the_job_then_the_phase(self):
        threads, me = Threads(), threading.get_ident()
        self.assertIsNone(threads.holder([]))
        self.assertEqual(threads.holder([self.flight(7, 0.0)]), 7)
        threads.phases[me] = ["model_load"]
        self.assertEqual(threads.holder([self.flight(7, 0.0)]), me)
        with Program(spin) as program:
            threads.jobs[program.thread.ident] = True
            self.assertEqual(threads.holder([self.flight(7, 0.9)]), program.thread.ident)
            self.assertEqual(threads.holder([self.flight(7, 1.0), self.flight(8, 3.0)]), 8)
        # its thread has ended: the job is none of a thread that may have its number next
        self.assertEqual(threads.holder([]), me)

    def test_numbers_are_the_kernels(self):
        threads = Threads()
        self.assertEqual(threads.number(threading.get_ident()), threading.get_native_id())
        with Program(spin) as program:
            self.assertEqual(threads.number(program.thread.ident), program.thread.native_id)
        self.assertIsNone(threads.number(1))


HOLDER = """
    import threading, time
    import fpt_agent.state as st
    from fpt_agent import phases

    def work():
        print(threading.get_native_id(), flush=True)
        with phases.Job("call"):
            with st.state.span("sampling"):
                while True: pass

    threading.Thread(target=work, daemon=True).start()
    time.sleep(600)
"""

FORK = """
    import os, time
    import fpt_agent.state as st
    from fpt_agent import phases

    with phases.Job("call"), st.state.span("sampling"):
        child = os.fork()
        if child == 0:
            time.sleep(600)
        print(child, flush=True)
        time.sleep(600)
"""


class Told(unittest.TestCase):
    def found(self, look):
        """What it gives once that is something."""
        until(look)
        return look()

    def start(self, s, code):
        process = s.start("-c", textwrap.dedent(code))
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_the_heartbeat_names_thread_and_stack(self):
        with Supervisor() as s:
            process = self.start(s, HOLDER)
            tid = int(process.stdout.readline())
            self.assertNotEqual(tid, process.pid)
            found = self.found(lambda: [m for m in s.of("beat") if m["stack"] is not None])
            self.assertEqual({m["holder"] for m in found}, {tid})
            self.assertEqual(found[-1]["job"], "running")

    def test_a_forked_child_has_no_job_and_no_holder(self):
        with Supervisor() as s:
            process = self.start(s, FORK)
            child = int(process.stdout.readline())
            self.addCleanup(os.kill, child, 9)
            beats = self.found(lambda: [m for m in s.of("beat") if m["pid"] == child])
            self.assertEqual((beats[0]["phase"], beats[0]["job"], beats[0]["holder"]), ("unknown", None, None))
            own = self.found(lambda: [m for m in s.of("beat") if m["pid"] == process.pid and m["job"] == "running"])
            self.assertEqual((own[0]["phase"], own[0]["holder"]), ("sampling", process.pid))


if __name__ == "__main__":
    unittest.main()
