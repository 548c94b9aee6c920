"""More made leaks, on which no rule was tuned: data in pipes, files without names, mounts of other kinds, attributes."""
import os, subprocess, tempfile

from made_common import CLONE_NEWNS, CLONE_NEWUSER, MNT_DETACH, Fds, InFolder, Kind, done, fds, libc, own_namespace, syscall

AT_FDCWD, OPEN_TREE_CLONE, IN_CREATE = -100, 1, 0x100


class PipeData(Fds):
    """Pipes with 32 KiB that are not read."""

    telling, rate = "pipe|pages", 20

    def make(self):
        pipe = os.pipe()
        os.write(pipe[1], bytes(32 << 10))
        return pipe


def proc_file():
    """An open file of /proc that was read: its text is in a buffer."""
    fd = os.open("/proc/self/status", os.O_RDONLY)
    os.read(fd, 1)
    return fd


def unlinked_file():
    """A file on the disk that has no name."""
    return os.open("/var/tmp", os.O_TMPFILE | os.O_RDWR, 0o600)


def open_tree():
    """A mount that belongs to no folder."""
    return syscall("open_tree", (428, 428), AT_FDCWD, b"/usr", OPEN_TREE_CLONE)


class Mounts(InFolder):
    """Mounts in a mount namespace of this process."""

    rate = 10

    def __init__(self):
        own_namespace(CLONE_NEWNS)
        super().__init__()

    def mount(self, source, path, kind, options):
        os.makedirs(path, exist_ok=True)
        done(libc.mount(source, path.encode(), kind, 0, options), "mount")
        return path

    def free(self, path):
        done(libc.umount2(path.encode(), MNT_DETACH), "umount")
        os.rmdir(path)

    def close(self):
        for entry in sorted(os.listdir(self.folder), reverse=True):
            libc.umount2(f"{self.folder}/{entry}".encode(), MNT_DETACH)
        super().close()


class Fuse(Mounts):
    """Mounts of FUSE whose server does not answer."""

    telling = "fuse"

    def make(self):
        fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
        return self.mount(b"made", self.path(), b"fuse", options), fd

    def free(self, made):
        os.close(made[1])
        super().free(made[0])


class Overlay(Mounts):
    telling = "ovl|overlay|mount|mnt|super"

    def __init__(self):
        super().__init__()
        self.layers = self.mount(b"none", f"{self.folder}/layers", b"tmpfs", None)
        for name in ("lower", "upper", "workdir"):
            os.mkdir(f"{self.layers}/{name}")

    def make(self):
        self.number += 1
        upper, work = f"{self.layers}/upper/{self.number}", f"{self.layers}/workdir/{self.number}"
        os.mkdir(upper)
        os.mkdir(work)
        options = f"lowerdir={self.layers}/lower,upperdir={upper},workdir={work}"
        return self.mount(b"none", f"{self.folder}/{self.number}", b"overlay", options.encode())

    def free(self, path):
        super().free(path)
        number = os.path.basename(path)
        subprocess.run(["rm", "-rf", f"{self.layers}/upper/{number}", f"{self.layers}/workdir/{number}"], check=True)


class OnTmpfs(InFolder):
    place = "/dev/shm"


class Attribute(OnTmpfs):
    """Extended attributes of one file on tmpfs."""

    telling = "xattr"

    def __init__(self):
        super().__init__()
        self.file = self.path()
        open(self.file, "w").close()

    def make(self):
        self.number += 1
        os.setxattr(self.file, f"trusted.{self.number}", b"x" * 500)
        return f"trusted.{self.number}"

    def free(self, name):
        os.removexattr(self.file, name)


class Link(OnTmpfs):
    """Symbolic links on tmpfs with a target of 1,000 bytes."""

    telling = "shmem|symlink|tmpfs"

    def make(self):
        path = self.path()
        os.symlink("x" * 1000, path)
        return path

    def free(self, path):
        os.unlink(path)


class InotifyEvents(InFolder):
    """Events that are not read."""

    telling, of = "inotify|fsnotify", 1

    def __init__(self):
        super().__init__()
        self.fd = done(libc.inotify_init1(0), "inotify_init1")
        done(libc.inotify_add_watch(self.fd, self.folder.encode(), IN_CREATE), "inotify_add_watch")

    def make(self):
        path = self.path()
        os.mkdir(path)
        os.rmdir(path)


class Binfmt(Kind):
    """Formats of programs, in a user namespace of this process."""

    telling, rate = "binfmt|bm_|register", 50

    def __init__(self):
        user, group = os.getuid(), os.getgid()
        own_namespace(CLONE_NEWUSER | CLONE_NEWNS)
        super().__init__()
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        self.folder = tempfile.mkdtemp(prefix="kmt-made-")
        done(libc.mount(b"none", self.folder.encode(), b"binfmt_misc", 0, None), "mount")

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w") as file:
            file.write(text)

    def make(self):
        self.number += 1
        self.write("register", f":made{self.number}:M::kmt{self.number:06}::/bin/true:")
        return f"made{self.number}"

    def free(self, name):
        self.write(name, "-1")

    def close(self):
        done(libc.umount2(self.folder.encode(), MNT_DETACH), "umount")
        os.rmdir(self.folder)


KINDS = {
    "pipe_data": PipeData, "fuse": Fuse, "overlay": Overlay, "attribute": Attribute, "link": Link, "binfmt": Binfmt,
    "inotify_events": InotifyEvents, "proc_file": fds(proc_file, "seq|proc|open"),
    "unlinked_file": fds(unlinked_file, "ext4|inode|tmpfile", 30), "open_tree": fds(open_tree, "mnt|mount|open_tree", 50),
}
