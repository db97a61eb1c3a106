"""FramePack-Studio's queue: which jobs wait and run is in the vault, and after a restart the user is told which were lost.

Studio writes `queue.json` in its folder after each change of the queue, but reads it only when its user presses Load Queue; a job
that is added before that overwrites it. So nothing is sent again here: the page does it better, if its user knows in time.
"""
import json
import os
import time
import weakref

from . import store as files
from .config import config
from .hooks import around, fenced, on
from .state import link

VERSION = 1
PROGRAM = "framepack-studio"
#: Studio's word for the status of a job that is not over -> ours.
STATES = {"running": "running", "pending": "queued"}
#: Methods that change the queue; a job's start is the call of `async_run`.
CHANGES = ("add_job", "cancel_job", "clear_queue", "clear_completed_jobs", "load_queue_from_json", "save_queue_to_json")
#: A queue's lock is waited for so long.
LOCK_S = 1.0
#: Jobs that a message names.
MOST_NAMED = 10
_queues = weakref.WeakSet()
_lost = []


def name_of(attempt):
    """The entry of an attempt of this run."""
    return "queue.%s.%s.json" % (files.store.run, files.plain(attempt))


def item(job):
    """What the vault keeps of a job: no prompt and no picture, unless `vault_prompt` is on."""
    params = getattr(job, "params", None) or {}
    found = {"id": str(job.id), "state": STATES[job.status.value], "created": getattr(job, "created_at", None),
             "kind": str(getattr(job, "generation_type", None) or ""), "seconds": params.get("total_second_length")}
    if config.flag("vault_prompt"):
        found["prompt"] = str(params.get("prompt_text", ""))
    return found


def items(queue):
    """The jobs that are not over, oldest first; a grid stands for its children alone. None: the queue cannot be read now."""
    if not queue.lock.acquire(timeout=LOCK_S):
        return None
    try:
        jobs = [job for job in queue.jobs.values() if job.status.value in STATES and not getattr(job, "child_job_ids", None)]
        return [item(job) for job in sorted(jobs, key=lambda job: getattr(job, "created_at", 0))]
    finally:
        queue.lock.release()


def write(queue):
    """The vault's entry as the queue stands."""
    found = items(queue)
    if found is None:
        return
    forget_restored(queue)
    name = name_of(config.attempt)
    if not found:
        files.store.forget(name)
        return
    entry = {"version": VERSION, "program": PROGRAM, "run": config.run, "attempt": config.attempt, "pid": os.getpid(),
             "time": round(time.time(), 3), "saved_in": os.path.abspath("queue.json"), "items": found}
    files.store.put(files.Task(name, [json.dumps(entry, default=str).encode("utf-8")], tells=False))


def forget_restored(queue):
    """Removes entries of earlier attempts whose jobs are all in the queue again."""
    for name, entry in tuple(_lost):
        if all(one.get("id") in queue.jobs for one in entry["items"]):
            _lost.remove((name, entry))
            files.store.forget(name)


def lost():
    """(name, entry) of what earlier attempts of this run have left."""
    found = []
    names = sorted(os.listdir(files.store.folder)) if os.path.isdir(files.store.folder) else []
    for name in names:
        if not name.startswith("queue.%s." % files.store.run) or name == name_of(config.attempt):
            continue
        with open(os.path.join(files.store.folder, name), "rb") as file:
            entry = json.loads(file.read().decode("utf-8"))
        if entry.get("program") == PROGRAM and entry.get("items"):
            found.append((name, entry))
    return found


def restorable(entry):
    """Ids of the entry's jobs that Studio's own file has and would load."""
    try:
        with open(entry["saved_in"], "rb") as file:
            saved = json.loads(file.read().decode("utf-8"))
        return [one["id"] for one in entry["items"] if saved.get(one["id"], {}).get("status") in STATES]
    except (OSError, ValueError, KeyError, AttributeError):
        return []


def tell(entry):
    """Says which jobs were lost, and what brings them back."""
    lines = ["%s (%s%s, %s)" % (one["id"][:8], one.get("kind") or "job",
                                ", %s s" % one["seconds"] if one.get("seconds") else "", one["state"]) for one in entry["items"]]
    count, back = len(lines), len(restorable(entry))
    named = ", ".join(lines[:MOST_NAMED]) + (", and %d more" % (count - MOST_NAMED) if count > MOST_NAMED else "")
    cure = ("its queue.json has %s: press Load Queue in the page before you add a job, which would overwrite that file"
            % ("all of them" if back == count else "%d of them" % back) if back else "its queue.json has none of them: enter them again")
    link.send("problem", text="FramePack-Studio's queue was lost with attempt %s: %d job%s, %s; %s"
                              % (entry.get("attempt"), count, "" if count == 1 else "s", named, cure))


def queues(module):
    """Studio's queue, after each change."""
    owner = getattr(module, "VideoJobQueue", None)
    if not isinstance(owner, type):
        return

    def changed(_result, args, _kwargs):
        _queues.add(args[0])
        write(args[0])

    for name in CHANGES:
        around(owner, name, after=changed)
    if config.resume:
        _lost.extend(fenced("VideoJobQueue", lost) or [])
        for _, entry in _lost:
            fenced("VideoJobQueue", tell, entry)


def starts(module):
    """A job of the queue begins."""

    def begins(_args, _kwargs):
        for queue in tuple(_queues):
            write(queue)

    around(module, "async_run", before=begins)


if files.store is not None:
    on("modules.video_queue")(queues)
    on("diffusers_helper.thread_utils")(starts)
