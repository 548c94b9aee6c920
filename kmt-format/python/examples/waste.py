"""Waste by call site: bytes handed out beyond those asked for."""

import collections
import sys

import kmt

trace = kmt.open(sys.argv[1])
waste: collections.Counter[tuple[str, int]] = collections.Counter()
for event in trace:
    if event.meaning in ("kmalloc", "cache_alloc") and event["ptr"]:
        api = event.meaning.removesuffix("_alloc")
        waste[api, event["call_site"]] += event["bytes_alloc"] - event["bytes_req"]
for (api, address), wasted in waste.most_common():
    print(wasted, api, hex(address), trace.symbol(address), sep="\t")
