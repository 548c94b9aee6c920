//! Facts in the file besides events: the target, the conditions, the clock.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use kmt_format::kernel::{ByteOrder, CpuStats};
use kmt_format::write::Writer;

use super::RecordOptions;
use super::cpus::online;
use super::direct_map;
use super::plan::Plan;
use super::setup::Setup;
use super::snapshot;
use crate::build_id;
use crate::tracefs::CONDITIONS;

/// Keys and values about target and recording, at the start of the file.
pub fn write(
    writer: &mut Writer,
    setup: &Setup,
    plan: &Plan,
    options: &RecordOptions,
    sub_buffer_len: usize,
) -> kmt_format::Result<()> {
    let uname = rustix::system::uname();
    let words = [uname.sysname(), uname.nodename(), uname.release(), uname.version(), uname.machine()];
    let mut line: Vec<u8> = words.map(|w| w.to_bytes()).join(&b' ');
    line.extend_from_slice(b" GNU/Linux");
    let list = |items: Vec<String>| items.join(" ").into_bytes();
    let command = options.command.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let mut pairs: Vec<(String, Vec<u8>)> = vec![
        ("writer".into(), concat!("kmt-capture ", env!("CARGO_PKG_VERSION")).into()),
        ("source".into(), "live".into()),
        ("sub_buffer_size".into(), sub_buffer_len.to_string().into()),
        ("uname".into(), line),
        ("kernel.release".into(), uname.release().to_bytes().to_vec()),
        ("kernel.machine".into(), uname.machine().to_bytes().to_vec()),
        ("clock.reason".into(), setup.clock_reason.into()),
        ("page_size.source".into(), "sysconf".into()),
        ("recorder.pid".into(), rustix::thread::gettid().as_raw_pid().to_string().into()),
        ("record.command".into(), list(command)),
        ("record.functions".into(), list(plan.functions.concat())),
    ];
    if let Some(adopted) = &setup.adopted {
        pairs.push(("record.adopted".into(), adopted.name.clone().into()));
    }
    if let Some(kb) = buffers_kb(setup) {
        pairs.push(("record.buffers_kb".into(), kb.to_string().into()));
    }
    if let Some(base) = direct_map::base(Path::new("/proc/kcore"), ByteOrder::NATIVE) {
        pairs.push(("kernel.direct_map".into(), format!("{base:#x}").into()));
    }
    for (key, path) in [("cmdline", "/proc/cmdline"), ("boot_id", "/proc/sys/kernel/random/boot_id")] {
        if let Ok(text) = fs::read(path) {
            pairs.push((key.into(), text.trim_ascii().to_vec()));
        }
    }
    for name in CONDITIONS {
        // event_conditions has what is enabled.
        if let Some(text) =
            setup.dir.read(name).or_else(|| setup.top.read(name)).filter(|_| name != "set_event")
        {
            pairs.push((format!("tracefs/{name}"), text.trim_ascii_end().into()));
        }
    }
    pairs.extend(build_ids());
    pairs.extend(snapshot::topology());
    pairs.retain(|(_, value)| !value.is_empty());
    let pairs: Vec<(&str, &[u8])> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_slice())).collect();
    writer.add_metadata(&pairs)?;
    for name in ["events/header_page", "events/header_event", "printk_formats"] {
        let bytes = setup.dir.read(name).or_else(|| setup.top.read(name));
        if let Some(bytes) = bytes.filter(|b| !b.is_empty()) {
            writer.add_file(name, bytes.as_bytes())?;
        }
    }
    writer.add_file("event_conditions", plan.conditions().as_bytes())
}

/// Memory of the ring buffers of all CPUs, in KiB; `None`: the kernel does not show that of each CPU.
fn buffers_kb(setup: &Setup) -> Option<u64> {
    let of_cpu = |cpu: u32| allocated_kb(&setup.dir.read(&format!("per_cpu/cpu{cpu}/buffer_size_kb"))?);
    let sizes: Option<Vec<u64>> = online(setup).into_iter().map(of_cpu).collect();
    sizes.filter(|sizes| !sizes.is_empty()).map(|sizes| sizes.into_iter().fold(0, u64::saturating_add))
}

/// The first number of `buffer_size_kb`. A buffer that is not used yet reads as `7 (expanded: 1408)`, and has 7 KiB.
fn allocated_kb(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// Build ids of the running kernel and of its modules.
fn build_ids() -> Vec<(String, Vec<u8>)> {
    let pair = |module: &str, path: &Path| {
        let id = build_id::of_notes(&fs::read(path).ok()?, ByteOrder::NATIVE)?;
        Some((build_id::key(module), id.into_bytes()))
    };
    let modules = fs::read_dir("/sys/module").into_iter().flatten().filter_map(|entry| entry.ok());
    let modules = modules.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        pair(&name, &entry.path().join("notes/.note.gnu.build-id"))
    });
    let mut pairs: Vec<_> = pair("", Path::new("/sys/kernel/notes")).into_iter().chain(modules).collect();
    pairs.sort();
    pairs
}

/// A time of the trace clock with the time of day at which it was read: `TRACE REALTIME_NS WITHIN_NS`.
///
/// Source: `now ts` of `stats`, in microseconds for clocks in nanoseconds; the time of day is taken before and after.
pub fn clock_pair(setup: &Setup, cpu: u32) -> Option<String> {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|d| d.as_nanos());
    let before = now()?;
    let trace = trace_now(setup, cpu)?;
    let after = now()?;
    let middle = before.midpoint(after);
    Some(format!("{trace} {middle} {}", after.saturating_sub(before) / 2 + 1_000))
}

/// The trace clock's time, to the microsecond where it counts nanoseconds: `now ts` of `stats`.
pub fn trace_now(setup: &Setup, cpu: u32) -> Option<u64> {
    CpuStats::parse(&setup.dir.read(&format!("per_cpu/cpu{cpu}/stats"))?)?.now_time
}

/// Time that this process has run for with all its threads, in nanoseconds.
pub fn own_cpu_ns() -> Option<u64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).ok()?.checked_mul(1_000_000_000)?;
    seconds.checked_add(u64::try_from(time.tv_nsec).ok()?)
}

/// Most memory that this process had at once, in KiB.
pub fn own_rss_peak_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Name of a recording of this machine.
pub fn own_default_name() -> String {
    default_name(&rustix::system::uname().nodename().to_string_lossy())
}

/// `kmt-HOST-YYYYMMDDThhmmssZ.kmt`.
pub fn default_name(host: &str) -> String {
    let host: String = host
        .chars()
        .take(64)
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' })
        .collect();
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    format!("kmt-{}-{}.kmt", host.trim_start_matches('.'), utc(seconds))
}

/// Seconds since 1970 as `YYYYMMDDThhmmssZ`. Days to dates after Howard Hinnant, "chrono-compatible low-level date
/// algorithms".
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z", rest / 3_600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_is_not_used_yet_has_its_smallest_size() {
        assert_eq!(allocated_kb("7 (expanded: 1408)\n"), Some(7));
        assert_eq!(
            (allocated_kb("16384\n"), allocated_kb("X\n"), allocated_kb("")),
            (Some(16_384), None, None)
        );
    }

    #[test]
    fn names_are_times_of_day() {
        assert_eq!(utc(0), "19700101T000000Z");
        assert_eq!(utc(951_782_400), "20000229T000000Z");
        assert_eq!(utc(1_795_277_288), "20261121T160808Z");
        assert!(
            own_default_name().starts_with("kmt-") && !default_name("../../x\x1b").contains(['/', '\x1b'])
        );
    }
}
