"""Made leaks of files, of what watches and locks them, and of mounts."""
import ctypes, fcntl, os, struct, tempfile

from made_common import CLONE_NEWNS, MNT_DETACH, Fds, InFolder, Kind, done, libc, own_namespace

F_OFD_SETLK, F_SETLEASE, F_NOTIFY = 37, 1024, 1026
DN_MODIFY, DN_MULTISHOT = 2, 0x80000000
FAN_MARK_ADD, FAN_MARK_REMOVE, FAN_MODIFY = 1, 2, 2
LOOP_CTL_ADD, LOOP_CTL_REMOVE = 0x4C80, 0x4C81


class Inotify(InFolder):
    telling = "inotify"

    def __init__(self):
        super().__init__()
        self.fd = done(libc.inotify_init1(0), "inotify_init1")

    def make(self):
        path = self.path()
        os.mkdir(path)
        return path, done(libc.inotify_add_watch(self.fd, path.encode(), 2), "inotify_add_watch")

    def free(self, watch):
        done(libc.inotify_rm_watch(self.fd, watch[1]), "inotify_rm_watch")
        os.rmdir(watch[0])


class Fanotify(InFolder):
    telling = "fanotify|fsnotify"

    def __init__(self):
        super().__init__()
        self.fd = done(libc.fanotify_init(0, os.O_RDONLY), "fanotify_init")

    def mark(self, flags, path):
        mask = ctypes.c_uint64(FAN_MODIFY)
        done(libc.fanotify_mark(self.fd, flags, mask, -100, path.encode()), "fanotify_mark")

    def make(self):
        path = self.path()
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        self.mark(FAN_MARK_ADD, path)
        return path

    def free(self, path):
        self.mark(FAN_MARK_REMOVE, path)
        os.unlink(path)


class OneFile(InFolder):
    """Objects of one file on the disk."""

    def __init__(self):
        super().__init__()
        self.file = self.path()
        os.close(os.open(self.file, os.O_CREAT | os.O_WRONLY))


class Dnotify(OneFile, Fds):
    telling = "dnotify|fcntl"

    def make(self):
        fd = os.open(self.folder, os.O_RDONLY)
        done(libc.fcntl(fd, F_NOTIFY, ctypes.c_ulong(DN_MODIFY | DN_MULTISHOT)), "F_NOTIFY")
        return (fd,)


class Lease(OneFile, Fds):
    telling = "lease"

    def make(self):
        fd = os.open(self.file, os.O_RDONLY)
        fcntl.fcntl(fd, F_SETLEASE, fcntl.F_RDLCK)
        return (fd,)


class OpenFile(OneFile, Fds):
    telling = "open|filp|alloc_empty_file"

    def make(self):
        return (os.open(self.file, os.O_RDONLY),)


class FileLock(Kind):
    telling = "lock"

    def __init__(self):
        super().__init__()
        self.file = tempfile.TemporaryFile()

    def lock(self, kind, start):
        fcntl.fcntl(self.file, F_OFD_SETLK, struct.pack("hhqqi4x", kind, 0, start, 1, 0))

    def make(self):
        self.number += 2
        self.lock(fcntl.F_WRLCK, self.number)
        return self.number

    def free(self, start):
        self.lock(fcntl.F_UNLCK, start)


class Tmpfs(InFolder):
    telling = "shmem|tmpfs"
    place = "/dev/shm"

    def make(self):
        path = self.path()
        with open(path, "wb") as file:
            file.write(b"x")
        return path

    def free(self, path):
        os.unlink(path)


class Mount(InFolder):
    """Mounts of tmpfs, in a mount namespace of this process."""

    telling = "mount|mnt|fill_super|alloc_super"
    rate = 20

    def __init__(self):
        own_namespace(CLONE_NEWNS)
        super().__init__()

    def make(self):
        path = self.path()
        os.mkdir(path)
        done(libc.mount(b"none", path.encode(), b"tmpfs", 0, None), "mount")
        return path

    def free(self, path):
        done(libc.umount2(path.encode(), 0), "umount")
        os.rmdir(path)

    def close(self):
        for entry in os.listdir(self.folder):
            libc.umount2(f"{self.folder}/{entry}".encode(), MNT_DETACH)
        super().close()


class Loop(Kind):
    """Loop devices without a file."""

    telling = "loop"
    rate = 3

    def __init__(self):
        super().__init__()
        self.control = os.open("/dev/loop-control", os.O_RDWR)

    def make(self):
        self.number += 1
        return fcntl.ioctl(self.control, LOOP_CTL_ADD, 1000 + self.number)

    def free(self, device):
        fcntl.ioctl(self.control, LOOP_CTL_REMOVE, device)

    def close(self):
        for device in range(1000, 1001 + self.number):
            if os.path.exists(f"/sys/block/loop{device}"):
                self.free(device)


KINDS = {
    "inotify": Inotify, "fanotify": Fanotify, "dnotify": Dnotify, "lease": Lease, "open_file": OpenFile,
    "file_lock": FileLock, "tmpfs": Tmpfs, "mount": Mount, "loop": Loop,
}
