//! Places of a trace's functions in an ELF file: by names, since a kernel and its modules are loaded anywhere.

use std::collections::HashMap;

use kmt_format::read::SymbolTable;

use super::image::Image;

/// Names that vote are at most this many.
const VOTES_MAX: usize = 100_000;

/// Distances between the addresses of a trace and those of an ELF file.
pub struct Names {
    /// Names in both.
    common: usize,
    /// Distances of the kernel's sections or of a module's, the most frequent first, with their votes.
    distances: Vec<(u64, usize)>,
    /// Distance by the address of a function in the trace.
    by_function: HashMap<u64, u64>,
}

impl Names {
    /// Compares the functions of `owner`, "" for the kernel, with those of an ELF file.
    pub fn of(image: &Image<'_>, symbols: &SymbolTable<'_>, owner: &str) -> Self {
        let mut in_image: HashMap<&[u8], Vec<u64>> = HashMap::new();
        for (name, address) in image.functions() {
            let places = in_image.entry(name).or_default();
            if !places.contains(&address) && places.len() < 64 {
                places.push(address);
            }
        }
        let is_owner = |entry_owner: Option<&[u8]>| entry_owner.unwrap_or_default() == owner.as_bytes();
        let entries = symbols.entries().filter(|entry| is_owner(entry.owner)).take(VOTES_MAX);
        let traced: Vec<(u64, &[u64])> = entries
            .filter_map(|entry| Some((entry.address, in_image.get(entry.name.as_ref())?.as_slice())))
            .collect();
        let mut votes: HashMap<u64, usize> = HashMap::new();
        for (address, places) in &traced {
            if let [known] = places {
                *votes.entry(address.wrapping_sub(*known)).or_default() += 1;
            }
        }
        let mut distances: Vec<(u64, usize)> = votes.into_iter().collect();
        distances.sort_by_key(|&(distance, votes)| (std::cmp::Reverse(votes), distance));
        let mut names = Self { common: traced.len(), distances, by_function: HashMap::new() };
        let is_module = !owner.is_empty();
        for (address, places) in traced {
            let found = names.distance_of(address, places, is_module);
            names.by_function.extend(found.map(|distance| (address, distance)));
        }
        names
    }

    /// Distance of a function that may be at several places: the one with most votes. All of a kernel has one.
    fn distance_of(&self, address: u64, places: &[u64], is_module: bool) -> Option<u64> {
        let few = if is_module { self.distances.len().min(256) } else { usize::from(self.is_one_build()) };
        let likely = self.distances.get(..few)?.iter().map(|(distance, _)| *distance);
        let mut distances = likely.filter(|d| places.contains(&address.wrapping_sub(*d)));
        let only = || places.first().filter(|_| is_module && places.len() == 1);
        distances.next().or_else(|| only().map(|known| address.wrapping_sub(*known)))
    }

    /// True if nine of ten names of the kernel agree.
    fn is_one_build(&self) -> bool {
        let all: usize = self.distances.iter().map(|(_, votes)| votes).sum();
        self.distances.first().is_some_and(|(_, votes)| votes * 10 >= all * 9)
    }

    /// Address in the ELF file of an address of the trace.
    pub fn in_image(&self, address: u64, symbols: &SymbolTable<'_>) -> Option<u64> {
        let before = address.checked_sub(1)?;
        let function = before.checked_sub(symbols.resolve(before)?.offset)?;
        Some(address.wrapping_sub(*self.by_function.get(&function)?))
    }

    /// How names disagree.
    pub fn disagreement(&self) -> String {
        match self.distances.first() {
            None => "none of its functions is in the trace".to_owned(),
            Some((_, votes)) => {
                format!(
                    "of {} functions that the trace has too, only {votes} are at one distance from it",
                    self.common
                )
            }
        }
    }
}
