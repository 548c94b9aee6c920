#!/usr/bin/env python3
"""Makes one kind of kernel object, keeps one of five and frees the others: made.py KIND SECONDS [LEAKS_PER_SECOND]

What stays is a leak as a careless program makes it. Needs root. `made.py --list` prints one line per kind: its name,
the tasks that make it, and a pattern of names that identify the object.
"""
import signal, sys, time

sys.dont_write_bytecode = True
import made_fds, made_files, made_ipc, made_net, made_tasks
from made_common import limits

KINDS = {**made_fds.KINDS, **made_files.KINDS, **made_ipc.KINDS, **made_net.KINDS, **made_tasks.KINDS}


def main():
    if sys.argv[1] == "--list":
        for name, kind in KINDS.items():
            print(name, ",".join(kind.tasks), kind.telling, sep="\t")
        return
    seconds = float(sys.argv[2])
    rate = float(sys.argv[3]) if len(sys.argv) > 3 else KINDS[sys.argv[1]].rate
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    limits()
    kind, kept = KINDS[sys.argv[1]](), []
    begin = time.monotonic()
    try:
        while (now := time.monotonic() - begin) < seconds:
            made = [kind.make() for _ in range(5)]
            kept.append(made.pop(len(kept) % 5))
            for thing in made:
                kind.free(thing)
            time.sleep(max(0, len(kept) / rate - now))
    finally:
        # A second SIGTERM would leave the rest of the objects.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(f"{sys.argv[1]}: {len(kept)} kept", flush=True)
        kind.close()


main()
