//! From the events of a trace to the account.

use super::AccountOptions;
use super::rules::{Account, AccountObject};
use crate::failure::Result;
use crate::pass::Selection;
use crate::pass::condition::Key;
use crate::pass::operations::operations;
use crate::stream::op::Kind;
use crate::stream::{Api, NewItems, Op, Site};
use crate::trace::faults::Faults;
use crate::trace::session::Session;

/// The account of a trace, and the faults found in it. Refused as `Clock::units` is.
pub fn read(
    session: &Session<'_>,
    options: &AccountOptions,
    selection: &Selection,
) -> Result<(Account, Faults)> {
    let mut lifetimes = selection.terms_of(session)?;
    lifetimes.retain(|term| term.key == Key::Lifetime);
    let mut reader = AccountReader {
        account: Account::new(selection.bounds(session), lifetimes),
        apis: [!options.cache, !options.malloc],
        counts_frees: !selection.is_about_allocations(),
        sites: Vec::new(),
        origins: Vec::new(),
    };
    let faults = operations(session, selection, |ops, new_items| reader.enter(ops, &new_items));
    let mut account = reader.account;
    if selection.is_active() {
        account.leave_out_unused();
    }
    Ok((account, faults))
}

/// Reads operations into an account.
#[derive(Debug)]
struct AccountReader {
    account: Account,
    /// By [`Api`], whether its events count.
    apis: [bool; 2],
    /// Frees without an allocation count: no condition is about the allocation.
    counts_frees: bool,
    /// Sites, and whether they are selected.
    sites: Vec<(Site, bool)>,
    /// By number of the origin, whether it is selected.
    origins: Vec<bool>,
}

impl AccountReader {
    fn enter(&mut self, ops: &[Op], new_items: &NewItems) {
        self.sites.extend(&new_items.sites);
        self.origins.extend(new_items.origins.iter().map(|(_, is_selected)| is_selected));
        for op in ops {
            match op.code.kind() {
                Kind::Alloc => self.alloc(op),
                Kind::Kfree if self.apis[Api::Kmalloc as usize] => self.free(op),
                Kind::CacheFree if self.apis[Api::Cache as usize] => self.free(op),
                _ => {}
            }
        }
    }

    fn is_origin_selected(&self, op: &Op) -> bool {
        self.origins.get(op.origin as usize).copied().unwrap_or(false)
    }

    fn alloc(&mut self, op: &Op) {
        let Some(&(site, is_selected)) = self.sites.get(op.code.number() as usize) else { return };
        if self.apis[site.api as usize] {
            let object = AccountObject {
                call_site: site.call_site,
                bytes_alloc: site.bytes_alloc,
                bytes_req: site.bytes_req,
                born: op.time,
                is_selected: is_selected && self.is_origin_selected(op),
            };
            self.account.alloc(op.value, object);
        }
    }

    fn free(&mut self, op: &Op) {
        let is_selected = self.counts_frees && self.is_origin_selected(op);
        self.account.free(op.value, op.time, is_selected);
    }
}
