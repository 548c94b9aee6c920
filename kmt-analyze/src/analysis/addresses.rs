//! The lives at one address: what was seen of them, and what the next event there will decide.

use std::hash::{BuildHasherDefault, Hasher};

use super::sites::{Api, NameId};

/// Addresses are compared without their upper byte, where arm64 keeps tags (rule R1).
pub const ADDRESS_BITS: u64 = (1 << 56) - 1;

/// One life of a slab object.
#[derive(Debug, Clone, Copy)]
pub struct Life {
    /// Address, low 56 bits.
    pub address: u64,
    /// Number of the site; of the last report, where there were two.
    pub site: u32,
    /// Time of the first report.
    pub born: u64,
    /// Time of the last report.
    pub last_report: u64,
    /// Task that allocated it.
    pub pid: i32,
    /// CPU of the first report.
    pub cpu: u32,
    /// Neighbours in the list of lives in the same page frame; `NONE` at the ends.
    pub previous: u32,
    /// See `previous`.
    pub next: u32,
    /// Whether the filters select it.
    pub selected: bool,
}

/// No neighbour.
pub const NONE: u32 = u32::MAX;

/// A free, as it was logged.
#[derive(Debug, Clone, Copy)]
pub struct Free {
    /// Time.
    pub time: u64,
    /// CPU.
    pub cpu: u32,
    /// Interface.
    pub api: Api,
    /// Cache, where the event tells it.
    pub cache: Option<NameId>,
    /// Whether the filters select the event.
    pub selected: bool,
}

/// What is known of an address that had an event.
#[derive(Debug)]
pub enum State {
    /// No object lives there, as far as was seen.
    Empty,
    /// The object of that number in the arena lives there.
    Live(u32),
    /// An allocation came while `old` seemed to live (R5). The next event decides whether its free is only late.
    Replaced(Box<Replaced>),
    /// After that a kmem_cache_free came in time (R6). If the next event is a free too, the first one was `old`'s.
    FreedOnce(Box<FreedOnce>),
    /// Its page was freed or allocated under it (R7). A kmem_cache_free in time is its own, logged late.
    PageGone(Box<(Life, u64)>),
}

/// See [`State::Replaced`].
#[derive(Debug)]
pub struct Replaced {
    /// The life that ended unseen.
    pub old: Life,
    /// When it had ended at the latest.
    pub old_end: u64,
    /// Number of the life that replaced it.
    pub live: u32,
}

/// See [`State::FreedOnce`].
#[derive(Debug)]
pub struct FreedOnce {
    /// The life that ended unseen.
    pub old: Life,
    /// When it had ended at the latest.
    pub old_end: u64,
    /// The life that replaced it.
    pub second: Life,
    /// The free that is one of the two's.
    pub free: Free,
}

/// Hashes one integer: multiply and fold. Addresses come from the kernel's allocator, not from an adversary that
/// gains anything by slowing its own analysis down.
#[derive(Debug, Default, Clone, Copy)]
pub struct IntHasher(u64);

impl Hasher for IntHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// A hasher for maps keyed by integers.
pub type IntHash = BuildHasherDefault<IntHasher>;
