"""Waste by call site: bytes handed out beyond those asked for."""

import collections
import sys

import kmt

trace = kmt.open(sys.argv[1])
events: collections.Counter[tuple[str, int]] = collections.Counter()
waste: collections.Counter[tuple[str, int]] = collections.Counter()
for event in trace:
    if event.meaning in ("kmalloc", "cache_alloc"):
        api = event.meaning.removesuffix("_alloc")
        wasted = event["bytes_alloc"] - event["bytes_req"] if event["ptr"] else 0  # 0: it failed
        events[api, event["call_site"]] += 1
        waste[api, event["call_site"]] += wasted
        if event.duplicate_call_site is not None:  # the second event of a large kmalloc: it counts once, here
            events[api, event.duplicate_call_site] -= 1
            waste[api, event.duplicate_call_site] -= wasted
for (api, address), wasted in waste.most_common():
    if events[api, address]:
        print(wasted, api, hex(address), trace.symbol(address), sep="\t")
