//! Keys of `--by`, the only list of them.
//!
//! A key has its name, its column, the part of an allocation that determines its value, and the kinds of allocations
//! that have it. `values` computes the values, `numbered` and `table` make groups of them. The command line, its errors
//! and the columns of exports read this list.

use super::values::{GroupValue, Values};
use crate::failure::Result;
use crate::pass::Needs;
use crate::render::screen::{Cell, Column};
use crate::render::words::{count, escaped};
use crate::reports::common::lead::Nouns;
use crate::stream::{NameId, Origin, PageSite, Site};
use crate::trace::session::Session;
use KeySource::{Cache, CallSite, Flags, Pages, Slab, Task};

/// Allocations that a report groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    /// Slab objects.
    Slab,
    Pages,
    /// vmalloc areas, percpu allocations.
    Areas,
}

/// A key of `--by`.
#[derive(Debug)]
pub struct GroupKey {
    /// Name on the command line and in JSON.
    pub name: &'static str,
    /// Other names on the command line.
    aliases: &'static [&'static str],
    /// Names of its groups in sentences.
    pub nouns: Nouns,
    /// Column of its values.
    pub column: Column,
    /// Word before a value in a sentence.
    prefix: &'static str,
    /// Source of its value.
    pub source: KeySource,
}

/// Source of a value: the part of an allocation that determines it.
#[derive(Debug, Clone, Copy)]
pub enum KeySource {
    /// Address of its call site; pages have one where their stacks were recorded.
    CallSite(fn(&Values<'_, '_>, u64) -> GroupValue),
    /// Site and cache of a slab object.
    Cache(fn(&Values<'_, '_>, &Site, Option<NameId>) -> GroupValue),
    /// Site of a slab object.
    Slab(fn(&Site) -> GroupValue),
    /// Kind of pages.
    Pages(fn(&Values<'_, '_>, &PageSite) -> GroupValue),
    /// Allocation flags.
    Flags,
    /// CPU and task.
    Task(fn(&Values<'_, '_>, &Origin) -> GroupValue),
}

impl KeySource {
    /// Reason why allocations of a kind have no value; `None`: they have.
    fn lacks(self, kind: GroupKind) -> Option<&'static str> {
        match (self, kind) {
            (Self::Cache(_) | Self::Slab(_), GroupKind::Pages) => {
                Some("of slab objects only: events of pages do not record it")
            }
            (Self::Pages(_), GroupKind::Slab) => Some("of pages only: see `pages`"),
            (Self::Cache(_) | Self::Slab(_) | Self::Pages(_) | Self::Flags, GroupKind::Areas) => {
                Some("of slab objects and pages only: events of areas do not record it")
            }
            _ => None,
        }
    }
}

/// A key whose values have a column by the name of one group, and no prefix.
const fn key(
    name: &'static str,
    aliases: &'static [&'static str],
    [one, several]: [&'static str; 2],
    source: KeySource,
) -> GroupKey {
    GroupKey { name, aliases, nouns: Nouns { one, several }, column: Column::name(one), prefix: "", source }
}

pub static KEYS: [GroupKey; 18] = [
    key(
        "call_site",
        &["call-site", "symbol"],
        ["call site", "call sites"],
        CallSite(|v, address| v.symbol(address)),
    ),
    key("function", &["func"], ["function", "functions"], CallSite(|v, address| v.function(address))),
    key("module", &["mod"], ["module", "modules"], CallSite(|v, address| v.module(address))),
    key("line", &["source"], ["source line", "source lines"], CallSite(|v, address| v.line(address))),
    key("file", &[], ["source file", "source files"], CallSite(|v, address| v.file(address))),
    key("dir", &["directory"], ["directory", "directories"], CallSite(|v, address| v.dir(address))),
    key("subsystem", &[], ["subsystem", "subsystems"], CallSite(|v, address| v.subsystem(address))),
    key("cache", &[], ["cache", "caches"], Cache(|v, site, cache| v.cache(site, cache))),
    key("size", &["bytes_alloc"], ["size", "sizes"], Slab(|s| GroupValue::Number(s.bytes_alloc as i64)))
        .shown(Column::number("size"), "objects of size "),
    key("order", &[], ["order", "orders"], Pages(|_, s| GroupValue::Number(s.order.into())))
        .shown(Column::number("order"), "order "),
    key(
        "migratetype",
        &["migrate-type"],
        ["migrate type", "migrate types"],
        Pages(|v, s| v.migratetype(s.migratetype)),
    )
    .shown(Column::whole("migrate type"), ""),
    key("task", &["pid"], ["task", "tasks"], Task(|v, origin| v.task(origin.pid))),
    key("comm", &[], ["task name", "task names"], Task(|v, origin| v.comm(origin)))
        .shown(Column::name("comm"), ""),
    key("cgroup", &[], ["cgroup", "cgroups"], Task(|v, origin| v.cgroup(origin))),
    key("accounted", &[], ["accounting", "accountings"], Cache(|v, site, cache| v.accounted(site, cache)))
        .shown(Column::whole("accounted"), "accounted: "),
    key("cpu", &[], ["CPU", "CPUs"], Task(|_, origin| GroupValue::Number(origin.cpu.into())))
        .shown(Column::number("CPU"), "CPU "),
    key("node", &[], ["requested node", "requested nodes"], Slab(|s| GroupValue::Number(s.node.into())))
        .shown(Column::number("node"), "node "),
    key("gfp", &["gfp_flags"], ["set of gfp flags", "sets of gfp flags"], Flags)
        .shown(Column::name("gfp flags"), ""),
];

/// The directory as a key that `--depth` does not cut.
pub static WHOLE_DIR: GroupKey =
    key("dir", &[], ["directory", "directories"], CallSite(|v, address| v.whole_dir(address)));

/// True if the values of the key of that name are numbers.
pub fn is_number(name: &str) -> bool {
    matches!(name, "size" | "order" | "cpu" | "node")
}

impl GroupKey {
    /// This key in another column, with a word before its values in a sentence.
    const fn shown(self, column: Column, prefix: &'static str) -> Self {
        Self { column, prefix, ..self }
    }

    /// The key of slab objects of that name.
    pub fn parse_slab(name: &str) -> std::result::Result<&'static Self, String> {
        Self::parse(name, GroupKind::Slab)
    }

    /// The key of pages of that name.
    pub fn parse_pages(name: &str) -> std::result::Result<&'static Self, String> {
        Self::parse(name, GroupKind::Pages)
    }

    /// True if pages have all of these keys.
    pub fn parse_all_pages(names: &str) -> bool {
        names.split(',').all(|name| Self::parse_pages(name).is_ok())
    }

    /// The key of areas of that name.
    pub fn parse_areas(name: &str) -> std::result::Result<&'static Self, String> {
        Self::parse(name, GroupKind::Areas)
    }

    fn parse(name: &str, kind: GroupKind) -> std::result::Result<&'static Self, String> {
        let found = KEYS.iter().find(|key| key.name == name || key.aliases.contains(&name));
        let reason = match found.map(|key| (key, key.source.lacks(kind))) {
            Some((key, None)) => return Ok(key),
            Some((_, Some(reason))) => reason,
            None => "no such key",
        };
        let names = KEYS.iter().filter(|key| key.source.lacks(kind).is_none()).map(|key| key.name);
        Err(format!("{reason}; keys: {}", names.collect::<Vec<_>>().join(", ")))
    }

    /// True if pages have its values only where their stacks were recorded.
    pub fn needs_stacks(&self) -> bool {
        matches!(self.source, KeySource::CallSite(_))
    }

    /// True if its values are those of tasks and CPUs.
    pub fn is_of_tasks(&self) -> bool {
        matches!(self.source, Task(_))
    }

    /// Refused if its values are places in the source, and the file has none.
    pub fn check(&self, session: &Session<'_>) -> Result<()> {
        let what = format!("--by {}", self.name);
        match self.name {
            "line" | "file" => session.check_source(&what),
            "dir" | "subsystem" => session.check_directories(&what),
            "cgroup" => session.check_cgroups(&what),
            _ => Ok(()),
        }
    }

    /// Needs of a pass whose groups have its values.
    pub fn needs(&self) -> Needs {
        match self.source {
            KeySource::Cache(_) => Needs::CACHE_NAMES | Needs::FLAG_NAMES,
            KeySource::Flags => Needs::FLAG_NAMES,
            _ if self.name == "comm" => Needs::TASK_NAMES,
            _ if self.name == "cgroup" => Needs::TASK_NAMES | Needs::CGROUPS,
            _ => Needs::empty(),
        }
    }

    /// Text of a value.
    pub fn text(&self, value: &GroupValue) -> String {
        match value {
            GroupValue::Unknown => "?".to_owned(),
            GroupValue::Number(-1) if self.name == "node" => "any".to_owned(),
            GroupValue::Number(number) => u64::try_from(*number).map_or_else(|_| number.to_string(), count),
            GroupValue::Text(text) => escaped(text.as_bytes()),
        }
    }

    /// Text of a value in a sentence.
    pub fn phrase(&self, value: &GroupValue) -> String {
        format!("{}{}", self.prefix, self.text(value))
    }

    /// Cell of a value.
    pub fn cell(&self, value: &GroupValue) -> Cell {
        match value {
            GroupValue::Unknown => Cell::Unknown,
            _ if self.name == "call_site" => Cell::symbol(self.text(value)),
            _ => Cell::text(self.text(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_one_name_each_and_others_have_a_reason() {
        let mut names: Vec<&str> =
            KEYS.iter().flat_map(|key| key.aliases.iter().chain([&key.name])).copied().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        let error = GroupKey::parse_slab("order").unwrap_err();
        assert!(error.contains("of pages only") && error.contains("call_site, function"), "{error}");
        let error = GroupKey::parse_pages("cache").unwrap_err();
        assert!(error.starts_with("of slab objects only") && error.contains("order, migratetype"), "{error}");
        assert!(GroupKey::parse_slab("pids").unwrap_err().starts_with("no such key"));
        assert_eq!(GroupKey::parse_slab("bytes_alloc").unwrap().name, "size");
    }
}
