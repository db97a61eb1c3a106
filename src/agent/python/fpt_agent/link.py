"""The socket to the supervisor: a bounded queue, drained by one thread.

Whoever sends only appends to a deque, so a slow or dead reader never slows the generation: what
does not fit is dropped, oldest first, and counted (`dropped`).
"""
import os
import select
import time
from _collections import deque
from _thread import allocate_lock

from . import threads, wire

try:
    import _socket as socket  # what `socket` is made of: half the start-up time goes without its wrapping
except ImportError:
    import socket

#: Messages that wait at most. A run sends some ten a second.
QUEUE = 2000
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


class Link:
    """See the module. One in a process; after a fork the child opens its own."""

    def __init__(self, path):
        self.path = path
        self.commands = {}
        self.heartbeat = None
        self.greeting = None
        self._fresh()

    def _fresh(self):
        self.queue = deque()
        self.lock = allocate_lock()
        self.wake = threads.Bell()
        self.writing = allocate_lock()
        self.tried = threads.Bell()
        self.waited = False  # for the first attempt to connect, by the end of the program
        self.dropped = 0
        self.seq = 0
        self.thread = None
        self.sock = self.who = None
        self.pending = b""
        self.received = b""

    def send(self, kind, /, **fields):  # a field may be called `kind` too
        """Queues one message. Never blocks, never raises."""
        if self.path is None:
            return
        self._put(kind, fields)
        self.wake.ring()

    def _put(self, kind, fields):
        message = {"type": kind, "t": round(time.time(), 3)}
        message.update(fields)
        with self.lock:
            if len(self.queue) >= QUEUE:
                self.queue.popleft()
                self.dropped += 1
            self.queue.append(message)

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
            self._write()
            if time.monotonic() > end or not self.queue and not self.pending:
                return
            time.sleep(0.002)

    def _run(self):
        beat = lost = 0.0
        while True:
            try:
                now = time.monotonic()
                if self.sock is None and now - lost >= RETRY_S:
                    lost = now
                    try:
                        self._connect(1.0)
                    finally:
                        self.tried.ring()
                if now - beat >= BEAT_S and self.sock is not None and self.heartbeat is not None:
                    beat = now
                    self._put("beat", self.heartbeat())
                self._write()
                self._wait()
                threads.unlist()
            except Exception:  # nothing here may end the thread
                time.sleep(0.2)

    def _connect(self, seconds):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
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
            self.pending = self._line(dict({"type": "hello", "t": round(time.time(), 3)}, **self.greeting()))
        self.who, self.sock = who, sock

    def _line(self, message):
        self.seq += 1
        message["seq"] = self.seq
        message["pid"] = os.getpid()
        try:
            text = wire.dumps(message)
        except ValueError:  # JSON has no NaN and no infinity
            text = wire.dumps(finite(message))
        return text.encode("utf-8", "replace") + b"\n"

    def _write(self):
        with self.writing:
            self._write_alone()

    def _write_alone(self):
        while self.sock is not None:
            while len(self.pending) < PENDING:
                with self.lock:
                    if not self.queue:
                        break
                    message = self.queue.popleft()
                    dropped, self.dropped = self.dropped, 0
                if dropped:
                    self.pending += self._line({"type": "dropped", "t": message["t"], "n": dropped})
                self.pending += self._line(message)
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
            self._put("reply", {"id": number, "cmd": name, "ok": False, "error": str(error) or repr(error)})


def identity(descriptor):
    """Device and inode of what is behind the number; None: nothing."""
    try:
        about = os.fstat(descriptor)
    except OSError:
        return None
    return about.st_dev, about.st_ino


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
