"""Made leaks of pages, of which reclaim can take none back: 1 to 2 MiB a second, page tables 800 KB a second."""
import mmap, os, socket, time

from made_common import CLONE_NEWNS, KEEPER, MNT_DETACH, Beside, InFolder, Kind, done, libc, own_namespace, rename

SO_SNDBUFFORCE, MAP_NORESERVE, MAP_HUGETLB = 32, 0x4000, 0x40000
HUGE, CHUNK = 2 << 20, 128 << 10
OVERCOMMIT, ZRAM = "/proc/sys/vm/nr_overcommit_hugepages", "/sys/class/zram-control"


class FilePages(InFolder):
    """One file that grows, on a file system without a disk, mounted in a mount namespace of the maker."""

    rate, of = 12, 1
    filesystem, options = b"tmpfs", b"size=2g"
    telling = "shmem|tmpfs|pages"

    def __init__(self):
        own_namespace(CLONE_NEWNS)
        super().__init__()
        done(libc.mount(b"none", self.folder.encode(), self.filesystem, 0, self.options), "mount")
        self.file = os.open(self.path(), os.O_CREAT | os.O_WRONLY)

    def make(self):
        os.write(self.file, bytes(CHUNK))

    def close(self):
        os.close(self.file)
        done(libc.umount2(self.folder.encode(), MNT_DETACH), "umount")
        super().close()


class RamfsPages(FilePages):
    filesystem, options = b"ramfs", None
    telling = "ramfs|simple_write|filemap|folio|pages"


class ZramPages(Kind):
    """Text that does not compress, written into a zram device of the maker, past the page cache."""

    rate, of, needs = 12, 1, ZRAM
    telling = "zram|zs_|zspage|pages"

    def __init__(self):
        super().__init__()
        with open(f"{ZRAM}/hot_add") as file:
            self.device = int(file.read())
        self.folder = f"/sys/block/zram{self.device}"
        self.set("disksize", "1G")
        self.file = os.open(f"/dev/zram{self.device}", os.O_RDWR | os.O_DIRECT)
        self.text = mmap.mmap(-1, CHUNK)

    def set(self, name, value):
        with open(f"{self.folder}/{name}", "w") as file:
            file.write(value)

    def make(self):
        self.text[:] = os.urandom(CHUNK)
        os.pwrite(self.file, self.text, self.number * CHUNK)
        self.number += 1

    def close(self):
        os.close(self.file)
        self.set("reset", "1")
        with open(f"{ZRAM}/hot_remove", "w") as file:
            file.write(str(self.device))


class HugetlbPages(Kind):
    """Huge pages beyond the pool, which the kernel allocates when they are mapped."""

    rate, of, needs = 1, 1, OVERCOMMIT
    telling = "huge"

    def __init__(self):
        super().__init__()
        with open(OVERCOMMIT) as file:
            self.before = file.read()
        self.overcommit("512")

    def overcommit(self, number):
        with open(OVERCOMMIT, "w") as file:
            file.write(number)

    def make(self):
        huge = mmap.mmap(-1, HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_HUGETLB)
        huge[0] = 1
        return huge

    def close(self):
        self.overcommit(self.before)


class StreamQueue(Kind):
    """Pairs of unix sockets with 100 KB that are not received: pages of several orders, and heads of packets."""

    rate, of = 10, 1
    telling = "unix|sock|skb|alloc_skb"

    def make(self):
        pair = socket.socketpair()
        pair[0].setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 20)
        pair[0].sendall(bytes(100_000))
        return pair


class PageTables(Beside):
    """200 page tables a second by one task, beside tasks that have some for 12 to 20 s."""

    rate, of, seconds, tasks = 10, 1, 40, (KEEPER,)
    telling = "pte|page_table|pgtable|pages"

    def __init__(self):
        super().__init__()
        self.start(self.neighbours)
        rename(KEEPER)
        self.area = self.reserve(1 << 40)

    def reserve(self, size):
        """Memory that is read only: each page is the zero page, and only tables are allocated."""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
        area = mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ)
        area.madvise(mmap.MADV_NOHUGEPAGE)
        return area

    def read(self, area, begin, number):
        for n in range(begin, begin + number):
            area[n * HUGE]

    def neighbours(self):
        for number in range(900):
            if os.fork() == 0:
                self.read(self.reserve(1 << 36), 0, 60)
                time.sleep(12 + number % 9)
                os._exit(0)
            time.sleep(1)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def make(self):
        self.read(self.area, self.number, 20)
        self.number += 20


KINDS = {
    "tmpfs_pages": FilePages, "ramfs_pages": RamfsPages, "zram_pages": ZramPages, "hugetlb_pages": HugetlbPages,
    "stream_queue": StreamQueue, "page_tables": PageTables,
}
