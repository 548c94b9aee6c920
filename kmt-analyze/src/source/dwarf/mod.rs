//! Source lines from the debug information of a kernel and its modules.
//!
//! A kernel and its modules are loaded anywhere, so places of a trace's functions in an ELF file are found by names. Then the
//! line tables and inlined functions of each address are read, within a budget by the size of the file.

mod check;
mod find;
pub mod image;
mod limits;
mod lines;
pub mod roots;
mod tables;
mod walk;

pub use check::Checked;
use find::Search;
use image::Image;
pub use limits::{Budget, cost};
use lines::{Lines, WantedAddress};
use roots::Roots;
pub use walk::Reader;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kmt_format::read::SymbolTable;

use super::{LookedUp, SourceArgs, Target};
use crate::failure::{Failure, Result};
use crate::files::Files;
use crate::sort_rows::SortRows;

/// Modules without debug information that a message names.
const NAMED_MAX: usize = 5;

/// Looks up `addresses`, which are return addresses.
pub fn look_up(
    target: &Target<'_>,
    args: &SourceArgs,
    files: &Files,
    addresses: &BTreeSet<u64>,
) -> Result<LookedUp> {
    let mut by_owner: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let unnamed = std::cell::Cell::new(0_usize);
    let owners = addresses.iter().filter_map(|&address| {
        // A call may be the last instruction of its function.
        let symbol = target.symbols.resolve(address.checked_sub(1)?);
        unnamed.set(unnamed.get() + usize::from(symbol.is_none()));
        let owner = symbol?.module.map_or(Some(""), |module| std::str::from_utf8(module).ok())?;
        Some((owner, address))
    });
    for (owner, address) in owners {
        by_owner.entry(owner).or_default().push(address);
    }
    let mut looked = LookedUp::default();
    let mut lines = Lines::new();
    let mut roots = Roots::new(args.source_root.as_deref());
    let search = Search::new(args)?;
    let mut missing = Vec::new();
    for (owner, addresses) in &by_owner {
        let found = match search.image(target, owner, files) {
            // One module of many.
            Err(refused) if !owner.is_empty() => {
                looked.notes.push(refused.to_string());
                None
            }
            found => found?,
        };
        let Some((path, bytes)) = found else {
            missing.push(*owner);
            continue;
        };
        let image = Image::parse(&path, &bytes)?;
        // Installed modules have none, and still show their directories.
        if !owner.is_empty() && !image.has_debug_information() {
            missing.push(*owner);
            continue;
        }
        image.check_build_id(target.build_ids.get(owner).copied())?;
        let names = Names::of(&image, target.symbols, owner);
        let placed = addresses.iter().filter_map(|&address| {
            Some(WantedAddress { address, probe: names.in_image(address, target.symbols)?.checked_sub(1)? })
        });
        let placed: Vec<WantedAddress> = placed.collect();
        if placed.is_empty() && !addresses.is_empty() {
            return Err(image.other_build(&names.disagreement()));
        }
        lines::add(&image, &mut roots, &placed, &mut lines)?;
    }
    if args.modules.is_none() && missing.contains(&"") && missing.len() == by_owner.len() {
        return Err(Failure::new("no debug information of the traced kernel is found")
            .hint("--vmlinux FILE names it; `kmt-analyze info` shows the release"));
    }
    if !missing.is_empty() {
        let name =
            |owner: &&str| if owner.is_empty() { "the kernel".to_owned() } else { (*owner).to_owned() };
        let more = missing.len().saturating_sub(NAMED_MAX);
        let more = (more > 0).then(|| format!("{more} more modules"));
        let names: Vec<String> = missing.iter().take(NAMED_MAX).map(name).chain(more).collect();
        looked
            .notes
            .push(format!("no debug information of {}: --modules DIR has that of modules", names.join(", ")));
    }
    let is_unchecked = |owner: &&&str| !missing.contains(*owner) && !target.build_ids.contains_key(**owner);
    let unchecked = by_owner.keys().filter(is_unchecked).count();
    if unchecked > 0 {
        looked.notes.push(format!(
            "the file has no build id for {unchecked} of the kernel and its modules: their lines are right if it is the same build"
        ));
    }
    if unnamed.get() > 0 {
        looked.notes.push(format!("{} addresses have no symbol, and so no line", unnamed.get()));
    }
    looked.lines = lines.rows;
    Ok(looked)
}

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
        distances.sort_rows_by_key(|&(distance, votes)| (std::cmp::Reverse(votes), distance));
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
