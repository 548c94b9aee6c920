//! Command lines for files of the fuzz targets.

/// Name of the file.
pub const FILE: &str = "made.kmt";

/// Reports with options, beside all reports without.
pub const WITH_OPTIONS: [&[&str]; 14] = [
    &["timeline", "--by", "cache"],
    &["who", "ffff888000010060"],
    &["who", "0"],
    &["callgraph", "--top-down", "--min", "0"],
    &["latency", "--threshold", "1us"],
    &["callers", "--call-site", "do_fork+0x4"],
    &["caches", "--cache", "dentry"],
    &["callers", "--by", "subsystem,task"],
    &["callers", "--by", "dir,file,line,function", "--sort", "waste_percent"],
    &["pages", "--by", "cgroup,order,migratetype,gfp"],
    &["lifetimes", "--by", "module,size"],
    &["memory", "--by", "cgroup,cpu"],
    &["vmalloc", "--by", "comm,line"],
    &["percpu", "--by", "function,task"],
];

/// Commands without a selection.
pub const OTHERS: [&[&str]; 13] = [
    &["info"],
    &["what-if", "--add", "100,9000", "--drop", "64", "--split", "fork"],
    &["reconcile"],
    &["verify"],
    &["dump"],
    &["summary", "--compat", "perf-kmem", "--slab", "--caller", "--alloc"],
    &["summary", "--compat", "perf-kmem", "--page", "--caller", "--alloc"],
    &["summary", "--compat", "trace-cmd-mem"],
    &["account"],
    &["dump", "--follow"],
    &["diff", "--time", "+0..+1", "--against", "+1..+5"],
    &["diff", "--by", "cache", "--per-second", "--all"],
    &["diff", "--by", "task", "--fail-over", "100"],
];

/// What is counted; not every report accepts every one.
pub const SELECTIONS: [&[&str]; 14] = [
    &[],
    &["--time", "+0..+0.01"],
    &["--time", "+0.001..+18446744073"],
    &["--time", "0..1.5"],
    &["--at", "+0.01"],
    &["--at", "99999999999"],
    &["--pid", "7"],
    &["--comm", "cc1"],
    &["--cpu", "1"],
    &["--where", "lifetime>1ms"],
    &["--where", "size>=100", "--where", "order<3"],
    &["--where", "call_site~fork|alloc"],
    &["--without-recorder"],
    &["--threads", "3"],
];

/// Exports that are one stream, charts, the page.
pub const OUTPUTS: [&[&str]; 33] = [
    &["export", "perfetto"],
    &["export", "perfetto", "--events"],
    &["export", "pprof"],
    &["export", "pprof", "--pages"],
    &["export", "dhat"],
    &["export", "folded"],
    &["export", "folded", "--by", "live"],
    &["export", "folded", "--by", "waste"],
    &["export", "folded", "--by", "count", "--pages"],
    &["export", "csv"],
    &["export", "csv", "--of", "objects"],
    &["export", "csv", "--of", "call-sites"],
    &["export", "csv", "--of", "caches"],
    &["export", "ndjson"],
    &["export", "ndjson", "--of", "objects"],
    &["export", "ndjson", "--of", "event-counts"],
    &["chart", "timeline"],
    &["chart", "timeline", "--by", "task", "--steps", "7"],
    &["chart", "timeline", "--by", "cache", "-l", "1"],
    &["chart", "timeline", "--by", "call-site"],
    &["chart", "flame"],
    &["chart", "flame", "--weight", "live"],
    &["chart", "icicle"],
    &["chart", "waste"],
    &["chart", "lifetimes"],
    &["chart", "filling"],
    &["chart", "pageblocks"],
    &["chart", "latency"],
    &["chart", "balance"],
    &["chart", "ring"],
    &["chart", "treemap"],
    &["report"],
    &["report", "--against", FILE],
];

pub const EDITS: [&[&str]; 10] = [
    &["slice", "--time", "+0..+0.01"],
    &["slice", "--cpu", "0", "--compress", "lz4"],
    &["slice", "--pid", "7", "--event", "kmem:*"],
    &["slice", "--event", "*stack*"],
    &["slice"],
    &["recover"],
    &["recover", "--compress", "lz4"],
    &["anonymize", "--seed", "7"],
    &["anonymize", "--seed", "1", "--hide-symbols", "--hide-caches"],
    &["anonymize"],
];
