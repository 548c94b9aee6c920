//! Amounts of an account.

use std::collections::BTreeMap;

use serde::Serialize;

/// Amounts of a call site: bytes or objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Account {
    /// At the begin, by the kernel.
    pub before: i64,
    /// Allocated in the trace and live at its end.
    pub live: i64,
    /// At the end, by the kernel.
    pub after: i64,
    /// before + live - after: older memory that was freed in the trace, if all events are there.
    pub older_freed: i64,
}

impl Account {
    /// With the older memory that was freed.
    pub fn finish(self) -> Self {
        let older_freed = self.before.saturating_add(self.live).saturating_sub(self.after);
        Self { older_freed, ..self }
    }

    /// Adds the amounts of another call site.
    pub fn add(&mut self, other: &Self) {
        self.before = self.before.saturating_add(other.before);
        self.live = self.live.saturating_add(other.live);
        self.after = self.after.saturating_add(other.after);
        self.older_freed = self.older_freed.saturating_add(other.older_freed);
    }

    /// True if memory is live in the trace, or the kernel's number changed.
    pub fn is_moved(&self) -> bool {
        self.live != 0 || self.before != self.after
    }

    /// The change, or what is live if that is more.
    pub fn size(&self) -> u64 {
        self.after.saturating_sub(self.before).unsigned_abs().max(self.live.unsigned_abs())
    }
}

/// Amounts by name.
pub type Amounts = BTreeMap<String, i64>;

/// Function and offset, without the size that the kernel prints: `f+0x1 [module]`.
pub fn short(symbol: &str) -> String {
    let (name, module) =
        symbol.split_once(" [").map_or((symbol, None), |(name, module)| (name, Some(module)));
    let name = name.split('/').next().unwrap_or(name);
    module.map_or(name.to_owned(), |module| format!("{name} [{module}"))
}

/// Adds to an amount.
pub fn add(amounts: &mut Amounts, name: String, amount: i64) {
    let sum = amounts.entry(name).or_default();
    *sum = sum.saturating_add(amount);
}
