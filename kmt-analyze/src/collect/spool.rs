//! Lives in an unnamed file: exports read them back when all names are known, so memory does not grow with their
//! number.
//!
//! An export of objects needs one row a life with the final name of its cache, and a cache may be named by a free at
//! the end of the trace. The collector writes 72 bytes a life in the order of the ends; the exports of
//! `export/tabular/object` read them after the pass.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::rc::Rc;

use super::collector::{Collector, PassFacts};
use crate::ledger::lives::End;
use crate::ledger::{Closed, Interests, Receiver};
use crate::stream::{Api, NameId, Origin};
use crate::trace::ages::Ages;

/// One life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// Address, low 56 bits.
    pub address: u64,
    /// Time of its birth.
    pub born: u64,
    /// Time of its end; `None`: still allocated.
    pub end: Option<u64>,
    /// Number of its site.
    pub site: u32,
    /// Number of the freeing site; `None`: no free event.
    pub free_site: Option<u32>,
    /// CPU and task that allocated it.
    pub born_at: Origin,
    /// CPU and task that freed it.
    pub freed_at: Option<Origin>,
    /// Cache, if an event names it.
    pub cache: Option<NameId>,
    /// Number of its stack.
    pub stack: Option<u32>,
    /// Born in the window.
    pub is_born: bool,
    /// Freed in the window.
    pub is_freed: bool,
    /// Implied free in the window.
    pub is_implied_free: bool,
    /// Alive at the window's end.
    pub is_live: bool,
    /// Crosses a loss, or its free is ambiguous.
    pub uncertain: bool,
    /// True if its free was logged late.
    pub is_late: bool,
    /// Interface that allocated it.
    pub api: Api,
}

/// Writes every life to a file.
pub struct LifeSpool {
    file: Rc<dyn Fn() -> io::Result<File>>,
}

impl LifeSpool {
    /// Writes to an unnamed file, which `file` makes.
    pub fn new(file: impl Fn() -> io::Result<File> + 'static) -> Self {
        Self { file: Rc::new(file) }
    }
}

/// Never equal: each needs its own file.
impl PartialEq for LifeSpool {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.file, &other.file)
    }
}

impl Collector for LifeSpool {
    type State = Spool;
    type Output = Spool;

    const INTERESTS: Interests = Interests::LIVES.union(Interests::SLAB_STACKS);

    fn begin(&self, _: &PassFacts) -> Spool {
        Spool { file: (self.file)().map(|file| BufWriter::with_capacity(1 << 18, file)), len: 0 }
    }

    fn finish(mut state: Spool) -> Spool {
        if let Err(error) = state.file.as_mut().map_or(Ok(()), BufWriter::flush) {
            state.file = Err(error);
        }
        state
    }
}

const LEN: usize = 72;
const NONE: u32 = u32::MAX;

/// The file.
#[derive(Debug)]
pub struct Spool {
    file: io::Result<BufWriter<File>>,
    /// Number of lives in it.
    pub len: u64,
}

impl Receiver for Spool {
    fn closed(&mut self, closed: &Closed) {
        let Ok(file) = &mut self.file else { return };
        self.len += 1;
        if let Err(error) = file.write_all(&bytes(closed)) {
            self.file = Err(error);
        }
    }
}

impl Spool {
    /// All lives, in the order of their ends; those without an end are last.
    pub fn read(&self) -> io::Result<SpooledObjects> {
        let file = self.file.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        let mut file = file.get_ref().try_clone()?;
        file.rewind()?;
        Ok(SpooledObjects { file: BufReader::with_capacity(1 << 18, file) })
    }
}

/// Reads lives back.
#[derive(Debug)]
pub struct SpooledObjects {
    file: BufReader<File>,
}

impl SpooledObjects {
    /// The next one.
    pub fn next_object(&mut self) -> io::Result<Option<Object>> {
        let mut bytes = [0; LEN];
        match self.file.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(Object::from_bytes(&bytes))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Object {
    /// Lifetime, if it ended, and its age is known.
    pub fn lifetime(&self, ages: Ages) -> Option<u64> {
        self.end.and_then(|end| ages.length(self.born, end))
    }

    /// Kind of its end, in exports.
    pub fn fate(&self) -> &'static str {
        match (self.end, self.free_site) {
            (None, _) => "live",
            (Some(_), Some(_)) => "freed",
            (Some(_), None) => "freed_unseen",
        }
    }

    fn from_bytes(bytes: &[u8; LEN]) -> Self {
        let word = |i: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[i * 8..i * 8 + 8]);
            u64::from_le_bytes(word)
        };
        let half = |i: usize| {
            let mut half = [0; 4];
            half.copy_from_slice(&bytes[24 + i * 4..28 + i * 4]);
            u32::from_le_bytes(half)
        };
        let some = |number: u32| Some(number).filter(|&n| n != NONE);
        let flags = half(8);
        let flag = |bit: u32| flags >> bit & 1 == 1;
        let levels = half(9);
        let freed_at =
            Origin { cpu: half(4), pid: half(5) as i32, level: (levels >> 8) as u8, name: 0, cgroup: 0 };
        Self {
            address: word(0),
            born: word(1),
            end: flag(0).then(|| word(2)),
            site: half(0),
            free_site: some(half(1)),
            born_at: Origin { cpu: half(2), pid: half(3) as i32, level: levels as u8, name: 0, cgroup: 0 },
            freed_at: flag(8).then_some(freed_at),
            cache: some(half(6)).map(NameId),
            stack: some(half(7)),
            is_born: flag(1),
            is_freed: flag(2),
            is_implied_free: flag(3),
            is_live: flag(4),
            uncertain: flag(5),
            is_late: flag(6),
            api: if flag(7) { Api::Cache } else { Api::Kmalloc },
        }
    }
}

/// A life in the file.
fn bytes(closed: &Closed) -> [u8; LEN] {
    let mut out = [0; LEN];
    let (free_site, is_late) = match closed.end {
        End::Freed { free, late, .. } => (free.site, late.is_some()),
        _ => (NONE, false),
    };
    let end = closed.end.time();
    let flags = [
        end.is_some(),
        closed.is_born,
        closed.is_freed,
        closed.is_implied_free,
        closed.is_live,
        closed.uncertain,
        is_late,
        closed.api == Api::Cache,
        closed.freed_at.is_some(),
    ];
    let flags = flags.iter().enumerate().fold(0u32, |sum, (bit, &set)| sum | u32::from(set) << bit);
    let freed_at = closed.freed_at.unwrap_or_default();
    let words = [closed.address, closed.life.born, end.unwrap_or(0)];
    let halves = [
        closed.life.site,
        free_site,
        closed.born_at.cpu,
        closed.born_at.pid as u32,
        freed_at.cpu,
        freed_at.pid as u32,
        closed.cache.map_or(NONE, |c| c.0),
        closed.stack.unwrap_or(NONE),
        flags,
        u32::from(closed.born_at.level) | u32::from(freed_at.level) << 8,
    ];
    let bytes = words.iter().flat_map(|w| w.to_le_bytes()).chain(halves.iter().flat_map(|h| h.to_le_bytes()));
    out.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::lives::{Free, Life};

    /// The life of an object.
    fn closed(object: &Object) -> Closed {
        let end = object.end.map_or(End::Live, |end| {
            let site = object.free_site.unwrap();
            let free = Free { time: end, api: object.api, site, origin: 0, is_deferred: false };
            End::Freed { free, end, late: None }
        });
        Closed {
            address: object.address,
            life: Life { born: object.born, site: object.site, origin: 0 },
            end,
            cache: object.cache,
            stack: object.stack,
            caller: 0,
            api: object.api,
            bytes_req: 8,
            bytes_alloc: 8,
            born_at: object.born_at,
            freed_at: object.freed_at,
            is_born: object.is_born,
            is_freed: object.is_freed,
            is_implied_free: object.is_implied_free,
            is_live: object.is_live,
            is_waiting: false,
            uncertain: object.uncertain,
            lost_at: None,
        }
    }

    #[test]
    fn objects_come_back() {
        let object = Object {
            address: 0x00ff_8881_0000_1000,
            born: u64::MAX - 1,
            end: Some(u64::MAX),
            site: 7,
            free_site: Some(9),
            born_at: Origin { cpu: 3, pid: -1, level: 0x18, name: 0, cgroup: 0 },
            freed_at: Some(Origin { cpu: 4, pid: 5, level: 0x40, name: 0, cgroup: 0 }),
            cache: Some(NameId(2)),
            stack: None,
            is_born: true,
            is_freed: false,
            is_implied_free: true,
            is_live: false,
            uncertain: true,
            is_late: false,
            api: Api::Cache,
        };
        assert_eq!(Object::from_bytes(&bytes(&closed(&object))), object);
        let live = Object {
            end: None,
            freed_at: None,
            free_site: None,
            api: Api::Kmalloc,
            stack: Some(1),
            ..object
        };
        assert_eq!(Object::from_bytes(&bytes(&closed(&live))), live);
        assert_eq!(
            (object.fate(), live.fate(), object.lifetime(Ages::default())),
            ("freed", "live", Some(1))
        );
    }
}
