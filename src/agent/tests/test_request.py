"""Which function is the request around a pipeline's call."""
import asyncio
import concurrent.futures
import sys
import threading
import unittest

import support_mem  # noqa: F401

from fpt_agent import request

seen = []


def note():
    seen.append(request.loop_of(sys._getframe(1)))


def in_for():
    for _ in range(1):
        note()


def in_while():
    n = 0
    while n < 1:
        note()
        n += 1


def in_a_for_of_an_endless_one():
    n = 0
    while n < 1:
        for _ in range(1):
            for _ in range(1):
                try:
                    note()
                except ValueError:
                    pass
        n += 1


def in_a_while_of_a_for():
    for _ in range(1):
        n = 0
        while n < 1:
            note()
            n += 1


def in_a_for_of_a_for():
    for _ in range(1):
        with open("/dev/null"):
            for _ in range(1):
                note()


def in_a_comprehension():
    return [note() for _ in range(1)]


def between_loops():
    for _ in range(2):
        pass
    n = 0
    while n < 2:
        n += 1
    try:
        int("no number")
    except ValueError:
        pass
    note()
    while n < 4:
        n += 1


def pipeline():
    return request.find(sys._getframe())


def clip():
    return pipeline()


def handler():
    for _ in range(1):
        found = clip()
    return found, name(found)


def serve():
    n = 0
    while n < 1:
        found = handler()
        n += 1
    return found


def name(found):
    """Name of the function whose call it is; only while it lasts."""
    frame = sys._getframe()
    while found is not None and frame is not None:
        if frame.f_trace is found:
            return frame.f_code.co_name
        frame = frame.f_back
    return None


class Request(unittest.TestCase):
    def test_kinds_of_loops(self):
        wanted = {in_for: "for", in_while: "while", in_a_for_of_an_endless_one: "while", in_a_while_of_a_for: "while",
                  in_a_for_of_a_for: "for", in_a_comprehension: "for", between_loops: None}
        for function, kind in wanted.items():
            seen.clear()
            function()
            self.assertEqual(seen, [kind], function.__name__)

    def test_it_is_what_the_innermost_while_runs_beyond_the_clips_of_one_request(self):
        found, function = serve()
        self.assertEqual(function, "handler")
        self.assertFalse(found.lasts())

    def test_the_next_call_of_the_same_function_is_another(self):
        first, lasted = [], []

        def one():
            if first:
                lasted.append(first[0].lasts())
            first.append(clip())
            lasted.append(first[-1].lasts())

        while len(first) < 2:
            one()
        self.assertEqual(lasted, [True, False, True])

    def test_a_loop_that_calls_the_pipeline_itself_has_none(self):
        found = []
        while not found:
            found.append(pipeline())
        self.assertEqual(found, [None])

    def test_a_debugger_keeps_its_trace_function(self):
        def traced():
            sys._getframe().f_trace = print
            return clip(), sys._getframe().f_trace

        found = []
        while not found:
            found.append(traced())
        self.assertEqual(found, [(None, print)])

    def test_a_task_of_a_pool(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            found, function = pool.submit(handler).result()
        self.assertEqual((function, found.lasts()), ("run", False))

    def test_in_a_loop_of_events_it_is_one_turn(self):
        async def inner():
            found = pipeline()
            here = name(found)
            await asyncio.sleep(0)
            return here, found.lasts()

        async def outer():
            return await inner()

        self.assertEqual(asyncio.run(outer()), ("_run_once", False))

    def test_a_thread_of_one_job_has_none(self):
        found = []
        thread = threading.Thread(target=lambda: found.append(clip()))
        thread.start()
        thread.join()
        self.assertEqual(found, [None])


if __name__ == "__main__":
    unittest.main()
