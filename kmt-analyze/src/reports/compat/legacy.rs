//! The rules of `trace-cmd mem` (tracecmd/trace-mem.c) and `perf kmem stat` (tools/perf/builtin-kmem.c), over the same
//! events: what they count, with all that they get wrong, so that their figures can be compared with the exact ones.
//!
//! Both keep one object per pointer. An allocation of a pointer that is in use takes it over, and the bytes of the
//! old object stay with its function for ever; NULL is a pointer like any other. trace-cmd forgets a pointer when it is
//! freed, perf never does: a second free counts again.

use std::collections::HashMap;

use crate::int_hash::IntHash;
use crate::stream::NewItems;
use crate::stream::op::{Kind, Op};

/// Sums of one call site, by the rules of trace-cmd mem.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LegacyFunction {
    /// Bytes that seem in use.
    pub alloc: i64,
    /// Bytes that those asked for.
    pub req: i64,
    /// Bytes of all allocations.
    pub total_alloc: u64,
    /// Bytes that those asked for.
    pub total_req: u64,
    /// Most bytes that ever seemed in use.
    pub max_alloc: i64,
    /// Most bytes asked for that ever seemed in use; the two need not have been reached at the same time.
    pub max_req: i64,
}

impl LegacyFunction {
    /// Bytes that seem in use beyond those asked for.
    pub fn waste(&self) -> i64 {
        self.alloc - self.req
    }
}

/// Sums over all events, by the rules of perf kmem.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerfSums {
    /// Allocation events.
    pub allocs: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Bytes that they asked for.
    pub bytes_req: u64,
    /// Bytes of frees of pointers that were ever allocated.
    pub bytes_freed: u64,
    /// Frees on another CPU than the allocation, or second frees.
    pub ping_pong: u64,
    /// Frees of pointers that were freed already.
    pub second_frees: u64,
    /// Bytes that those count again.
    pub bytes_second_frees: u64,
}

#[derive(Debug, Clone, Copy)]
struct LegacyObject {
    function: u32,
    bytes_alloc: u64,
    bytes_req: u64,
    in_use: bool,
    /// CPU of the allocation; none after a free.
    cpu: Option<u32>,
}

/// Both tools' view of the events so far.
#[derive(Debug, Default)]
pub struct Legacy {
    objects: HashMap<u64, LegacyObject, IntHash>,
    /// By function.
    pub functions: Vec<LegacyFunction>,
    /// By all.
    pub perf: PerfSums,
    /// Bytes of failed allocations that a kfree(NULL) freed.
    pub bytes_freed_at_null: u64,
    /// By site: function, bytes handed out, bytes asked for.
    sites: Vec<(u32, u64, u64)>,
    cpus: Vec<u32>,
}

impl Legacy {
    /// Enters operations, and items that they number first. `function` numbers the function that holds a call site.
    pub fn enter(&mut self, ops: &[Op], new_items: &NewItems, mut function: impl FnMut(u64) -> u32) {
        for (site, _) in &new_items.sites {
            self.sites.push((function(site.call_site), site.bytes_alloc, site.bytes_req));
        }
        self.cpus.extend(new_items.origins.iter().map(|(origin, _)| origin.cpu));
        for op in ops {
            match op.code.kind() {
                Kind::Alloc => self.alloc(op),
                Kind::Kfree | Kind::CacheFree => self.free(op),
                _ => {}
            }
        }
    }

    fn alloc(&mut self, op: &Op) {
        let site = self.sites.get(op.code.number() as usize);
        let Some(&(function, bytes_alloc, bytes_req)) = site else { return };
        let number = function as usize;
        if self.functions.len() <= number {
            self.functions.resize(number + 1, LegacyFunction::default());
        }
        if let Some(f) = self.functions.get_mut(number) {
            f.alloc += bytes_alloc as i64;
            f.req += bytes_req as i64;
            f.total_alloc += bytes_alloc;
            f.total_req += bytes_req;
            f.max_alloc = f.max_alloc.max(f.alloc);
            f.max_req = f.max_req.max(f.req);
        }
        self.perf.allocs += 1;
        self.perf.bytes_alloc += bytes_alloc;
        self.perf.bytes_req += bytes_req;
        let cpu = self.cpus.get(op.origin as usize).copied();
        self.objects.insert(op.value, LegacyObject { function, bytes_alloc, bytes_req, in_use: true, cpu });
    }

    fn free(&mut self, op: &Op) {
        let Some(object) = self.objects.get_mut(&op.value) else { return };
        self.perf.bytes_freed += object.bytes_alloc;
        if object.cpu != self.cpus.get(op.origin as usize).copied() {
            self.perf.ping_pong += 1;
        }
        object.cpu = None;
        if !std::mem::replace(&mut object.in_use, false) {
            self.perf.second_frees += 1;
            self.perf.bytes_second_frees += object.bytes_alloc;
            return;
        }
        if op.value == 0 {
            self.bytes_freed_at_null += object.bytes_alloc;
        }
        if let Some(f) = self.functions.get_mut(object.function as usize) {
            f.alloc -= object.bytes_alloc as i64;
            f.req -= object.bytes_req as i64;
        }
    }

    /// Bytes that seem in use beyond those asked for, of all functions.
    pub fn waste(&self) -> i64 {
        self.functions.iter().map(LegacyFunction::waste).sum()
    }

    /// Bytes that seem in use, of all functions.
    pub fn bytes_in_use(&self) -> i64 {
        self.functions.iter().map(|f| f.alloc).sum()
    }
}
