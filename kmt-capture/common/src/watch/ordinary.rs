//! 30 days of ordinary courses: nothing of them is growth.
//!
//! A daily cycle with weekends, a nightly backup, fills of reclaimable caches with what they bring, a weekly restart of a service,
//! a task with much memory that comes and goes, rotation of logs, and containers that are deployed each day and removed each week.

use super::courses::{DAY, HOUR, MINUTE, Machine, of};
use super::sample::Kind;
use super::watcher::Watcher;

/// From 0 to 1 within `length`, from `begin` on; then 1.
fn ramp(time: f64, begin: f64, length: f64) -> f64 {
    ((time - begin) / length).clamp(0.0, 1.0)
}

const H: f64 = HOUR as f64;
const M: f64 = MINUTE as f64;
const MIB: f64 = 1024.0;

/// A number from 0 to 1 for each day.
fn of_day(day: u64, salt: u64) -> f64 {
    let mixed = (day + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xd1b5_4a32_d192_ed03);
    (mixed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as f64 / (1u64 << 24) as f64
}

/// Memory beside the courses, at a time.
fn ordinary(time: u64, more: &mut [f64; 17]) {
    let (day, of_today) = (time / DAY, (time % DAY) as f64);
    let mut add = |kind: Kind, name: &str, mib: f64| more[of(kind, name)] += mib * MIB;
    // The backup, at 2 o'clock: buffers of its own, and inodes that stay until they are reclaimed over the day.
    let backup = ramp(of_today, 2.0 * H, 8.0 * M) - ramp(of_today, 2.75 * H, 2.0 * M);
    let size = 0.8 + 0.4 * of_day(day, 1);
    let inodes = ramp(of_today, 2.0 * H, 40.0 * M) - ramp(of_today, 6.0 * H, 14.0 * H);
    add(Kind::Cache, "kmalloc-1k", 20.0 * backup * size);
    add(Kind::SlabReclaimable, "", 600.0 * inodes * size);
    add(Kind::Cache, "kmalloc-256", 24.0 * inodes * size);
    // A task with much memory, once a day.
    let begin = (8.0 + 10.0 * of_day(day, 2)) * H;
    let hog = ramp(of_today, begin, 10.0 * M) - ramp(of_today, begin + (0.5 + of_day(day, 3)) * H, 10.0);
    add(Kind::Anonymous, "", 2000.0 * hog);
    add(Kind::PageTables, "", 4.0 * hog);
    add(Kind::Cache, "vm_area_struct", 1.0 * hog);
    // A service that starts two hours after boot, and again each Thursday at 4 o'clock.
    let begins =
        |time: f64, begin: f64| if time < begin { 0.0 } else { 1.0 - (-(time - begin) / (20.0 * M)).exp() };
    let is_again = time > 3 * DAY + 4 * HOUR;
    let service = if is_again {
        begins(((time - 3 * DAY - 4 * HOUR) % (7 * DAY)) as f64, 0.0)
    } else {
        begins(time as f64, 2.0 * H)
    };
    add(Kind::Anonymous, "", 500.0 * service);
    add(Kind::Cache, "filp", 3.0 * service);
    add(Kind::Cache, "TCP", 2.0 * service);
    add(Kind::Cache, "kmalloc-512", 8.0 * service);
    add(Kind::PageTables, "", 2.0 * service);
    // Logs are rotated at midnight.
    add(Kind::NoAccount, "", 3.0 * (ramp(of_today, 10.0, 60.0) - ramp(of_today, 200.0, 60.0)));
    // Three containers a day, at 10, 12 and 16 o'clock; all are removed on Sunday.
    let deployed: f64 = [10.0, 12.0, 16.0].iter().map(|at| ramp(of_today, at * H, 30.0)).sum();
    let containers = (day % 7) as f64 * 3.0 + if day % 7 == 6 { 0.0 } else { deployed };
    let containers =
        if day % 7 == 6 { containers * (1.0 - ramp(of_today, 3.0 * H, 60.0)) } else { containers };
    add(Kind::Percpu, "", 2.0 * containers);
    add(Kind::Cache, "kernfs_node_cache", 1.0 * containers);
    add(Kind::Cache, "kmalloc-512", 1.0 * containers);
}

#[test]
fn thirty_ordinary_days_have_no_growth() {
    let (mut machine, mut watcher) = (Machine::new(7, 30, 1.0), Watcher::default());
    let mut alarms = Vec::new();
    for _ in 0..30 * DAY / 30 {
        let sample = machine.next(&mut ordinary);
        for found in watcher.take(&sample, |_| true) {
            alarms.push(format!("day {:.2}: {found:?}", sample.time as f64 / DAY as f64));
        }
    }
    assert!(alarms.is_empty(), "{alarms:#?}");
}
