//! Bytes of slabs that no object can take, and what debugging adds to objects: from the snapshots.

use serde_json::{Value, json};

use super::{Part, Traced};
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped};
use crate::reports::common::sums::more;
use crate::trace::slabinfo::{self, SlabInfo};

struct Row {
    info: SlabInfo,
    tail: u64,
    /// Bytes that red zones, poison and tracking add to each object; `None` if the file does not tell.
    metadata: Option<u64>,
}

pub(super) fn of(view: &Traced<'_, '_, '_>) -> Part {
    let Some(text) = view.attachment(&["slabinfo.after", "slabinfo.before", "slabinfo"]) else {
        return Part {
            json: Value::Null,
            text: "INSIDE SLABS: not known, the file holds no /proc/slabinfo\n".to_owned(),
        };
    };
    let sysfs = view.attachment(&["slab_sysfs.after", "slab_sysfs.before"]).map(slabinfo::parse_sysfs);
    let page_size = view.result.page_size.0;
    let mut rows: Vec<Row> = slabinfo::parse(text)
        .into_values()
        .filter(|info| info.num_slabs > 0)
        .map(|info| {
            let tail = info.tail_bytes(page_size).saturating_mul(info.num_slabs);
            let known = sysfs.as_ref().and_then(|s| s.get(&info.name));
            let debugged = known.map(|files| {
                let on = |name| files.get(name).is_some_and(|&v| v != 0);
                let is_debugged = on("red_zone") || on("poison") || on("store_user");
                let size = |name| files.get(name).copied().unwrap_or(0);
                if is_debugged { size("slab_size").saturating_sub(size("object_size")) } else { 0 }
            });
            Row { info, tail, metadata: debugged }
        })
        .collect();
    rows.sort_by(|a, b| (b.tail, &a.info.name).cmp(&(a.tail, &b.info.name)));
    let held: u64 =
        total(&rows, |r| r.info.num_slabs.saturating_mul(r.info.pagesperslab).saturating_mul(page_size));
    let tail: u64 = total(&rows, |r| r.tail);
    let metadata: u64 = total(&rows, |r| r.metadata.unwrap_or(0).saturating_mul(r.info.num_objs));
    let metadata_known = rows.iter().any(|r| r.metadata.is_some());
    let shown = view.context.limit.min(rows.len());
    let json = json!({
        "bytes_held": held,
        "tail_bytes": tail,
        "debug_metadata_bytes": metadata_known.then_some(metadata),
        "caches_total": rows.len(),
        "caches": rows.iter().take(shown).map(|r| json!({
            "cache": r.info.name,
            "num_slabs": r.info.num_slabs,
            "pages_per_slab": r.info.pagesperslab,
            "objects_per_slab": r.info.objperslab,
            "object_size": r.info.objsize,
            "tail_bytes_per_slab": r.info.tail_bytes(page_size),
            "tail_bytes": r.tail,
            "debug_metadata_bytes_per_object": r.metadata,
            "active_objs": r.info.active_objs,
            "num_objs": r.info.num_objs,
        })).collect::<Vec<_>>(),
    });
    Part {
        json,
        text: text_of(&rows, held, tail, metadata_known.then_some(metadata), view.context.limit, page_size),
    }
}

fn total(rows: &[Row], of: impl Fn(&Row) -> u64) -> u64 {
    rows.iter().map(of).fold(0, u64::saturating_add)
}

fn text_of(
    rows: &[Row],
    held: u64,
    tail: u64,
    metadata: Option<u64>,
    limit: usize,
    page_size: u64,
) -> String {
    use Align::{Left, Right};
    let mut out = format!(
        "INSIDE SLABS: {} of {} bytes of all slabs, by /proc/slabinfo, fit no object\n",
        count(tail),
        count(held)
    );
    out.push_str(&match metadata {
        Some(0) => "no cache has red zones, poison or tracking\n".to_owned(),
        Some(bytes) => format!("{} bytes are red zones, poison and tracking\n", count(bytes)),
        None => {
            "whether objects carry debug metadata is not known: the file holds nothing of /sys/kernel/slab\n"
                .to_owned()
        }
    });
    let wasteful: Vec<&Row> = rows.iter().filter(|r| r.tail > 0).collect();
    let shown = limit.min(10).min(wasteful.len());
    let cells: Vec<Vec<String>> = wasteful
        .iter()
        .take(shown)
        .map(|r| {
            vec![
                escaped(r.info.name.as_bytes()),
                count(r.info.num_slabs),
                format!("{} x {}", r.info.objperslab, r.info.objsize),
                count(r.info.pagesperslab.saturating_mul(page_size)),
                count(r.info.tail_bytes(page_size)),
                count(r.tail),
            ]
        })
        .collect();
    let columns = [
        ("cache", Left),
        ("slabs", Right),
        ("objects", Right),
        ("slab bytes", Right),
        ("tail", Right),
        ("tails", Right),
    ];
    out.push_str(&format!("{}{}", table(&columns, &cells), more(shown, wasteful.len(), "caches")));
    out
}
