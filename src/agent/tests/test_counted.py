"""The function whose steps a bar counts: which thread it is in, and whether the program has left it."""
import asyncio
import os
import queue
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

from fpt_agent import counted  # noqa: E402


class Bar:
    """A bar that is drawn at each step."""

    def __init__(self, total=20):
        self.n, self.total = 0, total
        counted.drawn(self, 0, total, "it", False)

    def update(self):
        self.n += 1
        counted.drawn(self, self.n, self.total, "it", self.n == self.total)


class Worker:
    """A thread that takes its orders from a queue, as a page's does."""

    def __init__(self):
        self.orders, self.done, self.tid = queue.Queue(), threading.Event(), None
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        self.tid = threading.get_native_id()
        while True:
            order = self.orders.get()
            try:
                order()
            except RuntimeError:
                pass
            del order
            self.done.set()

    def do(self, order):
        self.orders.put(order)
        assert self.done.wait(60)


def steps(bar, count):
    for _ in range(count):
        bar.update()


class Counted(unittest.TestCase):
    def setUp(self):
        counted.forked()
        self.keep = []

    def bar(self, total=20):
        self.keep.append(Bar(total))
        return self.keep[-1]

    def left(self):
        told = counted.beat()
        return None if told is None else told["left"]

    def test_a_worker_that_dropped_its_job_has_left_the_steps(self):
        worker = Worker()
        bar = self.bar()
        worker.do(lambda: steps(bar, 6))
        self.assertEqual(counted.beat(), {"tid": worker.tid, "total": 20, "left": True})
        worker.done.clear()
        second = self.bar()

        def fails():
            steps(second, 3)
            raise RuntimeError("cancelled")

        worker.do(fails)
        self.assertTrue(self.left())

    def test_a_job_that_hangs_in_the_middle_has_not(self):
        worker, reached, go = Worker(), threading.Event(), threading.Event()
        bar = self.bar()

        def job():
            steps(bar, 6)
            reached.set()
            go.wait()

        worker.orders.put(job)
        self.assertTrue(reached.wait(60))
        self.assertEqual(counted.beat(), {"tid": worker.tid, "total": 20, "left": False})
        go.set()

    def test_a_thread_that_died_has(self):
        bar = self.bar()
        thread = threading.Thread(target=steps, args=(bar, 4))
        thread.start()
        thread.join()
        self.assertTrue(self.left())

    def test_a_coroutine_that_waits_is_in_its_steps_until_it_ends(self):
        async def serve(bar, wait):
            for _ in range(5):
                bar.update()
                await asyncio.sleep(0)
            await wait

        async def main():
            wait = asyncio.get_running_loop().create_future()
            task = asyncio.ensure_future(serve(self.bar(), wait))
            while counted.now.n < 5:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            self.assertIs(self.left(), False)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError as error:
                error.with_traceback(None)
            del task
            await asyncio.sleep(0)
            self.assertIs(self.left(), True)

        asyncio.run(main())

    def test_a_generator_that_a_page_reads_ends_when_it_is_closed(self):
        def frames(bar):
            while True:
                bar.update()
                yield bar.n

        found = frames(self.bar())
        for _ in range(3):
            next(found)
        self.assertIs(self.left(), False)
        found.close()
        self.assertIs(self.left(), True)

    def test_steps_that_a_loop_calls_one_by_one_are_no_end(self):
        bar = self.bar()

        def one_step():
            bar.update()

        def job():
            at = 0
            while at < 6:
                one_step()
                at += 1
            return self.left()

        worker, found = Worker(), []
        worker.do(lambda: found.append(job()))
        self.assertEqual(found, [False])
        self.assertTrue(self.left())

    def test_a_step_that_is_a_task_of_its_own_tells_nothing(self):
        bar = self.bar()

        async def one_step():
            bar.update()

        async def main():
            for _ in range(4):
                await asyncio.ensure_future(one_step())

        asyncio.run(main())
        self.assertIsNone(self.left())

    def test_who_makes_or_repaints_a_bar_does_not_count(self):
        bar = self.bar()
        self.assertIsNone(counted.beat())
        worker = Worker()
        worker.do(lambda: steps(bar, 2))
        counted.drawn(bar, bar.n, bar.total, "it", False)
        self.assertEqual(counted.beat()["tid"], worker.tid)

    def test_the_next_bar_and_a_full_one_leave_nothing_of_the_last(self):
        worker = Worker()
        first = self.bar()
        worker.do(lambda: steps(first, 6))
        second = self.bar()
        self.assertIsNone(counted.beat())
        steps(second, 20)
        self.assertIsNone(counted.beat())

    def test_a_bar_that_is_closed_before_it_is_full_still_has_steps_that_were_left(self):
        bar = self.bar()

        def stops_early():
            steps(bar, 6)
            counted.drawn(bar, bar.n, bar.total, "it", True)
            return self.left()

        worker, found = Worker(), []
        worker.do(lambda: found.append(stops_early()))
        self.assertEqual((found, self.left()), ([False], True))

    def test_files_and_bytes_are_no_steps(self):
        counted.drawn(self, 3, 10, "B", False)
        counted.drawn(self, 4, 10, "B", False)
        self.assertIsNone(counted.now)


if __name__ == "__main__":
    unittest.main()
