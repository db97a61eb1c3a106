#!/usr/bin/env python3
"""Ten process-hours of honest work under the real supervisor: 25 kinds for 25 minutes each. Nothing may be ended.

    tests/proof/honest_hours.py [--bin PROGRAM] [--minutes 25] [--jobs 25] [--combo with-agent,no-card] [--out FOLDER]

All kinds run at once; those that compute do so for about 5 % of the time. Every other kind has an imitated card and every
third has no agent, unless --combo is given. Swapping is imitated by a memory control group, where one can be made.
"""
import contextlib
import os
import pathlib
import sys

from cells import batch, limits
from cells.runner import Cell, Expectation, Helper

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "workloads" / "behaviours"
#: Kind and whether it needs the peer outside the tree.
KINDS = {
    "imports_in_stretches": False, "numpy_in_stretches": False, "unzip_in_stretches": False, "compile_in_stretches": False,
    "checksums_in_stretches": False, "upscaling_in_stretches": False, "generations_with_pauses": False,
    "queue_between_jobs": False, "lock_waits": False, "pages_fall_out_of_memory": False,
    "download_in_small_pieces": True, "curl_without_a_bar": True, "upload_over_http": True, "clone_in_a_child": True,
    "event_stream_client": True, "long_poll": True, "queue_on_another_machine": True, "blocking_pop": True,
    "waits_for_a_debugger": False, "waits_at_a_prompt": False, "server_after_a_job": False,
    "server_after_a_job_of_its_worker": False, "notebook_kernel_idle": False, "model_loaded_and_idle": False,
    "encoder_in_a_child": False,
}
LIMIT_BYTES = 96 << 20
#: Kinds whose process never touches a card.
WITHOUT_MEMORY = {"imports_in_stretches", "numpy_in_stretches", "unzip_in_stretches", "compile_in_stretches", "checksums_in_stretches",
                  "pages_fall_out_of_memory", "clone_in_a_child"}


@contextlib.contextmanager
def memory_group():
    """A control group with little memory, of version 1 or 2; None where none can be made."""
    name = "framepack-tui-proof-%d" % os.getpid()
    for root, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = pathlib.Path(root) / name
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / file).write_text(str(LIMIT_BYTES))
        except OSError:
            group.rmdir()
            continue
        try:
            yield group
        finally:
            with contextlib.suppress(OSError):
                group.rmdir()
        return
    yield None


def combination(number, options):
    """Spreads the kinds over the four combinations."""
    if options.combo:
        return batch.COMBOS[options.combo[number % len(options.combo)]]
    return number % 3 != 2, number % 2 == 0


def make_cell(number, kind, seconds, group, options):
    has_agent, has_card = combination(number, options)
    card = "none" if not has_card else "unused" if kind in WITHOUT_MEMORY else "held"
    env = {"FPT_SECONDS": str(seconds)}
    if kind == "pages_fall_out_of_memory":
        env["CGROUP_LIMIT"] = str(group)
    helpers = [Helper([options.python, str(FOLDER / "peer.py"), "serve"], "FPT_PEER")] if KINDS[kind] else []
    return Cell(kind, [options.python, str(FOLDER / "hours.py"), kind], Expectation("alone"), has_agent, card, env, helpers,
                wall_s=seconds / limits.time_scale() + 600)


def main():
    p = batch.parser(__doc__, "outputs/proof/honest-hours")
    p.set_defaults(jobs=len(KINDS))
    p.add_argument("--minutes", type=float, default=25)
    options = p.parse_args()
    with memory_group() as group:
        kinds = list(KINDS)
        if group is None:
            print("No memory control group can be made here: pages_fall_out_of_memory is skipped.", flush=True)
            kinds.remove("pages_fall_out_of_memory")
        cells = [make_cell(n, kind, options.minutes * 60, group, options) for n, kind in enumerate(kinds)]
        hours = len(cells) * options.minutes / 60
        return batch.run_batch(cells, options, "%.1f process-hours of honest work" % hours)


if __name__ == "__main__":
    sys.exit(main())
