-- What the trace is: counts, clock, and what its file says (keys that begin with "file.").
CREATE TABLE trace (key TEXT, value TEXT);
-- Events and losses of each CPU.
CREATE TABLE cpus (cpu INTEGER, events INTEGER, lost_events INTEGER);
-- Names of tasks, the latest each.
CREATE TABLE tasks (pid INTEGER PRIMARY KEY, comm TEXT);
-- What allocations of one kind at one place have in common.
CREATE TABLE sites (site INTEGER PRIMARY KEY, api TEXT, call_site INTEGER, call_site_text TEXT, cache TEXT,
    bytes_req INTEGER, bytes_alloc INTEGER, gfp_flags INTEGER, gfp_flags_text TEXT, node INTEGER);
-- The same of frees.
CREATE TABLE free_sites (free_site INTEGER PRIMARY KEY, api TEXT, call_site INTEGER, call_site_text TEXT, cache TEXT);
-- Call stacks, where they were recorded; depth 0 is the innermost frame.
CREATE TABLE stacks (stack INTEGER, depth INTEGER, address INTEGER, address_text TEXT);
-- Slab objects, each life of an address; times in the clock's unit; fate is freed, freed_unseen or live.
CREATE TABLE objects (address INTEGER, site INTEGER REFERENCES sites, cache TEXT, born INTEGER, born_cpu INTEGER,
    born_pid INTEGER, is_born INTEGER, "end" INTEGER, fate TEXT, lifetime INTEGER, is_freed INTEGER, is_live INTEGER,
    free_site INTEGER REFERENCES free_sites, freed_cpu INTEGER, freed_pid INTEGER, late INTEGER, uncertain INTEGER,
    stack INTEGER);
-- Sums of the exact ledger by call site, interface and cache.
CREATE TABLE call_sites (call_site INTEGER, call_site_text TEXT, api TEXT, cache TEXT, alloc_events INTEGER,
    alloc_failures INTEGER, bytes_req INTEGER, bytes_alloc INTEGER, bytes_wasted INTEGER, frees_matched INTEGER,
    bytes_freed INTEGER, freed_unseen INTEGER, bytes_freed_unseen INTEGER, live INTEGER, bytes_live INTEGER,
    bytes_wasted_live INTEGER, uncertain INTEGER, live_least INTEGER, frees_seen TEXT);
-- All events, with --events; is_duplicate: a later event reports the same allocation again, which counts there.
CREATE TABLE events (ts INTEGER, cpu INTEGER, pid INTEGER, comm TEXT, event TEXT, ptr INTEGER, call_site INTEGER,
    call_site_text TEXT, bytes_req INTEGER, bytes_alloc INTEGER, gfp_flags INTEGER, node INTEGER, cache TEXT,
    accounted INTEGER, pfn INTEGER, page_order INTEGER, migratetype INTEGER, text TEXT, is_duplicate INTEGER);
