"""Made leaks of System V and POSIX objects, keys, timers and memory maps."""
import ctypes, mmap, os, struct

from made_common import CLONE_NEWIPC, Kind, done, libc, limits, own_namespace, syscall

IPC_PRIVATE, IPC_RMID = 0, 0
MAP_ANONYMOUS = 0x20
ADD_KEY, KEYCTL = (248, 217), (250, 219)
KEYCTL_UNLINK, PROCESS_KEYRING = 9, -2


class PosixTimer(Kind):
    telling = "timer"

    def make(self):
        event = (ctypes.c_byte * 64)()
        struct.pack_into("qii", event, 0, 0, 0, 1)  # SIGEV_NONE
        timer = ctypes.c_int()
        syscall("timer_create", (222, 107), 1, event, ctypes.byref(timer))
        return timer.value

    def free(self, timer):
        syscall("timer_delete", (226, 111), timer)


class Key(Kind):
    telling = "key"

    def make(self):
        self.number += 1
        return syscall("add_key", ADD_KEY, b"user", f"kmt-{self.number}".encode(), b"payload", 7, PROCESS_KEYRING)

    def free(self, key):
        syscall("KEYCTL_UNLINK", KEYCTL, KEYCTL_UNLINK, key, PROCESS_KEYRING)


class Keyring(Key):
    def make(self):
        self.number += 1
        return syscall("add_key", ADD_KEY, b"keyring", f"kmt-{self.number}".encode(), None, 0, PROCESS_KEYRING)


class OwnIpc(Kind):
    """Objects in an IPC namespace of this process, which removes them with it."""

    def __init__(self):
        own_namespace(CLONE_NEWIPC)
        limits()  # those of the new namespace
        super().__init__()


class Mqueue(OwnIpc):
    telling = "mq|mqueue"
    rate = 40  # RLIMIT_MSGQUEUE leaves less than a minute of 100

    def make(self):
        self.number += 1
        name = f"/kmt-{os.getpid()}-{self.number}".encode()
        attributes = struct.pack("4q4q", 0, 1, 64, 0, 0, 0, 0, 0)
        return name, done(libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, attributes), "mq_open")

    def free(self, queue):
        os.close(queue[1])
        done(libc.mq_unlink(queue[0]), "mq_unlink")


class SharedMemory(OwnIpc):
    telling = "shm|newseg"

    def make(self):
        return done(libc.shmget(IPC_PRIVATE, 4096, 0o600), "shmget")

    def free(self, segment):
        done(libc.shmctl(segment, IPC_RMID, None), "shmctl")


class Semaphores(OwnIpc):
    telling = "sem"

    def make(self):
        return done(libc.semget(IPC_PRIVATE, 8, 0o600), "semget")

    def free(self, semaphores):
        done(libc.semctl(semaphores, 0, IPC_RMID), "semctl")


class MessageQueue(OwnIpc):
    """Message queues with one message each."""

    telling = "msg"

    def make(self):
        queue = done(libc.msgget(IPC_PRIVATE, 0o600), "msgget")
        done(libc.msgsnd(queue, struct.pack("q", 1) + b"x" * 200, 200, 0), "msgsnd")
        return queue

    def free(self, queue):
        done(libc.msgctl(queue, IPC_RMID, None), "msgctl")


class Messages(OwnIpc):
    """Messages that stay in one queue; each that is freed is received."""

    telling = "msg"

    def __init__(self):
        super().__init__()
        with open("/proc/sys/kernel/msgmnb", "w") as file:
            file.write(str(1 << 26))
        self.queue = done(libc.msgget(IPC_PRIVATE, 0o600), "msgget")

    def make(self):
        self.number += 1
        done(libc.msgsnd(self.queue, struct.pack("q", self.number) + b"x" * 200, 200, 0), "msgsnd")
        return self.number

    def free(self, message):
        libc.msgrcv.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long, ctypes.c_int]
        done(libc.msgrcv(self.queue, ctypes.create_string_buffer(208), 200, message, 0), "msgrcv")


class Vma(Kind):
    """Anonymous memory whose protection alternates: neighbours that differ do not merge."""

    telling = "mmap|vm_area"

    def make(self):
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        self.number += 1
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if self.number % 2 else 0)
        return libc.mmap(None, 8192, protection, mmap.MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)

    def free(self, address):
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        libc.munmap(address, 8192)


KINDS = {
    "posix_timer": PosixTimer, "mqueue": Mqueue, "key": Key, "keyring": Keyring, "shared_memory": SharedMemory,
    "semaphores": Semaphores, "message_queue": MessageQueue, "messages": Messages, "vma": Vma,
}
