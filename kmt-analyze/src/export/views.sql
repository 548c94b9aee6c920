CREATE INDEX objects_site ON objects (site);
CREATE INDEX objects_born ON objects (born);
CREATE INDEX objects_end ON objects ("end");
CREATE INDEX objects_address ON objects (address, born);
CREATE INDEX stacks_stack ON stacks (stack, depth);
CREATE INDEX events_ts ON events (ts);
CREATE INDEX events_event ON events (event, ts);
CREATE INDEX events_ptr ON events (ptr, ts);

-- Objects with everything that is known of them.
CREATE VIEW objects_named AS
SELECT printf('0x%x', o.address) AS address, s.api, s.call_site_text, o.cache, s.bytes_req, s.bytes_alloc,
    s.gfp_flags_text, s.node, o.born, o.born_cpu, o.born_pid, t.comm AS born_comm, o.is_born, o."end", o.fate,
    o.lifetime, o.is_freed, o.is_live, f.call_site_text AS free_site_text, o.freed_cpu, o.freed_pid, o.late,
    o.uncertain, o.stack
FROM objects o JOIN sites s USING (site) LEFT JOIN free_sites f USING (free_site) LEFT JOIN tasks t ON t.pid = o.born_pid;

-- Sums by cache.
CREATE VIEW caches AS
SELECT cache, api, sum(alloc_events) AS alloc_events, sum(bytes_req) AS bytes_req, sum(bytes_alloc) AS bytes_alloc,
    sum(bytes_wasted) AS bytes_wasted, sum(live) AS live, sum(bytes_live) AS bytes_live
FROM call_sites GROUP BY cache, api;

-- Sums by task.
CREATE VIEW task_load AS
SELECT o.born_pid AS pid, t.comm, count(*) AS alloc_events, sum(s.bytes_alloc) AS bytes_alloc,
    sum(o.is_live * s.bytes_alloc) AS bytes_live
FROM objects o JOIN sites s USING (site) LEFT JOIN tasks t ON t.pid = o.born_pid WHERE o.is_born
GROUP BY o.born_pid, t.comm;

-- Where objects are allocated and where they are freed.
CREATE VIEW paths AS
SELECT s.call_site_text, f.call_site_text AS free_site_text, o.cache, count(*) AS objects,
    avg(o.lifetime) AS lifetime_mean, sum(o.born_cpu <> o.freed_cpu) AS on_another_cpu
FROM objects o JOIN sites s USING (site) JOIN free_sites f USING (free_site)
GROUP BY s.call_site, s.call_site_text, f.call_site, f.call_site_text, o.cache;
