//! Changes of one row over steps of time, of which most rows have few.
//!
//! `steps` and `timeline` have a row for each site, task or kind of pages.

use super::sums::Sums;

/// The steps of one row: only those with changes, or all if there are many.
#[derive(Debug, Clone)]
pub struct Row<S> {
    /// By number, while they are few.
    few: Vec<(u32, S)>,
    all: Vec<S>,
}

impl<S> Default for Row<S> {
    fn default() -> Self {
        Self { few: Vec::new(), all: Vec::new() }
    }
}

impl<S: Sums + Copy + Default> Row<S> {
    /// The step with that number, of `width`.
    #[inline]
    pub fn at(&mut self, number: usize, width: usize) -> Option<&mut S> {
        if self.all.is_empty() {
            return self.at_few(number, width);
        }
        self.all.get_mut(number)
    }

    fn at_few(&mut self, number: usize, width: usize) -> Option<&mut S> {
        let found = self.few.binary_search_by_key(&number, |&(number, _)| number as usize);
        if found.is_err() && self.few.len() >= width / 4 {
            self.all.resize(width, S::default());
            for (number, step) in std::mem::take(&mut self.few) {
                if let Some(slot) = self.all.get_mut(number as usize) {
                    *slot = step;
                }
            }
            return self.all.get_mut(number);
        }
        let at = found.unwrap_or_else(|at| {
            // Many have one step only.
            if self.few.is_empty() {
                self.few.reserve_exact(1);
            }
            self.few.insert(at, (number as u32, S::default()));
            at
        });
        self.few.get_mut(at).map(|(_, step)| step)
    }

    /// Adds another row with as many steps.
    pub fn add_all(&mut self, other: &Self, width: usize) {
        for (number, step) in other.iter() {
            if let Some(own) = self.at(number, width) {
                own.absorb(*step);
            }
        }
    }

    /// Steps that are kept, with changes or not.
    pub fn kept(&self) -> usize {
        self.few.len() + self.all.len()
    }

    /// Makes each two steps one.
    pub fn halve(&mut self) {
        for (number, _) in &mut self.few {
            *number /= 2;
        }
        self.few.dedup_by(|(later, change), (earlier, sum)| {
            let is_same = later == earlier;
            if is_same {
                sum.absorb(*change);
            }
            is_same
        });
        let pair = |pair: &[S]| {
            let mut sum = S::default();
            pair.iter().for_each(|step| sum.absorb(*step));
            sum
        };
        self.all = self.all.chunks(2).map(pair).collect();
    }

    /// True if nothing changed.
    pub fn is_empty(&self) -> bool {
        self.few.is_empty() && self.all.is_empty()
    }

    /// Steps with their numbers, in order; steps without changes may be left out.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &S)> {
        let few = self.few.iter().map(|(number, step)| (*number as usize, step));
        few.chain(self.all.iter().enumerate())
    }
}
