//! Groups of allocations with equal values of some keys, and sums by them.
//!
//! Values of `--by` are numbered once for each item, so that a sum takes a number and not texts. All reports with `--by` use it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::keys::{GroupKey, KeySource};
use super::table::{GroupRow, GroupTable};
use super::values::{GroupValue, Values};
use crate::collect::groups::{AreaGroup, Group, PageGroup};
use crate::pass::Analysis;
use crate::reports::common::sorting::sort_rows;
use crate::stream::{NameId, PageSite, Site};

/// Properties of some allocations.
#[derive(Debug, Clone, Copy)]
pub enum GroupPart<'g> {
    /// Slab objects and their site.
    Slab(&'g Group, &'g Site),
    /// Pages and their kind.
    Pages(&'g PageGroup, &'g PageSite),
    Area(&'g AreaGroup),
}

impl GroupPart<'_> {
    fn origin(self) -> u32 {
        match self {
            Self::Slab(group, _) => group.origin,
            Self::Pages(group, _) => group.origin,
            Self::Area(group) => group.origin,
        }
    }

    /// Source of the value of a key: an item of one of the tables of the pass.
    fn source(self, key: &GroupKey) -> ValueSource {
        match (key.source, self) {
            (KeySource::Task(_), part) => ValueSource::Origin(part.origin()),
            (KeySource::Cache(_), Self::Slab(group, _)) => ValueSource::Cache(group.site, group.cache),
            (KeySource::CallSite(_), Self::Pages(group, _)) => ValueSource::Stack(group.stack),
            (_, Self::Slab(group, _)) => ValueSource::Slab(group.site),
            (_, Self::Pages(group, _)) => ValueSource::Pages(group.site),
            (_, Self::Area(group)) => ValueSource::Area(group.call_site, group.stack),
        }
    }

    fn value(self, key: &GroupKey, values: &Values<'_, '_>, analysis: &Analysis) -> GroupValue {
        match (key.source, self) {
            (KeySource::CallSite(of), Self::Slab(_, site)) => of(values, site.call_site),
            (KeySource::CallSite(of), Self::Pages(group, _)) => {
                values.page_caller(group.stack).map_or(GroupValue::Unknown, |address| of(values, address))
            }
            (KeySource::CallSite(of), Self::Area(group)) => {
                values.area_caller(group).map_or(GroupValue::Unknown, |address| of(values, address))
            }
            (KeySource::Cache(of), Self::Slab(group, site)) => {
                of(values, site, group.cache.or_else(|| values.usual_cache(group.site)))
            }
            (KeySource::Slab(of), Self::Slab(_, site)) => of(site),
            (KeySource::Pages(of), Self::Pages(_, site)) => of(values, site),
            (KeySource::Flags, Self::Slab(_, site)) => values.gfp(site.gfp_flags),
            (KeySource::Flags, Self::Pages(_, site)) => values.gfp(site.gfp_flags),
            (KeySource::Task(of), part) => {
                of(values, &analysis.interner.origins.get(part.origin()).copied().unwrap_or_default())
            }
            (KeySource::Cache(_) | KeySource::Slab(_), Self::Pages(..))
            | (KeySource::Pages(_), Self::Slab(..))
            | (_, Self::Area(_)) => GroupValue::Unknown,
        }
    }
}

/// Numbers of an item: groups of different kinds of memory may have equal ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ValueSource {
    Origin(u32),
    /// Site, and the cache that an event names.
    Cache(u32, Option<NameId>),
    /// Stack of pages.
    Stack(u32),
    /// Site of slab objects.
    Slab(u32),
    /// Kind of pages.
    Pages(u32),
    /// Call site and stack of an area.
    Area(u64, u32),
}

/// Values of one key, numbered.
struct KeyValues {
    key: &'static GroupKey,
    values: Vec<GroupValue>,
    numbers: HashMap<GroupValue, u32>,
    /// Numbers of values, by their source.
    known: HashMap<ValueSource, u32>,
}

impl KeyValues {
    fn new(key: &'static GroupKey) -> Self {
        Self { key, values: Vec::new(), numbers: HashMap::new(), known: HashMap::new() }
    }

    fn number(&mut self, part: GroupPart<'_>, values: &Values<'_, '_>, analysis: &Analysis) -> u32 {
        let source = part.source(self.key);
        if let Some(number) = self.known.get(&source) {
            return *number;
        }
        let value = part.value(self.key, values, analysis);
        let next = self.values.len() as u32;
        let number = *self.numbers.entry(value.clone()).or_insert(next);
        if number == next {
            self.values.push(value);
        }
        self.known.insert(source, number);
        number
    }

    fn value(&self, number: u32) -> &GroupValue {
        self.values.get(number as usize).unwrap_or(&GroupValue::Unknown)
    }
}

/// Values of some keys, numbered: a group is a number for each key.
pub struct Numbered<'r, 'd> {
    keys: Vec<KeyValues>,
    values: &'r Values<'r, 'd>,
    analysis: &'r Analysis,
}

impl<'r, 'd> Numbered<'r, 'd> {
    /// No values yet; each key once.
    pub fn new(keys: &[&'static GroupKey], values: &'r Values<'r, 'd>, analysis: &'r Analysis) -> Self {
        let mut names = HashSet::new();
        let keys = keys.iter().filter(|key| names.insert(key.name)).map(|key| KeyValues::new(key)).collect();
        Self { keys, values, analysis }
    }

    pub fn keys(&self) -> impl Iterator<Item = &'static GroupKey> {
        self.keys.iter().map(|values| values.key)
    }

    /// Numbers of the values of some allocations.
    pub fn of(&mut self, part: GroupPart<'_>) -> Vec<u32> {
        let (values, analysis) = (self.values, self.analysis);
        self.keys.iter_mut().map(|key| key.number(part, values, analysis)).collect()
    }

    /// Values of a group, in the order of the keys.
    fn of_group<'n>(&'n self, group: &'n [u32]) -> impl Iterator<Item = &'n GroupValue> {
        self.keys.iter().zip(group).map(|(key, number)| key.value(*number))
    }

    /// Values of a group, by key.
    pub fn values(&self, group: &[u32]) -> BTreeMap<&'static str, GroupValue> {
        self.keys.iter().zip(group).map(|(key, number)| (key.key.name, key.value(*number).clone())).collect()
    }

    /// Text of the values of a group.
    pub fn text(&self, group: &[u32]) -> String {
        let texts = self.keys.iter().zip(group).map(|(key, number)| key.key.text(key.value(*number)));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Text that sorts groups by name, numbers by their size.
    pub fn order(&self, group: &[u32]) -> String {
        let text = |(key, number): (&KeyValues, &u32)| match key.value(*number) {
            GroupValue::Number(number) => format!("{number:>20}"),
            value => key.key.text(value),
        };
        self.keys.iter().zip(group).map(text).collect::<Vec<_>>().join("\n")
    }
}

/// Sums of the groups of `--by`.
pub struct Grouping<'r, 'd, T> {
    keys: Numbered<'r, 'd>,
    sums: HashMap<Vec<u32>, T>,
}

/// Sums of one group, before its row is made.
struct NamedSums<T> {
    /// Numbers of its values.
    group: Vec<u32>,
    /// Text that sorts it by name.
    name: String,
    sums: T,
}

impl<'r, 'd, T: Default> Grouping<'r, 'd, T> {
    /// No groups yet.
    pub fn new(by: &[&'static GroupKey], values: &'r Values<'r, 'd>, analysis: &'r Analysis) -> Self {
        Self { keys: Numbered::new(by, values, analysis), sums: HashMap::new() }
    }

    /// Sums of the group of some allocations.
    pub fn of(&mut self, part: GroupPart<'_>) -> &mut T {
        self.sums.entry(self.keys.of(part)).or_default()
    }

    /// Sums of all groups, in any order.
    pub fn sums(&self) -> impl Iterator<Item = &T> {
        self.sums.values()
    }

    /// The groups sorted by these keys, and then by name: the first `limit` as rows.
    pub fn table<K: Copy, R>(
        self,
        order: &[K],
        number: impl Fn(&T, K) -> Option<u128>,
        limit: usize,
        row: impl Fn(&T) -> R,
    ) -> GroupTable<R> {
        let Self { keys, sums } = self;
        let named = |(group, sums): (Vec<u32>, T)| NamedSums { name: keys.order(&group), group, sums };
        let mut all: Vec<NamedSums<T>> = sums.into_iter().map(named).collect();
        // Sums come from maps whose order differs in each run: groups of one name are sorted by their values.
        let by_name = |a: &NamedSums<T>, b: &NamedSums<T>| {
            a.name.cmp(&b.name).then_with(|| keys.of_group(&a.group).cmp(keys.of_group(&b.group)))
        };
        sort_rows(&mut all, order, |group, key| number(&group.sums, key), by_name);
        let shown = all.iter().take(limit);
        let rows = shown.map(|group| GroupRow { values: keys.values(&group.group), row: row(&group.sums) });
        GroupTable { by: keys.keys().collect(), groups_total: all.len(), groups: rows.collect() }
    }
}
