//! Files that have much of one thing, in any number: twice as many must not cost much more than twice.

mod areas;
pub mod attached;
pub mod formats;
pub mod long;
pub mod objects;
mod pages;
mod products;
mod stored;
pub mod tables;
mod tasks;
pub mod texts;

pub use objects::call_sites;
pub use products::*;

const SITE: u64 = 0xffff_ffff_8100_0000;
const HEAP: u64 = 0xffff_8880_0000_0000;
const LONG: &str = "unsigned long";

/// Numbers as bytes of an event.
fn bytes(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// A thing of which a file can have much.
#[derive(Clone, Copy)]
pub struct Dimension {
    pub name: &'static str,
    /// How many the smaller file of the full test has.
    pub count: u64,
    /// A file with that many.
    pub make: fn(u64) -> Vec<u8>,
}

/// All of them.
pub fn all() -> Vec<Dimension> {
    let dimension = |name, count, make| Dimension { name, count, make };
    vec![
        dimension("live objects of one call site", 100_000, objects::live),
        dimension("objects that come and go", 60_000, objects::lives),
        dimension("call sites", 50_000, objects::call_sites),
        dimension("call sites that free, too", 40_000, objects::lives_of_call_sites),
        dimension("sizes", 50_000, objects::sizes),
        dimension("gfp_flags", 50_000, objects::gfp_flags),
        dimension("nodes", 50_000, objects::nodes),
        dimension("frees of what was never allocated", 100_000, objects::unseen),
        dimension("allocations of one address", 50_000, objects::one_address),
        dimension("objects that overlap", 50_000, objects::overlapping),
        dimension("lengths of lives", 50_000, objects::lengths),
        dimension("time between events", 50_000, objects::gaps),
        dimension("cache names of one call site", 25_000, cache_names),
        dimension("call sites × caches", 50_000, sites_and_caches),
        dimension("freeing sites", 50_000, freeing_sites),
        dimension("frames", 60_000, pages::frames),
        dimension("orders", 30_000, pages::orders),
        dimension("migrate types", 50_000, pages::migratetypes),
        dimension("frees of part of a block", 50_000, pages::parts),
        dimension("call sites of pages", 50_000, pages::stacks),
        dimension("fallbacks", 40_000, pages::fallbacks),
        dimension("percpu allocations", 40_000, areas::percpu),
        dimension("vmalloc areas", 20_000, areas::vmalloc),
        dimension("tasks", 40_000, tasks::tasks),
        dimension("rows of tasks", 50_000, tasks::rows),
        dimension("renames of one task", 30_000, renames),
        dimension("naming classes", 2_000, |n| naming_classes(n as u16, 10_000)),
        dimension("starts and exits of tasks", 20_000, tasks::task_events),
        dimension("cgroups of one task", 50_000, tasks::cgroups_of_one),
        dimension("cgroups", 50_000, tasks::cgroups),
        dimension("stacks", 30_000, tasks::stacks),
        dimension("depth of stacks", 2_000, tasks::depth),
        dimension("stalls that do not end", 60_000, open_stalls),
        dimension("stalls", 60_000, tasks::stalls),
        dimension("shrinkers of one function", 25_000, shrinkers_of_a_function),
        dimension("shrinkers of many functions", 25_000, tasks::shrinkers),
        dimension("depth of a graph", 60_000, deep_graph),
        dimension("symbols", 100_000, tables::symbols),
        dimension("symbols of one address", 100_000, tables::symbols_of_one_address),
        dimension("owners of symbols", 25_000, symbol_owners),
        dimension("source lines", 50_000, tables::lines),
        dimension("inlined functions of one address", 25_000, tables::inlined),
        dimension("snapshots", 1_000, |n| snapshots(n, 20_000)),
        dimension("lines of a snapshot", 20_000, tables::slabinfo_lines),
        dimension("attached files", 20_000, tables::files),
        dimension("keys of metadata", 50_000, tables::keys),
        dimension("ranges of CPUs of a node", 25_000, tables::cpu_ranges),
        dimension("sums", 50_000, tables::sums),
        dimension("counters of CPUs", 4_000, tables::counters),
        dimension("classes", 3_000, formats::classes),
        dimension("fields of a class", 60, formats::fields),
        dimension("list of __print_symbolic", 2_000, formats::symbolic),
        dimension("list of __print_flags", 2_000, formats::flags),
        dimension("arguments of a format", 1_000, formats::arguments),
        dimension("parentheses of a format", 5_000, formats::parentheses),
        dimension("events with a long name", 4_000, formats::long_name),
        dimension("events with a long name of a field", 4_000, formats::long_field),
        dimension("events with a long text", 1_000, formats::long_print),
        dimension("CPUs", 4_000, stored::cpus),
        dimension("CPUs with a page", 4_000, |n| page_on_each_cpu(n as u32)),
        dimension("chunks", 10_000, stored::chunks),
        dimension("losses", 10_000, stored::losses),
        dimension("chunks without events", 20_000, stored::empty_chunks),
        dimension("texts", 20_000, stored::texts),
        dimension("directories above a file", 50_000, texts::directories),
        dimension("cgroups above a cgroup", 50_000, texts::cgroup_parents),
        dimension("lines of one file with a long name", 5_000, texts::lines_of_one_file),
        dimension("tasks of one cgroup with a long path", 5_000, texts::tasks_of_one_cgroup),
        dimension("call sites of a cgroup with a long path", 5_000, texts::call_sites_of_a_long_path),
        dimension("tasks of a file with a long path", 5_000, texts::tasks_of_a_long_path),
        dimension("tasks of inlined functions", 5_000, texts::tasks_of_inlined_functions),
        dimension("parts of names of functions", 30_000, texts::parts_of_names),
        dimension("length of the name of a function", 30_000, texts::long_function),
        dimension("length of the name of a module", 30_000, texts::long_module),
        dimension("objects of a flag with a long name", 2_000, texts::long_flag),
        dimension("values and links of a cache", 2_000, attached::slab_sysfs),
        dimension("names of migrate types", 20_000, attached::types_of_pages),
        dimension("length of the name of a migrate type", 2_000, attached::long_type_of_pages),
        dimension("lines of zones and counters", 20_000, attached::zones),
        dimension("lines of accounts of the kernel", 20_000, attached::accounts),
        dimension("conditions of events", 20_000, attached::conditions),
        dimension("pages of one frame", 50_000, pages::one_frame),
        dimension("blocks that overlap", 50_000, pages::overlapping),
        dimension("areas that overlap", 20_000, areas::overlapping),
        dimension("steps back of a clock", 50_000, objects::steps_back),
        dimension("depth of a recursion", 2_000, tasks::recursion),
        dimension("length of values of metadata", 2_000_000, long::metadata),
        dimension("words of values of metadata", 2_000_000, long::words_of_metadata),
        dimension("length of a filter", 8_000_000, long::filter),
        dimension("words of a filter", 8_000_000, long::words_of_filter),
        dimension("length of lines of attached files", 500_000, long::attached_lines),
        dimension("length of names of a file and a task", 30_000, long::names),
        dimension("length of the name of a class", 8_000, long::class),
    ]
}
