/* Waste by call site: bytes handed out beyond those asked for. cc waste.c $(pkg-config --cflags --libs kmt) */
#include <inttypes.h>
#include <stdio.h>
#include <libkmt.h>

static struct site { uint64_t address, waste, events; const char *api; } sites[1 << 16]; /* a hash table */

static struct site *site_of(uint64_t address, const char *api)
{
    struct site *site;
    for (site = &sites[address * 31 % 65536]; site->api && (site->address != address || site->api != api);)
        site = site < sites + 65535 ? site + 1 : sites;
    site->address = address, site->api = api;
    return site;
}

int main(int argc, char **argv)
{
    kmt_trace *trace = kmt_open(argc > 1 ? argv[1] : "trace.kmt");
    kmt_events *events = kmt_events_open(trace);
    kmt_item item;
    struct site *site;
    char symbol[512];
    if (!events) return fprintf(stderr, "%s\n", kmt_error_text()), 1;
    while ((item = kmt_next(events)) > 0) {
        const char *api = kmt_meaning(events) == KMT_KMALLOC ? "kmalloc" : "cache";
        uint64_t ptr, address, earlier, req, alloc;
        if (item == KMT_ITEM_LOSS) fprintf(stderr, "CPU %u: %s%" PRIu64 " events lost\n", kmt_cpu(events),
                                           kmt_loss_is_minimum(events) ? "at least " : "", kmt_loss_lost(events));
        if (kmt_meaning(events) != KMT_KMALLOC && kmt_meaning(events) != KMT_CACHE_ALLOC) continue;
        if (!kmt_unsigned(events, kmt_field_with(events, KMT_ROLE_PTR), &ptr)) continue;
        if (!kmt_unsigned(events, kmt_field_with(events, KMT_ROLE_CALL_SITE), &address)) continue;
        if (!kmt_unsigned(events, kmt_field_named(events, "bytes_req"), &req)) continue;
        if (!kmt_unsigned(events, kmt_field_named(events, "bytes_alloc"), &alloc)) continue;
        if (ptr == 0) alloc = req; /* it failed */
        site = site_of(address, api), site->events++, site->waste += alloc - req;
        /* The second event of a large kmalloc: it counts once, here. */
        if (kmt_duplicate_call_site(events, &earlier))
            site = site_of(earlier, api), site->events--, site->waste -= alloc - req;
    }
    for (site = sites; site < sites + 65536; site++)
        if (site->events && kmt_symbol(trace, site->address, symbol, sizeof symbol))
            printf("%" PRIu64 "\t%s\t0x%" PRIx64 "\t%s\n", site->waste, site->api, site->address, symbol);
    kmt_events_close(events), kmt_close(trace);
    return item == KMT_ITEM_END ? 0 : 1;
}
