//! A machine in made time: the memory of each series over days, with noise, drift, a daily cycle and load. Always the same.

use super::sample::{Kind, Sample, Value};

pub const MINUTE: u64 = 60;
pub const HOUR: u64 = 3600;
pub const DAY: u64 = 24 * HOUR;
/// MemTotal: 8 GiB.
pub const MEMORY_KIB: u64 = 8 << 20;

/// xorshift64*.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 40) as f64 / (1u64 << 24) as f64
    }

    /// Nearly normal, with a standard deviation of 1.
    pub fn normal(&mut self) -> f64 {
        let sum: f64 = (0..4).map(|_| self.unit()).sum();
        (sum - 2.0) * 1.732
    }
}

/// A series of the machine.
pub struct Course {
    pub kind: Kind,
    pub name: &'static str,
    /// Memory in KiB without load.
    base: f64,
    /// Relative growth at the top of the daily cycle.
    daily: f64,
    /// Standard deviation of noise of a sample, in KiB.
    noise: f64,
    /// Standard deviation of slow drift in KiB, with a memory of an hour.
    drift: f64,
}

const fn course(kind: Kind, name: &'static str, mib: u32, daily: f64, noise: f64, drift: f64) -> Course {
    Course { kind, name, base: mib as f64 * 1024.0, daily, noise, drift }
}

/// Index of a series in [`COURSES`].
pub fn of(kind: Kind, name: &str) -> usize {
    COURSES.iter().position(|course| course.kind == kind && course.name == name).unwrap()
}

pub const COURSES: [Course; 17] = [
    course(Kind::Cache, "filp", 8, 0.5, 90.0, 80.0),
    course(Kind::Cache, "TCP", 4, 0.6, 150.0, 60.0),
    course(Kind::Cache, "kmalloc-64", 6, 0.2, 60.0, 60.0),
    course(Kind::Cache, "kmalloc-256", 10, 0.2, 150.0, 100.0),
    course(Kind::Cache, "kmalloc-512", 20, 0.4, 200.0, 200.0),
    course(Kind::Cache, "kmalloc-1k", 12, 0.1, 300.0, 150.0),
    course(Kind::Cache, "vm_area_struct", 25, 0.7, 250.0, 200.0),
    course(Kind::Cache, "kernfs_node_cache", 40, 0.0, 10.0, 50.0),
    course(Kind::Cache, "skbuff_head_cache", 2, 0.3, 400.0, 60.0),
    course(Kind::SlabUnreclaimable, "", 40, 0.0, 300.0, 200.0),
    course(Kind::PageTables, "", 20, 0.6, 300.0, 300.0),
    course(Kind::Percpu, "", 30, 0.0, 10.0, 20.0),
    course(Kind::Vmalloc, "", 60, 0.02, 100.0, 100.0),
    course(Kind::KernelStacks, "", 6, 0.3, 60.0, 60.0),
    course(Kind::NoAccount, "", 80, 0.1, 600.0, 400.0),
    course(Kind::Anonymous, "", 1500, 0.5, 8000.0, 6000.0),
    course(Kind::SlabReclaimable, "", 300, 0.0, 2000.0, 2000.0),
];

/// The machine. Its clock begins at midnight of a Monday, at boot.
pub struct Machine {
    random: Random,
    drifts: [f64; 17],
    /// Size of the daily cycle, by day.
    days: Vec<f64>,
    time: u64,
    /// Seconds between samples.
    every: u64,
}

impl Machine {
    /// `cycle` is the size of the daily cycle: 1 is that of [`COURSES`].
    pub fn new(seed: u64, every: u64, cycle: f64) -> Self {
        let mut random = Random::new(seed);
        let day = |day: u64, random: &mut Random| {
            let of_week = if day % 7 >= 5 { 0.4 } else { 1.0 };
            cycle * of_week * (0.9 + 0.2 * random.unit())
        };
        let days = (0..64).map(|number| day(number, &mut random)).collect();
        Self { random, drifts: [0.0; 17], days, time: 0, every }
    }

    /// Load from 0 to about 1: least at 3 o'clock, most at 15 o'clock.
    pub fn load(&self, time: u64) -> f64 {
        let hours = (time % DAY) as f64 / HOUR as f64;
        let cycle = 0.5 - 0.5 * ((hours - 3.0) / 24.0 * std::f64::consts::TAU).cos();
        let since = (time + 21 * HOUR) / DAY;
        cycle * self.days[since as usize % self.days.len()]
    }

    /// The next sample. `more` is memory beside the course, in KiB, by the index of the series.
    pub fn next(&mut self, more: &mut dyn FnMut(u64, &mut [f64; 17])) -> Sample<'static> {
        self.time += self.every;
        // Drift forgets within an hour.
        let part = self.every as f64 / HOUR as f64;
        let (time, load) = (self.time, self.load(self.time));
        let (mut kib, mut slabs) = ([0.0; 17], 0.0);
        more(time, &mut kib);
        for (at, course) in COURSES.iter().enumerate() {
            self.drifts[at] +=
                course.drift * self.random.normal() * (2.0 * part).sqrt() - self.drifts[at] * part;
            kib[at] += course.base * (1.0 + course.daily * load) + self.drifts[at];
            // Pages of slabs do not follow each object.
            slabs += if course.kind == Kind::Cache { kib[at] } else { 0.0 };
            kib[at] += course.noise * self.random.normal();
        }
        kib[of(Kind::SlabUnreclaimable, "")] += slabs;
        let value = |(course, kib): (&Course, &f64)| Value {
            kind: course.kind,
            name: course.name,
            kib: *kib as i64,
            object_size: 64,
        };
        Sample { time, memory_kib: MEMORY_KIB, values: COURSES.iter().zip(&kib).map(value).collect() }
    }
}
