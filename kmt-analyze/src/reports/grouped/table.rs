//! The groups of `--by` as rows and as a table, for any sums.
//!
//! A report adds up its own sums for each group (`numbered`); this file sorts and limits the groups, writes them as
//! JSON with their keys by name, and makes a table with a column for each key. The first group whose values are known
//! has its words for the answer.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::keys::GroupKey;
use super::values::GroupValue;
use crate::render::screen::{Cell, Column, Table};
use crate::reports::common::lead::Nouns;

/// Groups of several keys.
const COMBINATIONS: Nouns = Nouns { one: "combination", several: "combinations" };

/// Groups of `--by`, sorted and limited.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupTable<R> {
    /// With --by: its keys.
    #[serde(serialize_with = "names")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub by: Vec<&'static GroupKey>,
    /// With --by: number of groups.
    pub groups_total: usize,
    /// With --by: groups; each has its value of every key, under the key's name: a number (size, order, cpu, node; node -1:
    /// any), a text (`~` before a directory or subsystem: inferred from the function's name), or `null` (unknown: the call site of pages without a stack, such as failed allocations).
    pub groups: Vec<GroupRow<R>>,
}

fn names<S: Serializer>(keys: &[&GroupKey], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(keys.iter().map(|key| key.name))
}

/// One group.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupRow<R> {
    /// Values by key.
    #[serde(flatten)]
    pub(super) values: BTreeMap<&'static str, GroupValue>,
    /// Cells of the report.
    #[serde(flatten)]
    pub row: R,
}

impl<R> GroupRow<R> {
    /// Value of a key that is a text.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key) {
            Some(GroupValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Source file of the row or, where that is not known, its directory, and whether that is inferred.
    pub fn path(&self) -> Option<(&str, bool)> {
        let directory = || {
            let directory = self.text("dir")?;
            Some(directory.strip_prefix('~').map_or((directory, false), |inferred| (inferred, true)))
        };
        self.text("file").map(|file| (file, false)).or_else(directory)
    }

    /// Value of a key that is a number.
    pub fn number(&self, key: &str) -> Option<u64> {
        match self.values.get(key) {
            Some(GroupValue::Number(number)) => u64::try_from(*number).ok(),
            _ => None,
        }
    }
}

impl<R> GroupTable<R> {
    /// Names of groups in sentences.
    pub fn nouns(&self) -> Nouns {
        match self.by.as_slice() {
            [key] => key.nouns,
            _ => COMBINATIONS,
        }
    }

    /// The first group: its values for a sentence, and its row.
    pub fn first(&self) -> Option<(String, &R)> {
        self.groups.first().map(|group| self.in_words(group))
    }

    /// The first group whose values are known.
    pub fn first_known(&self) -> Option<(String, &R)> {
        let is_known =
            |group: &&GroupRow<R>| group.values.values().all(|value| *value != GroupValue::Unknown);
        self.groups.iter().find(is_known).map(|group| self.in_words(group))
    }

    /// Values of a group for a sentence, and its row.
    fn in_words<'g>(&self, group: &'g GroupRow<R>) -> (String, &'g R) {
        let phrase = |key: &&GroupKey| group.values.get(key.name).map(|value| key.phrase(value));
        let phrases: Vec<String> = self.by.iter().filter_map(phrase).collect();
        (phrases.join(" / "), &group.row)
    }

    /// A column for each key, and then those of the report.
    pub fn table(&self, columns: impl IntoIterator<Item = Column>, cells: impl Fn(&R) -> Vec<Cell>) -> Table {
        let nouns = self.nouns();
        let columns: Vec<Column> = self.by.iter().map(|key| key.column.clone()).chain(columns).collect();
        let mut table = Table::new("", columns).of(nouns.one, nouns.several, self.groups_total);
        for group in &self.groups {
            let value = |key: &&GroupKey| group.values.get(key.name).map(|value| key.cell(value));
            table.row(self.by.iter().filter_map(value).chain(cells(&group.row)));
        }
        let is_inferred = |key: &&GroupKey| {
            let mut texts = self.groups.iter().filter_map(|group| group.text(key.name));
            ["dir", "subsystem"].contains(&key.name) && texts.any(|text| text.starts_with('~'))
        };
        if let Some(key) = self.by.iter().copied().find(is_inferred) {
            table.explain(
                key.column.heading,
                "~: inferred from names of functions; --vmlinux FILE shows the true ones.",
            );
        }
        table
    }
}
