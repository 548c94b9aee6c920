#!/usr/bin/env python3
"""Makes one kind of kernel object, keeps one of five and frees the others: made.py KIND SECONDS [LEAKS_PER_SECOND]

What stays is a leak as a careless program makes it. Needs root. `made.py --list` prints one line per kind: its group,
its name, the tasks that make it, a pattern of names that identify the object, the seconds of the shortest recording
that can show it, and the programs and files that it needs.
"""
import signal, sys

sys.dont_write_bytecode = True
import made_fds, made_files, made_holders, made_ipc, made_net, made_netlink, made_pages, made_tasks
import more_files, more_memory, more_net
from made_common import leak, limits

GROUPS = {
    "made": (made_fds, made_files, made_ipc, made_net, made_tasks, made_holders, made_netlink, made_pages),
    "more-made": (more_memory, more_files, more_net),
}
KINDS = {name: kind for modules in GROUPS.values() for module in modules for name, kind in module.KINDS.items()}


def main():
    if sys.argv[1] == "--list":
        for group, modules in GROUPS.items():
            for name, kind in [item for module in modules for item in module.KINDS.items()]:
                print(group, name, ",".join(kind.tasks), kind.telling, kind.seconds, kind.needs, sep="\t")
        return
    seconds = float(sys.argv[2])
    rate = float(sys.argv[3]) if len(sys.argv) > 3 else KINDS[sys.argv[1]].rate
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    limits()
    kind, kept = KINDS[sys.argv[1]](), []
    try:
        leak(kind, kept, rate, seconds)
    finally:
        # A second SIGTERM would leave the rest of the objects.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(f"{sys.argv[1]}: {len(kept)} kept", flush=True)
        kind.close()


main()
