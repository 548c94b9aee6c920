//! Source lines from the debug information of a kernel and its modules.

mod check;
mod find;
pub mod image;
mod limits;
mod lines;
mod relocate;
pub mod roots;
mod slide;
mod tables;
pub mod units;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use super::SourceArgs;
use super::target::{LookedUp, Target};
use crate::failure::{Failure, Result};
use crate::files::Files;
use find::Search;
use image::Image;
use lines::{Lines, WantedAddress};
use roots::Roots;
use slide::Names;

pub use check::Checked;
pub use limits::{Budget, cost};
pub use walk::Reader;

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
