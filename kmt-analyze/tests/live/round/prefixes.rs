//! Text that logs and other programs put before each line.

/// A prefix of the line with that number.
pub type Prefix = (&'static str, fn(usize) -> String);

pub const PREFIXES: [Prefix; 9] = [
    ("console", |n| format!("[{:5}.{:06}] ", n / 1_000_000, n % 1_000_000)),
    ("dmesg -T", |n| format!("[Sat Nov 28 09:{:02}:{:02} 2026] ", n / 60 % 60, n % 60)),
    ("dmesg --time-format iso", |n| {
        format!("2026-11-28T09:{:02}:{:02},{:06}+00:00 ", n / 60 % 60, n % 60, n % 9999)
    }),
    ("journalctl", |n| format!("Nov 28 09:{:02}:{:02} box kernel: ", n / 60 % 60, n % 60)),
    ("syslog", |n| {
        format!("Nov  8 09:00:{:02} box kernel: [{:5}.{:06}] ", n % 60, n / 1_000_000, n % 1_000_000)
    }),
    ("logcat", |n| format!("11-28 09:{:02}:{:02}.123     0     0 W         : ", n / 60 % 60, n % 60)),
    ("several files", |_| "trace.txt: ".to_owned()),
    ("grep -n", |n| format!("a/trace.txt:{}:", n + 1)),
    ("mail", |_| "> ".to_owned()),
];

/// The text behind a prefix.
pub fn with_prefix(text: &str, prefix: fn(usize) -> String) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for (at, line) in text.lines().enumerate() {
        out.push_str(&prefix(at));
        out.push_str(line);
        out.push('\n');
    }
    out
}
