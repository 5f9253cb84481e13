"""Measures the CPU time and peak memory of a child process, or of a process that keeps running."""

import os
import resource
import signal

TICK = os.sysconf("SC_CLK_TCK")
# A child that needs more than this fails, whatever the smaller size needs.
MOST_SECONDS = 20


class Cost:
    """CPU seconds and peak memory in MiB. `failed` is the reason if the measurement failed."""

    def __init__(self, seconds, mebibytes, failed=None):
        self.seconds, self.mebibytes, self.failed = seconds, mebibytes, failed

    def beyond(self, base):
        return Cost(max(0, self.seconds - base.seconds), max(0, self.mebibytes - base.mebibytes), self.failed)


def of_child(arguments, environment, stdin, said, allowed):
    """Runs a command to its end, and measures it together with its children. `said` receives the output."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, said, flags, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, said + ".errors", flags, 0o600),
    ]
    pid = os.posix_spawn(arguments[0], arguments, environment, file_actions=actions)
    resource.prlimit(pid, resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    _, status, usage = os.wait4(pid, 0)
    code, failed = os.waitstatus_to_exitcode(status), None
    if code in (-signal.SIGKILL, -signal.SIGXCPU):
        failed = f"more than {MOST_SECONDS} s"
    elif code not in allowed:
        with open(said + ".errors", errors="replace") as file:
            failed = f"exit code {code}: {file.read(200).strip()}"
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, failed)


class Process:
    """Measures the cost of a running process since `begin`."""

    def __init__(self, pid):
        self.pid, self.before, self.resident = pid, 0.0, 0.0

    def begin(self):
        # Resets the peak.
        with open(f"/proc/{self.pid}/clear_refs", "w") as file:
            file.write("5")
        self.resident, self.before = self._mebibytes("VmRSS"), self._seconds()

    def cost(self, failed=None):
        return Cost(self._seconds() - self.before, max(0.0, self._mebibytes("VmHWM") - self.resident), failed)

    def _seconds(self):
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def _mebibytes(self, name):
        with open(f"/proc/{self.pid}/status") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith(name))
