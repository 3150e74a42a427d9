"""bench_attention --serve as an object: one request, one answer, with a limit of time."""

import os
import select
import subprocess
import time


class Refused(Exception):
    """The server answers with an error, ends, or doesn't answer in time."""


class Server:
    def __init__(self, command, limit):
        self.command = command
        self.limit = limit
        self.process = None
        self.pending = b""

    def start(self):
        self.pending = b""
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self.answer()

    def answer(self):
        end = time.monotonic() + self.limit
        output = self.process.stdout.fileno()
        while b"\n" not in self.pending:
            ready, _, _ = select.select([output], [], [], max(0, end - time.monotonic()))
            chunk = os.read(output, 4096) if ready else b""
            if not chunk:
                self.kill()
                raise Refused("bench_attention has ended" if ready else f"no answer within {self.limit} seconds")
            self.pending += chunk
        line, _, self.pending = self.pending.partition(b"\n")
        word, _, rest = line.decode(errors="replace").partition(" ")
        if word != "ok":
            raise Refused(rest)
        return rest

    def ask(self, *words):
        """What follows "ok". A server that has ended is started again."""
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write((" ".join(words) + "\n").encode())
            self.process.stdin.flush()
        except OSError as error:
            self.kill()
            raise Refused(f"bench_attention has ended: {error}") from error
        try:
            return self.answer()
        except Refused:
            raise
        except BaseException:
            self.kill()  # its answer is still to come, and would pass for the next one
            raise

    def kill(self):
        """Frees the device from a kernel that hangs, too."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin = None
            self.process.stdout.close()
        self.process = None

    def close(self):
        if self.process is None:
            return
        try:
            self.process.communicate(b"quit\n", timeout=20)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self.kill()
        self.process = None
