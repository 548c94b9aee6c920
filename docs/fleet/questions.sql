-- Questions about a fleet, in SQL that DuckDB and Spark both take. Tables: traces, call_sites, objects; each row has
-- the columns target, build and boot of its trace. Offsets in functions differ between builds, functions do not.

-- waste: bytes that kmalloc and caches handed out beyond those asked for, by function and kernel version
SELECT split_part(call_site_text, '+', 1) AS function, build,
    count(DISTINCT target) AS targets, sum(alloc_events) AS allocations, sum(bytes_wasted) AS wasted
FROM call_sites
GROUP BY split_part(call_site_text, '+', 1), build
HAVING sum(bytes_wasted) > 0
ORDER BY wasted DESC, function, build
LIMIT 20;

-- rare: what is live at the end of a trace on some targets and allocated on others without staying
SELECT split_part(call_site_text, '+', 1) AS function, cache,
    count(DISTINCT CASE WHEN live > 0 THEN target END) AS stays_on, count(DISTINCT target) AS allocated_on,
    sum(live) AS objects, sum(bytes_live) AS bytes
FROM call_sites
GROUP BY split_part(call_site_text, '+', 1), cache
HAVING count(DISTINCT CASE WHEN live > 0 THEN target END) > 0
    AND count(DISTINCT CASE WHEN live > 0 THEN target END) < (SELECT count(DISTINCT target) FROM traces)
ORDER BY bytes DESC, function, cache
LIMIT 20;

-- lifetimes: how long objects of a cache live, build by build
SELECT cache, build, count(*) AS freed, min(lifetime) AS shortest, max(lifetime) AS longest
FROM objects
WHERE fate = 'freed'
GROUP BY cache, build
ORDER BY freed DESC, cache, build
LIMIT 20;

-- trust: which traces lost events, so that their totals are lower bounds
SELECT target, build, boot, events, lost_events FROM traces WHERE lost_events > 0 OR lost_events_is_minimum
ORDER BY target, build, boot;
