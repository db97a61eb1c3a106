"""Which steps are kept, and that what is handed back cannot be told from what was computed."""
import os
import textwrap
import unittest

from support_vault import Supervisor

CODE = """
    import itertools, os, random, sys, types, numpy, torch
    from torch import nn
    from fpt_agent import sections, steps, store

    class Model(nn.Module):
        count = 0
        made = 0
        def __init__(self, way):
            super().__init__()
            torch.manual_seed(0)
            self.way, self.inner = way, nn.Linear(4, 4)
            self.eval()
        def forward(self, x, return_dict=False):
            y = self.inner(x)
            os.write(pipe[1], b".")  # counted outside of Python: what the program's functions keep in it belongs to the key
            if self.way == "draws":
                y = y + torch.rand(4)
            elif self.way == "counts on the class":
                Model.count += 1
                y = y + Model.count
            elif self.way == "counts":
                self.seen = getattr(self, "seen", 0) + 1
                y = y + self.seen
            elif self.way == "in another order":
                y = y.reshape(2, 3, 4).permute(2, 0, 1)
            elif self.way == "with gaps":
                y = torch.stack([y, y])[:, :, 1:]
            elif self.way == "spread":
                y = y[:, :1].expand(6, 4)
            elif self.way == "in place":
                x.mul_(0.5)
            elif self.way == "hands its input out":
                y = x[1:]
            elif self.way == "a generator":
                y = y + torch.rand(4, generator=self.source)
            elif self.way == "numpy's generator":
                y = y + torch.from_numpy(self.source.standard_normal(4)).float()
            elif self.way == "Python's generator":
                y = y + self.source.random()
            elif self.way == "a count in a global":
                settings.count["calls"] += 1
                y = y + settings.count["calls"]
            elif self.way == "one weight of many":
                y = y + self.many[0, 7]
                self.many[0, 7] += 1
            elif self.way == "an iterator":
                y = y + next(self.source)
            return (y,)
    Model.forward = steps.kept(bool)(Model.forward)

    settings = types.SimpleNamespace(count={"calls": 0})
    pipe = os.pipe()
    os.set_blocking(pipe[0], False)
    def counted():
        try:
            return len(os.read(pipe[0], 4096))
        except BlockingIOError:
            return 0

    def run(make):
        found = []
        counted()
        Model.count = settings.count["calls"] = 0
        model = make()
        torch.manual_seed(5)
        with torch.no_grad():
            for step in range(3):
                x = torch.full((6, 4), step + 1.0)
                y = model(x)[0]
                found += [y.clone(), y.stride(), torch.rand(1), x]
        store.store.flush(60)
        return found

    def equal(a, b):
        return all(torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y for x, y in zip(a, b))

    def hooked(where, hook):
        def make():
            model = Model("hooked")
            (model if where == "outside" else model.inner).register_forward_hook(hook)
            return model
        return make
    def having(way, **what):
        def make():
            model = Model(way)
            for name, value in what.items():
                setattr(model, name, value())
            return model
        return make
    def cached():
        from diffusers.hooks import HookRegistry, ModelHook
        class Cache(ModelHook):
            _is_stateful = True
        model = Model("cached")
        HookRegistry.check_if_exists_or_initialize(model.inner).register_hook(Cache(), "cache")
        return model
    def training():
        return Model("training").train()
    maps = []
    ways = {way: (lambda way=way: Model(way)) for way in ("plain", "draws", "counts", "counts on the class", "in another order", "with gaps")}
    ways.update({"hook outside": hooked("outside", lambda m, i, o: maps.append(1)), "hook inside": hooked("inside", lambda m, i, o: maps.append(1)),
                 "training": training, "spread": having("spread"), "in place": having("in place"), "hands its input out": having("hands its input out"),
                 "a generator": having("a generator", source=lambda: torch.Generator().manual_seed(1)),
                 "numpy's generator": having("numpy's generator", source=lambda: numpy.random.default_rng(1)),
                 "Python's generator": having("Python's generator", source=lambda: random.Random(1)),
                 "a count in a global": having("a count in a global"), "an iterator": having("an iterator", source=lambda: iter([1, 2, 3])),
                 "one weight of many": having("one weight of many", many=lambda: nn.Parameter(torch.zeros(99, 99), requires_grad=False)),
                 "cached": cached})
"""
HANDED_BACK = """
    for way, make in ways.items():
        sections.config.resume = False
        first = run(make)
        sections.config.resume = True
        second = run(make)
        print(way, counted(), equal(first, second))
    print(len(maps))
    # the numbers that a model draws are others where the program has drawn otherwise before
    model = Model("draws")
    with torch.no_grad():
        torch.manual_seed(6)
        model(torch.zeros(6, 4))
    print(counted())
    # nor are results of other surroundings handed back
    model, x = Model("plain"), torch.zeros(6, 4)
    def changed(name, inside, back=None):
        with torch.no_grad():
            model(x)
            store.store.flush(60)
            counted()
            with inside() or torch.no_grad():
                model(x)
            store.store.flush(60)
            print(name, counted())
            if back:
                back()
    changed("nothing", lambda: None)
    changed("autocast", lambda: torch.autocast("cpu", dtype=torch.bfloat16))
    changed("default dtype", lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32))
    changed("precision", lambda: torch.set_float32_matmul_precision("medium"), lambda: torch.set_float32_matmul_precision("highest"))
    changed("deterministic", lambda: torch.use_deterministic_algorithms(True), lambda: torch.use_deterministic_algorithms(False))
    changed("attention", lambda: torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH))
    changed("nothing", lambda: None)
"""
FORKED = """
    kept = lambda: len([n for n in os.listdir(store.store.folder) if n.startswith("step.")])
    run(ways["plain"])
    before = kept()
    child = os.fork()
    if child == 0:
        run(ways["plain"])          # the same steps once more
        run(ways["in another order"])  # and some of its own
        sys.exit(0)
    os.waitpid(child, 0)
    print(before, kept(), flush=True)

    # a job that forks: the end of the child is not that of the job
    import json, numpy
    from fpt_agent import jobs, phases
    def worker():
        store.store.flush(60)
        child = os.fork()
        if child == 0:
            sys.exit(0)
        os.waitpid(child, 0)
        (name,) = [n for n in os.listdir(store.store.folder) if n.startswith("job.") and n.endswith(".json")]
        print(json.load(open(os.path.join(store.store.folder, name)))["state"], flush=True)
    with phases.Job("j"):
        jobs.Job([numpy.zeros((2, 2, 3), numpy.uint8), "", ""] + [1] * 10).run(worker, (), {})
"""

WORTH = """
    from fpt_agent import steps
    class Clock:
        now = 100.0
        def monotonic(self):
            return self.now
    steps.time = clock = Clock()
    class Model:
        pass
    a, b = Model(), Model()
    for cost, took in (0.0, 0), (0.0, 0.4), (0.0, 0.6), (0.02, 0.6), (0.02, 0.7), (0.1, 3.0), (0.1, 3.4):
        steps.paces().of(a).cost = cost
        clock.now += took
        print(cost, took, steps.worth(a))
    # two in turn, one of them slow
    for model in a, b, a, b, a, b:
        print(model is a, steps.worth(model))
        clock.now += 5 if model is b else 0.1
    del a, b, model
    print(len(steps.paces().models))
"""


class Steps(unittest.TestCase):
    def run_code(self, s, code):
        code, out, err = s.run("-c", textwrap.dedent(CODE) + textwrap.dedent(code), settings={"replay_steps": "true"})
        self.assertEqual(code, 0, err)
        s.wait("bye")
        self.assertFalse(s.of("hook_failed"))
        return out.splitlines()

    def test_what_is_handed_back_is_what_an_undisturbed_run_computes(self):
        with Supervisor() as s:
            self.assertEqual(self.run_code(s, HANDED_BACK), [
                "plain 0 True", "draws 0 True", "counts 3 True", "counts on the class 3 True", "in another order 0 True",
                "with gaps 0 True", "hook outside 3 True", "hook inside 3 True", "training 3 True",
                "spread 3 True", "in place 3 True", "hands its input out 3 True", "a generator 3 True", "numpy's generator 3 True",
                "Python's generator 3 True", "a count in a global 3 True", "an iterator 3 True", "one weight of many 3 True", "cached 3 True",
                "12", "1", "nothing 0", "autocast 1", "default dtype 1", "precision 1", "deterministic 1", "attention 1", "nothing 0"])
            told = "".join(m["text"] for m in s.of("problem"))
            for why in "changes the model's own state", "changes its inputs in place", "a cache of its own (Cache)", "a forward hook of the program's":
                self.assertIn(why, told)

    def test_keeping_costs_little_of_a_step(self):
        with Supervisor() as s:
            code, out, err = s.run("-c", textwrap.dedent(WORTH), settings={})
            self.assertEqual(code, 0, err)
            lines = out.splitlines()
            self.assertEqual([line.split()[2] for line in lines[:7]], ["True", "False", "True", "False", "True", "False", "True"])
            self.assertEqual(lines[7:], ["True False", "False True", "True False", "False True", "True False", "False True", "0"])

    def test_the_child_of_a_fork_ends_nothing_of_its_parents(self):
        with Supervisor() as s:
            self.assertEqual(self.run_code(s, FORKED), ["3 3", "started"])
            self.assertEqual(os.listdir(s.vault), [], "the parent removes its own when it ends")
            self.assertEqual([m["state"] for m in s.of("job")], ["started", "ended"])


if __name__ == "__main__":
    unittest.main()
