"""Which steps are kept, and that what is handed back cannot be told from what was computed."""
import os
import textwrap
import unittest

from support_vault import Supervisor

CODE = """
    import os, sys, torch
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
            global computed
            computed += 1
            y = self.inner(x)
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
            return (y,)
    Model.forward = steps.kept(bool)(Model.forward)

    def run(make):
        global computed
        computed, found = 0, []
        Model.count = 0
        model = make()
        torch.manual_seed(5)
        with torch.no_grad():
            for step in range(3):
                y = model(torch.full((6, 4), float(step)))[0]
                found += [y.clone(), y.stride(), torch.rand(1)]
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
    def training():
        return Model("training").train()
    maps = []
    ways = {way: (lambda way=way: Model(way)) for way in ("plain", "draws", "counts", "counts on the class", "in another order", "with gaps")}
    ways.update({"hook outside": hooked("outside", lambda m, i, o: maps.append(1)), "hook inside": hooked("inside", lambda m, i, o: maps.append(1)),
                 "training": training})
"""
HANDED_BACK = """
    for way, make in ways.items():
        sections.config.resume = False
        first = run(make)
        sections.config.resume = True
        second = run(make)
        print(way, computed, equal(first, second))
    print(len(maps))
    # the numbers that a model draws are others where the program has drawn otherwise before
    computed, model = 0, Model("draws")
    with torch.no_grad():
        torch.manual_seed(6)
        model(torch.zeros(6, 4))
    print(computed)
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
    model = object()
    for cost, took in (0.0, 0), (0.0, 0.4), (0.0, 0.6), (0.02, 0.6), (0.02, 0.7), (0.1, 3.0), (0.1, 3.4):
        steps._inside.cost = cost
        clock.now += took
        print(cost, took, steps.worth(model))
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
                "with gaps 0 True", "hook outside 3 True", "hook inside 3 True", "training 3 True", "12", "1"])

    def test_keeping_costs_little_of_a_step(self):
        with Supervisor() as s:
            code, out, err = s.run("-c", textwrap.dedent(WORTH), settings={})
            self.assertEqual(code, 0, err)
            self.assertEqual([line.split()[2] for line in out.splitlines()], ["True", "False", "True", "False", "True", "False", "True"])

    def test_the_child_of_a_fork_ends_nothing_of_its_parents(self):
        with Supervisor() as s:
            self.assertEqual(self.run_code(s, FORKED), ["3 3", "started"])
            self.assertEqual(os.listdir(s.vault), [], "the parent removes its own when it ends")
            self.assertEqual([m["state"] for m in s.of("job")], ["started", "ended"])


if __name__ == "__main__":
    unittest.main()
