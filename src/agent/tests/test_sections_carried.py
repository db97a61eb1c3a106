"""What a model carries from one section of FramePack's to the next: handed back is only what cannot be told from sampling."""
import textwrap
import unittest

from support_vault import Supervisor

CODE = """
    import random, sys, torch
    from torch import nn
    from fpt_agent import sections, store

    class Model(nn.Module):
        # a cache as TeaCache is one: it is part of the result, and is renewed by its own function
        def __init__(self, way):
            super().__init__()
            torch.manual_seed(0)
            self.way, self.inner, self.enabled, self.calls, self.before = way, nn.Linear(4, 4), False, 0, None
            self.seen = 0
            self.eval()
        def initialize_teacache(self, enable=True):
            self.enabled, self.calls, self.before = enable, 0, None
            if self.way == "read" and self.seen:
                print("a renewed cache after", self.seen, "calls", file=sys.stderr)
        def forward(self, x):
            y = self.inner(x)
            if self.enabled:
                self.calls += 1
                if self.before is not None:
                    y = y + self.calls * self.before
                self.before = y.clone()
            if self.way in ("counts", "read"):
                self.seen += 1
                y = y * self.seen
            if self.way == "draws":
                y = y + random.random()
            return y
    sections.transformers(sys.modules["__main__"])
    def plain(transformer, x, generator):
        global sampled
        sampled += 1
        for step in range(3):
            x = x + transformer(x) + torch.rand(4, generator=generator)
        if transformer.way == "in place":
            start.add_(1)
        return x
    sample = sections.kept(plain)

    def job(way, count):
        global sampled, start
        sampled, model, found = 0, Model(way.replace("once", "renewed")), []
        generator = torch.Generator().manual_seed(5)
        random.seed(1)
        x = start = torch.ones(2, 4)
        if way == "once":
            model.initialize_teacache()
        if way == "hook":
            model.inner.register_forward_hook(lambda m, i, o: o * 2)
        with torch.inference_mode():
            for section in range(count):
                if way in ("renewed", "read"):
                    model.initialize_teacache()
                x = sample(transformer=model, x=x, generator=generator).clone()
                found += [x, generator.get_state(), torch.tensor(random.random())]
        store.store.flush(60)
        return found

    for way in "plain", "renewed", "once", "counts", "read", "hook", "draws", "in place":
        told = [way]
        for finished in 1, 2:
            config = sections.config
            config.run, store.store.run = "%s-%d" % (way.replace(" ", "-"), finished), "%s-%d" % (way.replace(" ", "-"), finished)
            config.resume = False
            job(way, finished)
            config.resume = True
            have, computed = job(way, 3), sampled
            config.run = store.store.run = config.run + "-undisturbed"
            want = job(way, 3)
            told += [computed, all(torch.equal(a, b) for a, b in zip(have, want))]
        print(*told)
"""


class Carried(unittest.TestCase):
    def test_a_restart_after_one_and_after_two_sections_is_an_undisturbed_run(self):
        with Supervisor() as s:
            code, out, err = s.run("-c", textwrap.dedent(CODE), settings={})
            self.assertEqual(code, 0, err)
            # sampled after the restart, of three: after one finished section, after two
            self.assertEqual(out.splitlines(), [
                "plain 2 True 1 True",
                "renewed 2 True 1 True",
                "once 3 True 3 True",
                "counts 3 True 3 True", "read 3 True 3 True", "hook 3 True 3 True",
                "draws 2 True 1 True", "in place 3 True 2 True"])  # its second section changes none of its inputs
            s.wait("bye")
            self.assertFalse(s.of("hook_failed"))
            told = "".join(m["text"] for m in s.of("problem"))
            for why in ("sampling changes the model's own state", "a forward hook of the program's", "changes its inputs in place",
                        "its cache goes on from one section to the next"):
                self.assertIn(why, told)


if __name__ == "__main__":
    unittest.main()
