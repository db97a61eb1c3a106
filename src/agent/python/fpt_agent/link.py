"""The socket to the supervisor: a bounded queue, drained by one thread.

Whoever sends only appends to a deque, so a slow or dead reader never slows the generation: what
does not fit is dropped, oldest first, and counted (`dropped`). It takes no lock (threads.py says why). What progress bars
show waits beside the queue, the last state of each.
"""
import os
import select
import time
from _collections import deque
from _thread import allocate_lock
from itertools import count

from . import threads, wire
from .descriptors import above_standard, identity

try:
    import _socket as socket  # what `socket` is made of: half the start-up time goes without its wrapping
except ImportError:
    import socket

#: Messages that wait at most. A run sends some ten a second.
QUEUE = 2000
#: Progress bars of which a state waits to be told; of more than these the latest ones, which are told within a second.
BARS = 16
#: Messages of bars a second, and of bars at their end: the supervisor takes 200 of all kinds from a process.
BARS_A_SECOND, ENDS_A_SECOND = 20, 60
#: Bytes that wait for a slow reader before messages are held back in the queue.
PENDING = 1 << 16
#: A command of the supervisor longer than this is not one of its.
LONGEST_COMMAND = 1 << 16
#: A heartbeat this often.
BEAT_S = 1.0
#: A supervisor that is gone must not kill a program that lets SIGPIPE end it.
NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)
#: The end of a program waits so long for the first attempt to connect: longer than that takes at most.
FIRST_S = 2.0
#: A lost supervisor is looked for this often.
RETRY_S = 2.0


class Rate:
    """So many a second, and about a quarter of them at once. Several threads may take: it is a limit, no count."""

    def __init__(self, a_second):
        self.a_second, self.most = a_second, a_second / 4
        self.left, self.at = self.most, time.monotonic()

    def take(self, debt=0):
        """True: one more may go; with `debt` also so many that must be made up for."""
        now = time.monotonic()
        left = min(self.most, self.left + (now - self.at) * self.a_second)
        self.at, self.left = now, left
        if left < 1 - debt:
            return False
        self.left = left - 1
        return True


class Link:
    """See the module. One in a process; after a fork the child opens its own."""

    def __init__(self, path, scale=1):
        self.path, self.scale = path, scale
        self.commands = {}
        self.heartbeat = self.urgent = None  # `urgent()`: a heartbeat must not wait for its time
        self.looks = []  # called some ten times a second, with the time
        self.greeting = None
        self._fresh()

    def _fresh(self):
        self.queue = deque(maxlen=QUEUE)
        self.bars = {}  # bar -> message that is not in the queue yet
        self.rate, self.ends = Rate(BARS_A_SECOND), Rate(ENDS_A_SECOND)
        self.jobs = None  # those that run; None: there was none yet
        self.wake = threads.Bell()
        self.writing = allocate_lock()
        self.tried = threads.Bell()
        self.waited = False  # for the first attempt to connect, by the end of the program
        self.losses = count(1)
        self.dropped = self.told = 0  # how many in all, and of how many the supervisor knows
        self.seq = 0
        self.thread = None
        self.sock = self.who = None
        self.pending = b""
        self.received = b""

    def send(self, kind, /, **fields):  # a field may be called `kind` too
        """Queues one message. Never blocks, never raises; from any thread, signal handler or finalizer."""
        if self.path is None:
            return
        if self.bars:
            self._settle(BARS_A_SECOND)  # what bars showed before it
        self._put(kind, fields)
        self.wake.ring()

    def show(self, bar, last, /, **fields):
        """Tells the state of a progress bar, as `send` does; each replaces the one before that is not told yet. `bar`: any
        key of it; `last`: it ends with this one."""
        if self.path is None:
            return
        bars = self.bars
        if last and len(self.queue) < QUEUE // 2 and self.ends.take():
            bars.pop(bar, None)
            self._settle(BARS_A_SECOND)
            self._put("progress", fields)
            return
        bars[bar] = message("progress", fields)
        if len(bars) > BARS:
            self._first()

    def job(self):
        """"running", "idle", or None where no job was told yet."""
        jobs = self.jobs
        return jobs if jobs is None else "running" if jobs else "idle"

    def _put(self, kind, fields):
        if kind == "job":
            self._job(fields.get("state"), fields.get("id"))
        if len(self.queue) >= QUEUE:
            self.dropped = next(self.losses)
        self.queue.append(message(kind, fields))

    def _job(self, told, name):
        if self.jobs is None:
            self.jobs = []
        if told == "started":
            self.jobs.append(name)
            return
        try:
            self.jobs.remove(name)
        except ValueError:  # what has begun before a fork
            return

    def _settle(self, debt=0):
        """Queues what bars show, unless nobody reads: then the last states wait here, where they displace nothing."""
        while self.bars and len(self.queue) < QUEUE // 2 and self.rate.take(debt):
            first = self._first()
            if first is not None:
                self.queue.append(first)

    def _first(self):
        """Takes the message of the bar that has waited longest; None: another thread was at it."""
        try:
            return self.bars.pop(next(iter(self.bars)))
        except (KeyError, RuntimeError, StopIteration):
            return None

    def start(self):
        """Connects, unless that would take time, and starts the thread. A second call does nothing."""
        if self.thread is not None or self.path is None:
            return
        self._connect(0)  # a short program has ended before a busy machine lets another thread run
        self.thread = threads.start(self._run, "fpt-agent")

    def forked(self):
        """In the child of a fork: nothing of the parent's link may be used."""
        started = self.thread is not None
        self._lose()  # closes only this process' copy of the descriptor
        self._fresh()
        if started:
            self.start()

    def flush(self, seconds):
        """Sends from the calling thread until nothing waits, for about so long at most: the link's own may sleep."""
        if self.thread is None:
            return
        if self.sock is None and not self.waited:
            self.waited = True
            self.tried.wait(FIRST_S)
        end = time.monotonic() + seconds
        while self.sock is not None:
            self._settle(BARS)
            self._write(max(0.0, end - time.monotonic()))
            if time.monotonic() > end or not self.queue and not self.pending:
                return
            time.sleep(0.002)

    def _run(self):
        beat = lost = looked = 0.0
        while True:
            try:
                now = time.monotonic()
                if now - looked >= BEAT_S:
                    looked = now
                    self._leave_if_deserted()
                if self.sock is None and now - lost >= RETRY_S:
                    lost = now
                    try:
                        self._connect(1.0)
                    finally:
                        self.tried.ring()
                due = now - beat >= BEAT_S / self.scale or self.urgent is not None and self.urgent()
                if due and self.sock is not None and self.heartbeat is not None:
                    beat = now
                    self._put("beat", self.heartbeat())
                self._settle()
                self._write()
                if self.sock is not None:
                    for look in self.looks:
                        look(now)
                self._wait()
                threads.unlist()
            except Exception:  # nothing here may end the thread
                time.sleep(0.2)

    def _leave_if_deserted(self):
        try:
            threads.leave_if_deserted()
        except threads.Deserted:
            self.flush(0.3)
            raise

    def _connect(self, seconds):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if sock.fileno() <= 2:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, above_standard(sock.detach()))
        who = identity(sock.fileno())
        try:
            sock.settimeout(seconds)
            sock.connect(self.path)
            sock.setblocking(False)
        except OSError:
            let_go(sock, who)
            return
        self.pending, self.received = b"", b""
        if self.greeting is not None:
            # a supervisor that was away must know whom it hears
            self.pending = self._line(message("hello", self.greeting()))
        self.who, self.sock = who, sock

    def _line(self, told):
        self.seq += 1
        told["seq"] = self.seq
        told["pid"] = os.getpid()
        try:
            text = wire.dumps(told)
        except ValueError:  # JSON has no NaN and no infinity
            text = wire.dumps(finite(told))
        return text.encode("utf-8", "replace") + b"\n"

    def _write(self, seconds=-1):
        """Writes what the socket takes; waits so long for another thread that does (below 0: for ever)."""
        if not self.writing.acquire(True, seconds):
            return
        try:
            self._write_alone()
        finally:
            self.writing.release()

    def _write_alone(self):
        while self.sock is not None:
            while self.queue and len(self.pending) < PENDING:
                first, dropped = self.queue.popleft(), self.dropped - self.told
                if dropped:
                    self.told += dropped
                    self.pending += self._line({"type": "dropped", "t": first["t"], "n": dropped})
                self.pending += self._line(first)
            if not self.pending:
                return
            try:
                sent = self._ours().send(self.pending, NO_SIGNAL)
            except BlockingIOError:
                return
            except OSError:
                self._lose()
                return
            self.pending = self.pending[sent:]

    def _wait(self):
        if self.sock is None:
            self.wake.wait(0.25)
            return
        # commands and room for more to send; new messages wait at most a tenth of a second, which
        # gathers them into few writes. poll, as select refuses a descriptor above 1023
        poll = select.poll()
        poll.register(self.sock.fileno(), select.POLLIN | (select.POLLOUT if self.pending else 0))
        readable = any(event & ~select.POLLOUT for _, event in poll.poll(100))
        if readable:
            self._read()

    def _read(self):
        try:
            data = self._ours().recv(1 << 14)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        self.received += data
        while b"\n" in self.received:
            line, self.received = self.received.split(b"\n", 1)
            self._obey(line)
        if len(self.received) > LONGEST_COMMAND:
            self._lose()

    def _ours(self):
        """The socket. OSError: the program has closed it, and its number may be that of a file of the program's."""
        sock = self.sock
        if identity(sock.fileno()) != self.who:
            raise OSError("the socket was closed")
        return sock

    def _lose(self):
        sock, self.sock = self.sock, None
        self.pending = b""
        if sock is not None:
            let_go(sock, self.who)

    def _obey(self, line):
        number = name = None
        try:
            command = wire.loads(line.decode("utf-8"))
            number, name = command.get("id"), command.get("cmd")
            function = self.commands.get(name)
            if function is None:
                raise ValueError("no such command")
            self._put("reply", {"id": number, "cmd": name, "ok": True, "value": function(command)})
        except Exception as error:
            self._put("reply", {"id": number, "cmd": name, "ok": False, "error": wire.said(error) or wire.said(error, repr)})


def message(kind, fields):
    """The message as it is queued."""
    made = {"type": kind, "t": round(time.time(), 3)}
    made.update(fields)
    return made


def let_go(sock, who):
    """Closes the socket, unless its number is another's now: what daemons do, `os.closerange`, closes ours as well."""
    if identity(sock.fileno()) == who:
        sock.close()
    else:
        sock.detach()


def finite(value):
    """The value with None in the place of each number that JSON cannot write."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value
