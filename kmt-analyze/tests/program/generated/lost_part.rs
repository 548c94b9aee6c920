//! Events that were lost in one part of a recording: the other parts are judged as if nothing had been lost.

use super::load::{Load, MS, SOCKET, WORKER_PID};
use crate::support::files::{Scratch, at, json, run, stderr, stdout};

/// Length of the recording.
const LENGTH: u64 = 4_000 * MS;

/// A socket every 10 ms; in the first second, the CPU of the others loses its events.
fn recording(scratch: &Scratch) -> std::path::PathBuf {
    let mut load = Load::new(3);
    load.noise(8_000, LENGTH);
    (0..400).for_each(|number| {
        load.alloc(number * 10 * MS, WORKER_PID, SOCKET);
    });
    load.lost = Some((0, 0..1_000 * MS));
    load.write(scratch, "lost.kmt")
}

#[test]
fn a_time_without_losses_is_named_and_judged() {
    let scratch = Scratch::new();
    let path = recording(&scratch);
    let refused = run(&["leaks"], &path);
    let reason = stdout(&refused);
    let proposed = reason.lines().find_map(|line| line.split_once("kmt-analyze leaks --time "));
    let range = proposed.unwrap_or_else(|| panic!("{reason}")).1.split(' ').next().unwrap();
    let option = format!("--time {range}");
    assert!(range.starts_with("+1.") && refused.status.code() == Some(3), "{reason}");
    let first_screen = stdout(&run(&[], &path));
    // It is judged there at once.
    let time = option.split_once(' ').unwrap().1;
    let first = format!("{time}, where nothing is missing: Slab memory grew by ");
    assert!(first_screen.starts_with(&first) && first_screen.contains("sk_prot_alloc"), "{first_screen}");
    assert!(first_screen.contains(" % of all events were lost; growth is not judged.\n"), "{first_screen}");
    assert!(first_screen.contains(&format!("kmt-analyze leaks {option} ")), "{first_screen}");
    let judged = stdout(&run(&["leaks", "--time", time], &path));
    assert!(
        judged.contains("sk_prot_alloc") && judged.contains("No events are missing in this time"),
        "{judged}"
    );
    assert!(!judged.contains("crosses a loss"), "{judged}");
}

#[test]
fn a_slice_has_the_losses_of_its_time() {
    let scratch = Scratch::new();
    let path = recording(&scratch);
    let lost = |time: &str| {
        let part = scratch.0.join("part.kmt");
        let done = run(&["slice", "--time", time, "--force", "-o", part.to_str().unwrap()], &path);
        assert!(matches!(done.status.code(), Some(0 | 3)), "{}", stderr(&done));
        at(&json(&["info", "--json"], &part), "/trace/lost_events").as_u64().unwrap()
    };
    let all = lost("+0..");
    assert!(all > 1_000, "{all}");
    assert_eq!((lost("+1.2.."), lost("+0.5..+2"), lost("+0.2..+0.8")), (0, all, all));
}
