"""What is learned of shapes, and how it comes from one attempt to the next. Standard library only."""
import json
import os
import tempfile
import threading
import unittest

import support_conv  # noqa: F401  (finds the package)
from fpt_agent import remember
from fpt_agent.remember import Memory

NATIVE, SPLIT, NOCUDNN, CPU = range(4)


def key(size=5, op="conv3d", params=((1, 1, 1), (0, 0, 0), (1, 1, 1), 1)):
    return Memory.key(op, (1, 2, 3, 4, size), (3, 2, 3, 3, 3), "torch.float16", "cuda:0", params)


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(folder.name, "shapes.json")

    def attempt(self, number, run="r"):
        memory = Memory(self.path, run, number)
        memory.load()
        return memory

    def files(self):
        return sorted(os.listdir(self.folder))


class Keys(unittest.TestCase):
    def test_the_same_call_has_one_key(self):
        self.assertEqual(key(), key(params=(1, 0, 1, 1)))
        self.assertEqual(key(), key(params=([1, 1, 1], (0,), 1, 1)))
        self.assertNotEqual(key(), key(params=(1, "same", 1, 1)))
        self.assertNotEqual(key(), key(params=((1, 2, 2), 0, 1, 1)))
        self.assertEqual(key()[3:5], ("float16", "cuda"))

    def test_no_parameters(self):
        with self.assertRaises((TypeError, ValueError)):
            key(params=(1, None, 1, 1))


class InProcess(unittest.TestCase):
    def test_bounded(self):
        memory = Memory()
        for size in range(remember.MOST + 10):
            memory.learn(key(size), SPLIT, True)
        self.assertEqual(len(memory.tiers), remember.MOST)
        self.assertEqual((memory.begin(key(0)), memory.begin(key(remember.MOST))), (NATIVE, SPLIT))
        self.assertLessEqual(len(memory.lasting), remember.MOST)

    def test_threads(self):
        memory = Memory()
        threads = [threading.Thread(target=lambda n=n: [memory.learn(key(n * 1000 + i), CPU, False) for i in range(200)])
                   for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(memory.tiers), 800)


class FromAttemptToAttempt(WithFolder):
    def test_learned(self):
        first = self.attempt(1)
        first.learn(key(), SPLIT, True)
        first.learn(key(6), CPU, False)
        second = self.attempt(2)
        self.assertEqual((second.begin(key()), second.begin(key(6))), (SPLIT, NATIVE))
        self.assertEqual(self.files(), ["shapes.json"])

    def test_hung(self):
        first = self.attempt(1)
        first.take_off(key(), NATIVE)
        first.land()
        self.assertEqual(self.files(), [])
        first.take_off(key(6), NATIVE)  # and never came back
        second = self.attempt(2)
        self.assertEqual((second.begin(key()), second.begin(key(6))), (NATIVE, SPLIT))
        self.assertEqual(self.files(), ["shapes.json"])
        second.take_off(key(6), SPLIT)
        third = self.attempt(3)
        self.assertEqual(third.begin(key(6)), NOCUDNN)
        third.take_off(key(6), CPU)
        self.assertEqual(self.attempt(4).begin(key(6)), CPU)  # there is nothing below
        self.assertEqual(self.attempt(5).problems, [])

    def test_hung_on_the_cpu_is_no_librarys_fault(self):
        first = self.attempt(1)
        there = Memory.key("conv3d", (1, 2, 3, 4, 5), (3, 2, 3, 3, 3), "bfloat16", "cpu", (1, 0, 1, 1))
        first.take_off(there, NATIVE)
        second = self.attempt(2)
        self.assertEqual((second.begin(there), second.problems, self.files()), (NATIVE, [], []))

    def test_hung_conv2d_has_no_split(self):
        self.attempt(1).take_off(key(op="conv2d"), NATIVE)
        self.assertEqual(self.attempt(2).begin(key(op="conv2d")), NOCUDNN)

    def test_two_threads_in_flight(self):
        first = self.attempt(1)
        first.take_off(key(5), NATIVE)
        other = threading.Thread(target=lambda: (first.take_off(key(6), NATIVE), first.take_off(key(7), NATIVE), first.land()))
        other.start()
        other.join()
        second = self.attempt(2)
        self.assertEqual([second.begin(key(n)) for n in (5, 6, 7)], [SPLIT, NATIVE, NATIVE])

    def test_seen_from_outside(self):
        first = self.attempt(1)
        anything = key(5)[:5] + (None,)
        first.take_off(key(7), NATIVE)
        first.watch({1: (anything, NATIVE)})
        first.land()
        self.assertEqual(len(self.files()), 1)
        first.watch({})
        self.assertEqual(self.files(), [])
        first.watch({1: (anything, SPLIT)})
        second = self.attempt(2)
        self.assertEqual((second.begin(key(5, params=(2, 1, 1, 1))), second.begin(key(7))), (NOCUDNN, NATIVE))

    def test_a_sibling_of_this_attempt_lives(self):
        first = self.attempt(1)
        first.take_off(key(), NATIVE)
        self.assertEqual(self.attempt(1).begin(key()), NATIVE)
        self.assertEqual(len(self.files()), 1)
        first.land()
        self.assertEqual(self.attempt(2).begin(key()), NATIVE)

    def test_written_without_parameters(self):
        entry = dict(remember.entry_of(key(), SPLIT), params=None)
        with open(self.path, "w") as file:
            json.dump({"version": 1, "shapes": [entry]}, file)
        memory = self.attempt(2)
        self.assertEqual((memory.begin(key()), memory.begin(key(params=(2, 0, 1, 1)))), (SPLIT, SPLIT))
        self.assertEqual(memory.begin(key(6)), NATIVE)

    def test_damaged(self):
        good = remember.entry_of(key(), SPLIT)
        cases = [b"", b"{", b"[]", b"\xff\xfe", b'{"shapes": 3}', b'{"shapes": [3, {}]}', b"[" * 100000,
                 json.dumps({"shapes": [dict(good, tier="fast")]}).encode(),
                 json.dumps({"shapes": [dict(good, shape=[[1]])]}).encode(),
                 json.dumps({"shapes": [dict(good, params=[None])]}).encode(), b" " * (remember.LONGEST + 1)]
        for data in cases:
            with open(self.path, "wb") as file:
                file.write(data)
            memory = self.attempt(2)
            self.assertEqual(memory.tiers, {}, data[:40])
            self.assertGreaterEqual(len(memory.problems), 1, data[:40])
            self.assertTrue(all(p.startswith("conv_memory: ") for p in memory.problems))
        with open(self.path, "w") as file:
            json.dump({"shapes": [dict(good, tier="fast"), good]}, file)
        memory = self.attempt(2)  # one bad entry costs no other
        self.assertEqual((memory.begin(key()), len(memory.problems)), (SPLIT, 1))

    def test_damaged_note(self):
        with open(self.path + remember.NOTE + "1", "w") as file:
            file.write("{")
        memory = self.attempt(2)
        self.assertEqual((memory.tiers, len(memory.problems), self.files()), ({}, 1, []))

    def test_no_folder(self):
        memory = Memory(os.path.join(self.folder, "none", "shapes.json"), "r", 1)
        memory.load()
        memory.take_off(key(), NATIVE)
        memory.land()
        memory.learn(key(), SPLIT, True)
        self.assertEqual(memory.begin(key()), SPLIT)
        self.assertGreaterEqual(len(memory.problems), 1)
        for size in range(100):
            memory.learn(key(size), SPLIT, True)
        self.assertLessEqual(len(memory.problems), 20)

    def test_a_full_disk_leaves_the_file_as_it_was(self):
        memory = self.attempt(1)
        memory.learn(key(), SPLIT, True)
        replace = os.replace
        self.addCleanup(setattr, os, "replace", replace)

        def full(*_):
            raise OSError(28, "No space left on device")

        os.replace = full
        memory.learn(key(6), SPLIT, True)
        os.replace = replace
        self.assertEqual(self.files(), ["shapes.json"])
        second = self.attempt(2)
        self.assertEqual((second.begin(key()), second.begin(key(6))), (SPLIT, NATIVE))
        self.assertEqual(len(memory.problems), 1)


if __name__ == "__main__":
    unittest.main()
