"""Made leaks of tasks, of what belongs to them, of namespaces and of cgroups."""
import ctypes, os, signal, struct, subprocess, threading

from made_common import (CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER, CLONE_NEWUTS, MNT_DETACH,
                         Fds, InFolder, Kind, done, libc, own_namespace, syscall)

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 1, 38, 22


class Thread(Kind):
    telling = "clone|copy_process|dup_task|thread"

    def __init__(self):
        super().__init__()
        threading.stack_size(128 << 10)

    def make(self):
        end = threading.Event()
        thread = threading.Thread(target=end.wait, daemon=True)
        thread.start()
        return thread, end

    def free(self, thread):
        thread[1].set()
        thread[0].join()


class Zombie(Kind):
    """Children that ended and are not reaped."""

    telling = "clone|fork|copy_process|dup_task"
    rate = 30

    def make(self):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        return pid

    def free(self, pid):
        os.waitpid(pid, 0)


class Child(Kind):
    """Children that stay alive."""

    telling = "clone|fork|copy_process|dup_task"
    tasks = ("python", "sleep")
    rate = 10

    def __init__(self):
        super().__init__()
        self.kept = []

    def make(self):
        self.kept.append(subprocess.Popen(["sleep", "900"], stdin=subprocess.DEVNULL))
        return self.kept[-1]

    def free(self, child):
        child.kill()
        child.wait()
        self.kept.remove(child)

    def close(self):
        for child in list(self.kept):
            self.free(child)


class Namespace(Fds):
    """Namespaces of children that ended; an open file of each keeps it."""

    rate = 40
    flags, name = 0, ""

    def make(self):
        child = syscall("clone", (56, 220), ctypes.c_ulong(self.flags | signal.SIGCHLD), 0, 0, 0, 0)
        if child == 0:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            while True:
                signal.pause()
        try:
            return (os.open(f"/proc/{child}/ns/{self.name}", os.O_RDONLY),)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def namespace(name, flags, telling, rate=40):
    return type("Namespace", (Namespace,), {"flags": flags, "name": name, "telling": telling, "rate": rate})


class NetNamespace(InFolder):
    """Network namespaces as `ip netns add` makes them: a short-lived command each, kept by a bind mount."""

    telling = "copy_net_ns|setup_net|net_namespace|net_ns"
    tasks = ("unshare", "true", "python")
    rate = 3

    def __init__(self):
        # The bind mounts of a shared mount would be copied into other namespaces.
        own_namespace(CLONE_NEWNS)
        super().__init__()

    def make(self):
        path = self.path()
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        subprocess.run(["unshare", f"--net={path}", "true"], check=True)
        return path

    def free(self, path):
        done(libc.umount2(path.encode(), MNT_DETACH), "umount")
        os.unlink(path)

    def close(self):
        for entry in os.listdir(self.folder):
            libc.umount2(f"{self.folder}/{entry}".encode(), MNT_DETACH)
        super().close()


class Seccomp(Kind):
    """Filters that this process adds for itself; those that are freed are of a child, which ends."""

    telling = "seccomp"
    rate = 20

    def __init__(self):
        super().__init__()
        done(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")

    def add(self):
        code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))  # return SECCOMP_RET_ALLOW
        program = struct.pack("H6xQ", 1, ctypes.addressof(code))
        done(libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0), "PR_SET_SECCOMP")

    def make(self):
        # A filter cannot be removed, so the one of five that stays is chosen here.
        self.number += 1
        if self.number % 5 == 1:
            self.add()
            return None
        child = os.fork()
        if child == 0:
            self.add()
            os._exit(0)
        os.waitpid(child, 0)
        return None

    def free(self, _):
        """The end of the child freed it."""


class Cgroup(Kind):
    telling = "cgroup|css|cgrp"
    rate = 20

    def __init__(self):
        super().__init__()
        below = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"}
        self.folder = next(f for f in sorted(below, reverse=True) if os.path.exists(f + "/cgroup.procs"))
        self.folder += f"/kmt-made-{os.getpid()}"
        os.mkdir(self.folder)

    def make(self):
        self.number += 1
        path = f"{self.folder}/{self.number}"
        os.mkdir(path)
        return path

    def free(self, path):
        os.rmdir(path)

    def close(self):
        for entry in os.scandir(self.folder):
            if entry.is_dir():
                os.rmdir(entry.path)
        os.rmdir(self.folder)


KINDS = {
    "thread": Thread, "zombie": Zombie, "child": Child, "net_namespace": NetNamespace, "seccomp": Seccomp, "cgroup": Cgroup,
    "user_namespace": namespace("user", CLONE_NEWUSER, "user_ns|userns|user_namespace"),
    "mount_namespace": namespace("mnt", CLONE_NEWNS, "mnt_ns|copy_mnt|mount|mnt_namespace", 20),
    "pid_namespace": namespace("pid", CLONE_NEWPID, "pid_ns|pid_namespace|pidns"),
    "ipc_namespace": namespace("ipc", CLONE_NEWIPC, "ipc"),
    "uts_namespace": namespace("uts", CLONE_NEWUTS, "uts"),
    "cgroup_namespace": namespace("cgroup", CLONE_NEWCGROUP, "cgroup"),
}
