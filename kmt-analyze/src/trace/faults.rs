//! Faults of a file that were found when its events were read: damaged chunks, and limits that were exceeded.
//!
//! Damage that is found when the file is opened is in the trace; screens, standard error and JSON count both.

use std::collections::HashSet;

use kmt_format::read::{Damage, Trace};
use kmt_format::{Error, ErrorKind};

/// Faults of a pass over the events.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// Event chunks that could not be read.
    pub damages: Vec<Damage>,
    /// Limits that were exceeded; what is beyond them is counted as unknown.
    pub limits: Vec<Error>,
}

impl Faults {
    /// Damage, and the limit that was exceeded, if one was.
    pub fn new(damages: Vec<Damage>, limit: Option<ErrorKind>) -> Self {
        Self { damages, limits: limit.map(Error::new).into_iter().collect() }
    }

    /// Number of damaged places of the file.
    pub fn damaged_places(&self, trace: &Trace<'_>) -> u64 {
        trace.damage_count().saturating_add(self.damages.len() as u64)
    }

    /// Names of the limits that were exceeded.
    pub fn limit_names(&self) -> Vec<&'static str> {
        let name = |error: &Error| match error.kind() {
            ErrorKind::LimitExceeded { name, .. } => Some(*name),
            _ => None,
        };
        self.limits.iter().filter_map(name).collect()
    }

    /// True if there is neither damage nor an exceeded limit.
    pub fn is_empty(&self) -> bool {
        self.damages.is_empty() && self.limits.is_empty()
    }

    /// Adds the faults of another pass over the same file: what both found is one fault.
    pub fn join(&mut self, other: Self) {
        let known: HashSet<u64> = self.damages.iter().map(|damage| damage.offset).collect();
        self.damages.extend(other.damages.into_iter().filter(|damage| !known.contains(&damage.offset)));
        let known = self.limit_names();
        self.limits.extend(other.limits.into_iter().filter(
            |error| !matches!(error.kind(), ErrorKind::LimitExceeded { name, .. } if known.contains(name)),
        ));
    }
}

impl From<Vec<Damage>> for Faults {
    fn from(damages: Vec<Damage>) -> Self {
        Self::new(damages, None)
    }
}

impl From<&[Damage]> for Faults {
    fn from(damages: &[Damage]) -> Self {
        damages.to_vec().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_that_two_passes_found_are_counted_once() {
        let damage = |offset| Damage::new(offset, 64, Error::new(ErrorKind::Usage("damaged")));
        let limit = |found| ErrorKind::LimitExceeded { name: "texts", what: "the length", found, limit: 1 };
        let mut faults = Faults::new(vec![damage(64), damage(256)], Some(limit(2)));
        faults.join(Faults::new(vec![damage(256), damage(512)], Some(limit(9))));
        let offsets: Vec<u64> = faults.damages.iter().map(|damage| damage.offset).collect();
        assert_eq!((offsets, faults.limit_names()), (vec![64, 256, 512], vec!["texts"]));
    }
}
