"""Finalizers and signal handlers run between any two steps of the thread that they interrupt, the agent's own code too:
what they call of the agent must come back, and nothing may be lost. Standard library only."""
import sys
import textwrap
import unittest

from support_vault import PACKAGE, Supervisor

sys.path.insert(0, PACKAGE)
from fpt_agent.link import QUEUE, Link  # noqa: E402

#: Calls `again()` before each line of the agent's files that `work()` passes, as a handler at that very moment would.
AT_EACH_LINE = """
    import os, sys
    def at_each_line(work, again, *files):
        hits = 0
        def trace(frame, event, arg):
            nonlocal hits
            if os.path.basename(frame.f_code.co_filename)[:-3] not in files: return None
            if event == "line":
                hits += 1
                if hits <= 1000: again()
            return trace
        sys.settrace(trace)
        try: work()
        finally: sys.settrace(None)
        return hits
"""
SENDING = """
    from fpt_agent.link import Link
    link = Link("/nowhere")
    n = 0
    def again():
        global n
        n += 1
        link.send("problem", text="again %d" % n)
        link.show(7, False, n=n)
    def work():
        for i in range(20):
            link.send("problem", text="work %d" % i)
            link.show(1, i == 19, n=i)
        link.sock = Taken()
        link._write()
    class Taken:
        def fileno(self): return -1
        def send(self, data, flags):
            told.append(data)
            return len(data)
    link.who, told = None, []
    hits = at_each_line(work, again, "link", "threads")
    assert hits > 200, hits
    link.sock = Taken(); link._settle(1000); link._write()
    lines = b"".join(told).decode().splitlines()
    texts = [l for l in lines if '"text"' in l]
    assert len(texts) == len(set(texts)) == 20 + n, (len(texts), len(set(texts)), n)
    assert any('"n":19' in l for l in lines) and ('"n":%d,' % n) in lines[-1], lines[-1]
    print("whole")
"""


NOTING = """
    import os, shutil, tempfile, threading
    from fpt_agent import remember, scope, state, tiers
    from fpt_agent.plans import Plan, desk
    class Torch:
        nn = Tensor = functional = None
        def __init__(self): self._C, self.on = self, True
        def _get_cudnn_enabled(self): return self.on
        def _set_cudnn_enabled(self, on): self.on = on
    torch, folder = Torch(), tempfile.mkdtemp()
    memory = remember.Memory(os.path.join(folder, "shapes.json"), "r", 1)
    scope.state.torch = lambda: torch
    desk.install = desk.remove = lambda *_: None
    desk.process = Plan("fallback", {"conv3d": 0, "conv2d": 0}, range(4), memory)
    remember.MOST, remember.WAIT_S = 8, 0.001
    def key(n): return memory.key("conv3d", (1, 2, 3, 4, n), (3, 2, 3, 3, 3), "float16", "cuda", (1, 0, 1, 1))
    def one(n):
        memory.take_off(key(n), 0)
        with scope.conv_fallback(start="split"):
            tiers.off.enter(torch)
            desk.count("conv3d", 1, "ok"); desk.tell("failed", key(n), 1)
            memory.learn(key(n), 1, True)
            memory.watch({1: (key(n), 1)})
            tiers.off.leave(torch)
        memory.watch({})
        memory.land()
    n = 100
    def again():
        global n
        n += 1
        one(n % 20)
    def work():
        for i in range(2): one(i)
    assert at_each_line(work, again, "remember", "state", "plans", "tiers", "scope") > 200
    assert os.listdir(folder) == ["shapes.json"], os.listdir(folder)
    assert (torch.on, tiers.off.depth, desk.scopes, memory.flights) == (True, 0, 0, {}), (torch.on, tiers.off.depth, desk.scopes)
    # a thread that writes and does not come back
    stuck = threading.Event()
    write, memory._write = memory._write, lambda *_: stuck.wait()
    threading.Thread(target=memory.learn, args=(key(1000), 1, True)).start()
    while not memory.writer: pass
    memory._write = write
    assert memory.begin(key(1000)) == 1
    one(1001)
    stuck.set()
    # each thread counts for itself
    state.state.counts.clear()
    def count():
        for _ in range(1000): desk.count("conv3d", 1, "ok")
    workers = [threading.Thread(target=count) for _ in range(4)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    assert sum(state.state.tiers.values()) == 4000
    shutil.rmtree(folder)
    print("whole")
"""


KEEPING = """
    import os, shutil, tempfile, threading
    from fpt_agent import store as files, vault
    folder = tempfile.mkdtemp()
    store = files.Store(folder, run="r")
    files.WAITING, files.PACE_S, files.GRACE_S = 5000, 0.0, 0.01
    n, first, mine = 0, threading.get_ident(), set()
    def keep(what):
        global n
        n += 1
        task = files.Task("%s.r.%d-%d.x" % (what, n, next(vault._numbers)), [b"x" * 100], tells=False)
        task.presses = n % 2 == 0
        if store.put(task):
            if what != "latents": mine.add(task.name)
            if task.presses: store.grace(task)
    def again(): keep("latents")
    def work():
        for i in range(4):
            keep("section"); keep("latents")
            store.forget("job.r.%d" % i)
    hits = at_each_line(work, again, "store", "threads")
    assert hits > 100, hits
    assert store.flush(60) and (store.open, store.waiting, store.tasks) == (0, 0, []), (store.open, store.tasks)
    written = os.listdir(folder)
    assert mine <= set(written) and len(mine) == 4, (mine, written)
    assert any(name.startswith("latents") for name in written)
    # a finalizer that runs in the writer's thread does not wait for itself
    slow = []
    def within(parts):
        again(); slow.append(store.slow)
        return parts
    store.slow = False
    task = files.Task("section.r.last.x", [b"x"], finish=within, tells=False)
    n = 1
    files.GRACE_S = 5.0
    assert store.put(task) and task.done.wait(60) and task.ok and slow == [False], slow
    # several threads at once
    def many(at):
        for i in range(50): store.put(files.Task("step.r.%d-%d.x" % (at, i), [b"x"], tells=False))
    workers = [threading.Thread(target=many, args=(at,)) for at in range(4)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    assert store.flush(60)
    steps = [name for name in os.listdir(folder) if name.startswith("step.")]
    assert len(steps) == 200, len(steps)
    shutil.rmtree(folder)
    print("whole")
"""


class Reentry(unittest.TestCase):
    def whole(self, code, **more):
        with Supervisor(listens=False) as s:
            env = dict(s.environment(**more))
            for name in ("FPT_AGENT_SOCKET", "FPT_AGENT_CONFIG"):
                env.pop(name)
            code = textwrap.dedent(AT_EACH_LINE) + textwrap.dedent(code)
            self.assertEqual(s.run("-c", code, env=env, timeout=60), (0, "whole\n", ""))

    def test_sending(self):
        self.whole(SENDING)

    def test_what_convolutions_note(self):
        self.whole(NOTING)

    def test_what_the_vault_keeps(self):
        self.whole(KEEPING)

    def test_signals_and_finalizers_in_a_running_program(self):
        code = """
            import gc, signal, time
            import fpt_agent.state as st
            class Ring:
                def __init__(self): self.me = self
                def __del__(self): st.link.send("problem", text="finalizer")
            gc.set_threshold(20)
            def tick(*_): st.link.send("problem", text="signal")
            signal.signal(signal.SIGALRM, tick); signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
            for i in range(20000):
                Ring(); st.link.show(1, False, n=i); st.link.send("problem", text="program")
            signal.setitimer(signal.ITIMER_REAL, 0)
            print("whole")
        """
        with Supervisor() as s:
            self.assertEqual(s.run("-c", textwrap.dedent(code), timeout=60), (0, "whole\n", ""))


class Bars(unittest.TestCase):
    """Progress is told as often as it is of use, and never in the place of anything else."""

    def test_they_displace_nothing(self):
        link = Link("/nowhere")
        for i in range(100):
            link.send("phase", phase=str(i))
        for i in range(100000):
            link.show(i % 300, i % 7 == 0, n=i)
            if i % 1000 == 0:
                link.send("job", state="started", id=str(i))
        kinds = [m["type"] for m in link.queue]
        self.assertEqual((link.dropped, kinds.count("phase"), kinds.count("job")), (0, 100, 100))
        self.assertLess(len(link.bars), 20)
        while len(link.queue) < QUEUE:
            link.send("problem", text="")
        was = list(link.queue)
        for i in range(1000):
            link.show(i, True, n=i)
            link._settle(1000)
        self.assertEqual(list(link.queue), was)

    def test_a_flood_is_thinned_out_at_its_source(self):
        code = """
            import time
            import fpt_agent.state as st, fpt_agent.progress as p
            st.link.send("job", state="started", id="a", error=None)
            began, n = time.monotonic(), 0
            while time.monotonic() < began + 2.5:
                n += 1
                p.moved(n, 10 ** 9, bar=1)
                p.moved(n, 10 ** 9, "other", bar=2)
            st.state.set_phase("save")
            for i in range(5): p.moved(i + 1, 5, "ends", bar=3, last=i == 4)
            st.link.send("job", state="ended", id="a", error=None)
            took = time.monotonic() - began
            time.sleep(1.3)
            print(n, took)
        """
        with Supervisor() as s:
            code, out, err = s.run("-c", textwrap.dedent(code), timeout=60)
            self.assertEqual((code, err), (0, ""))
            n, took = map(float, out.split())
            s.wait("bye")
            told = s.of("progress")
            self.assertGreater(len(told), 5)
            self.assertLess(len(told), 20 * took + 40)
            self.assertFalse(s.of("dropped"))
            self.assertEqual([m["state"] for m in s.of("job")], ["started", "ended"])
            kinds = [(m["type"], m.get("desc"), m.get("n")) for m in s.messages if m["type"] in ("progress", "phase", "job")]
            at = kinds.index(("phase", None, None))
            self.assertEqual({k for k in kinds[:at] if k[2] == n}, {("progress", "", n), ("progress", "other", n)})
            self.assertEqual(kinds[-2:], [("progress", "ends", 5.0), ("job", None, None)])
            self.assertEqual({m["job"] for m in s.of("beat")} - {None}, {"running", "idle"})  # the first may come before it


if __name__ == "__main__":
    unittest.main()
