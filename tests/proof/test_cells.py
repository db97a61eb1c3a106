"""Tests of the judge itself, without a supervisor: python3 tests/proof/test_cells.py"""
import io
import json
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cells import batch, limits, stream  # noqa: E402
from cells.runner import Cell, Expectation, judge  # noqa: E402


def line(kind, at_s=1, **fields):
    return json.dumps({"seq": 1, "at": at_s * 1000, "event": {"kind": kind, **fields}}) + "\n"


def verdict(word, health, phase="vae_decode"):
    return line("verdict", id=word, health=health, phase=phase, confidence=0.9, sentence="because")


class JudgeTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.work = pathlib.Path(self.folder.name) / "work"
        self.work.mkdir()

    def tearDown(self):
        self.folder.cleanup()

    def judge(self, expect, lines, code=0, onset_ago=None, done=True, left=()):
        if done:
            (self.work / "done").touch()
        if onset_ago is not None:
            (self.work / "hang-began").write_text(repr(time.monotonic() - onset_ago))
        reader = stream.StreamReader(lines, io.StringIO())
        reader.run()
        reader.signals_before_stop, reader.attempts_before_stop = len(reader.signals), reader.attempts
        return judge(Cell("x", ["true"], expect, agent=False), self.work, reader, code, False, list(left), None, 1.0)["wrong"]

    def test_an_honest_program_that_is_left_alone_is_right(self):
        self.assertEqual(self.judge(Expectation("alone"), [verdict("quiet", "healthy"), line("exited", status={"code": 0})]), [])

    def test_a_signal_a_second_start_an_alarm_and_a_missing_result_are_wrong(self):
        ended = line("exited", status={"code": 0})
        signal = line("signal_sent", signal="SIGTERM", scope="group", reached=1)
        for lines, done in (([signal, ended], True), ([line("attempt_started", number=2), ended], True),
                            ([verdict("silent_hang", "hung"), ended], True), ([ended], False), ([], True), (["no JSON\n", ended], True),
                            ([line("exited", status={"signal": 15})], True)):
            (self.work / "done").unlink(missing_ok=True)
            self.assertNotEqual(self.judge(Expectation("alone"), lines, done=done), [], lines)

    def test_what_is_left_behind_is_wrong(self):
        self.assertNotEqual(self.judge(Expectation("alone"), [line("exited", status={"code": 0})], left=["sleep"]), [])

    def test_a_hang_counts_in_time_in_its_phase_and_after_its_begin_only(self):
        expect = Expectation("declared", ("silent_hang",), ("vae_decode",), within_s=90)
        hung = [verdict("silent_hang", "hung")]
        self.assertEqual(self.judge(expect, hung, None, onset_ago=50), [])
        self.assertNotEqual(self.judge(expect, hung, None, onset_ago=100), [], "late")
        self.assertNotEqual(self.judge(expect, hung, None, onset_ago=-100), [], "before the hang")
        self.assertNotEqual(self.judge(expect, [verdict("silent_hang", "hung", "sampling")], None, onset_ago=50), [], "phase")
        self.assertNotEqual(self.judge(expect, [verdict("silent_hang", "suspect")], None, onset_ago=50), [], "suspect only")

    def test_a_hang_that_was_not_reached_is_wrong(self):
        expect = Expectation("declared", ("silent_hang",), (), within_s=90)
        self.assertNotEqual(self.judge(expect, [verdict("silent_hang", "hung")], None), [])

    def test_a_state_is_shown_and_nothing_is_ended(self):
        expect = Expectation("state", ("paused",), within_s=60)
        shown = verdict("paused", "healthy")
        self.assertEqual(self.judge(expect, [shown], None, onset_ago=5), [])
        self.assertNotEqual(self.judge(expect, [shown, line("signal_sent", signal="SIGTERM", scope="group", reached=1)], None, onset_ago=5), [])

    def test_a_recovery_needs_exit_code_10(self):
        expect = Expectation("recovers", ("silent_hang",), (), within_s=90)
        hung = [verdict("silent_hang", "hung")]
        self.assertEqual(self.judge(expect, hung, 10, onset_ago=50), [])
        self.assertNotEqual(self.judge(expect, hung, 21, onset_ago=50), [])


class BatchTest(unittest.TestCase):
    def test_a_line_cut_off_by_a_kill_is_skipped_and_the_last_result_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "results.jsonl"
            path.write_text('{"cell": "a", "right": false}\n{"cell": "a", "right": true}\n{"cell": "b", "ri')
            self.assertEqual(batch.read_results(path), {"a": {"cell": "a", "right": True}})

    def test_limits_without_a_card_are_the_patient_ones(self):
        self.assertEqual(limits.silence_limit("vae_decode", True), 45)
        self.assertEqual(limits.silence_limit("vae_decode", False), 600)
        self.assertEqual(limits.declared_within(["vae_decode", "unknown"], True), 240 + limits.SLACK_S)


if __name__ == "__main__":
    unittest.main()
