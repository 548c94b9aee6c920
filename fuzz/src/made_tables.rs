//! Tables of [`made`](super::made) files: cgroups of tasks, source lines, totals without events.

use arbitrary::{Result, Unstructured};
use kmt_format::schema::Meaning;
use kmt_format::tables::{CgroupRecord, SiteSums, SourceLine};
use kmt_format::write::Writer;

use super::made_classes::number;
use super::made_numbers::{edge, small};

/// Most rows of a table.
const ROWS_MAX: usize = 6;

/// One table.
pub fn add(writer: &mut Writer, time: u64, u: &mut Unstructured<'_>) -> Result<()> {
    let rows = u.int_in_range(1..=ROWS_MAX)?;
    let added = match u.int_in_range(0..=2)? {
        0 => writer.add_cgroups(&(0..rows).map(|_| cgroup(time, u)).collect::<Result<Vec<_>>>()?),
        1 => writer.add_lines(&(0..rows).map(|_| line(u)).collect::<Result<Vec<_>>>()?),
        _ => writer.add_sums(&(0..rows).map(|_| sums(time, u)).collect::<Result<Vec<_>>>()?),
    };
    added.expect("no codec refuses it");
    Ok(())
}

fn cgroup(time: u64, u: &mut Unstructured<'_>) -> Result<CgroupRecord<'static>> {
    const PATHS: [&[u8]; 5] = [b"/", b"/user.slice/a", b"/system.slice", b"", b"/<b>\x1b[2J"];
    let mut cgroup = CgroupRecord::new(number(u, "pid", 8)? as i32, *u.choose(&PATHS)?);
    (cgroup.time, cgroup.id, cgroup.hierarchy) =
        (if u.arbitrary()? { time } else { 0 }, small(u)?, number(u, "dst_root", 8)? as u32);
    Ok(cgroup)
}

fn line(u: &mut Unstructured<'_>) -> Result<SourceLine<'static>> {
    const FUNCTIONS: [&[u8]; 4] = [b"do_fork", b"alloc_inode", b"", b"<b>\x1b[1m"];
    const FILES: [&[u8]; 6] = [
        b"fs/inode.c",
        b"kernel/fork.c",
        b"./arch/x86/../x86/kernel/a.c",
        b"",
        b"/usr/src/linux/mm/slub.c",
        b"a<b>/\x1b.c",
    ];
    let mut line = SourceLine::new(number(u, "call_site", 8)?);
    line.function = (*u.choose(&FUNCTIONS)?).into();
    line.file = (*u.choose(&FILES)?).into();
    (line.line, line.depth) = (small(u)? as u32, u.int_in_range(0..=3)?);
    Ok(line)
}

fn sums(time: u64, u: &mut Unstructured<'_>) -> Result<SiteSums<'static>> {
    let meanings = [Meaning::KMALLOC, Meaning::KFREE, Meaning::CACHE_ALLOC, Meaning::PAGE_ALLOC];
    let last = if u.ratio(1, 8)? { edge(u)? } else { time.saturating_add(1_000_000) };
    let mut sums = SiteSums::new(*u.choose(&meanings)?, time, last);
    sums.call_site = number(u, "call_site", 8)?;
    let mut some = || Ok::<_, arbitrary::Error>(if u.ratio(1, 4)? { None } else { Some(small(u)?) });
    (sums.events, sums.bytes_req, sums.bytes_alloc) = (some()?, some()?, some()?);
    Ok(sums)
}
