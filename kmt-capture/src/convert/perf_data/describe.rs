//! Description of the target of a perf.data.

use std::fs;

use kmt_format::kernel::TraceClock;

use crate::build_id;
use crate::convert::description::Description;
use crate::failure::{Failure, Result};
use crate::import::ImportError;
use crate::import::perf_data::PerfData;

/// The target as the file describes it.
pub fn describe(file: &mut PerfData<'_>, failed: &dyn Fn(ImportError) -> Failure) -> Result<Description> {
    let Some((start, data)) = file.tracing.take() else { return Ok(Description::default()) };
    let header_page = data.layout().map_err(failed)?;
    let mut pairs = Vec::new();
    for (key, name) in [("perf/version", "version"), ("perf/cmdline", "cmdline"), ("host", "hostname")] {
        pairs.extend(file.fact(name).map(|text| (key.to_owned(), text.as_bytes().to_vec())));
    }
    if let Some((_, _, start)) = &file.kernel_text {
        pairs.push(("perf/kernel_start".to_owned(), format!("{start:#x}").into_bytes()));
    }
    let ids = std::mem::take(&mut file.build_ids);
    pairs.extend(ids.into_iter().map(|(module, id)| (build_id::key(&module), id.into_bytes())));
    let uname = file.fact("osrelease").map(|release| {
        let (host, arch) = (file.fact("hostname").unwrap_or("?"), file.fact("arch").unwrap_or_default());
        format!("Linux {host} {release} {arch}")
    });
    let mut notes = std::mem::take(&mut file.notes);
    if uname.is_none() {
        notes.push("no uname: flag columns and widths follow the newest kernel".to_owned());
    }
    notes.push("perf does not count losses per CPU: the losses that it recorded are in the file".to_owned());
    let kept = |bytes: Vec<u8>| Some(bytes).filter(|b| !b.is_empty());
    let mut files = vec![("events/header_page".to_owned(), data.header_page.into_bytes())];
    files.push(("events/header_event".to_owned(), data.header_event));
    if !data.printk_formats.is_empty() {
        files.push(("printk_formats".to_owned(), data.printk_formats));
    }
    let source = |offset| format!("the format at offset {offset}");
    Ok(Description {
        source: "perf.data".to_owned(),
        order: Some(file.order),
        long_size: header_page.long_size(),
        page_size: Some((start.page_size.into(), "perf.data")),
        uname_text: uname,
        clock: Some(TraceClock::named(clock_name(file))),
        pairs,
        formats: data.formats.into_iter().map(|(system, at, text)| (system, source(at), text)).collect(),
        files,
        saved_cmdlines: kept(data.saved_cmdlines),
        kallsyms: kept(data.kallsyms),
        notes,
        ..Description::default()
    })
}

/// The kernel's name for the clock of the samples.
fn clock_name(file: &PerfData<'_>) -> &'static str {
    match file.attrs.iter().find_map(|a| a.clock_id) {
        Some(1) => "mono",
        Some(4) => "mono_raw",
        Some(7) => "boot",
        Some(11) => "tai",
        _ => "perf",
    }
}

/// Symbols of the running kernel, where it is the recorded one: the same release, and its text at the same place.
pub fn running_kernel(file: &PerfData<'_>, description: &mut Description) {
    if description.kallsyms.is_some() {
        return;
    }
    let running = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let Some((symbol, address, _)) =
        file.kernel_text.as_ref().filter(|_| file.fact("osrelease") == Some(running.trim()))
    else {
        return;
    };
    let Ok(kallsyms) = fs::read("/proc/kallsyms") else { return };
    let is_there = kallsyms.split(|&b| b == b'\n').any(|line| {
        let mut words = line.split(|&b| b == b' ');
        let at = words.next().and_then(|w| u64::from_str_radix(std::str::from_utf8(w).ok()?, 16).ok());
        at == Some(*address) && words.nth(1) == Some(symbol.as_bytes())
    });
    if is_there && *address != 0 {
        description.kallsyms = Some(kallsyms);
        description.modules = description.modules.take().or(fs::read_to_string("/proc/modules").ok());
        description
            .notes
            .push("symbols are from the running kernel, which is the recorded kernel".to_owned());
    }
}
