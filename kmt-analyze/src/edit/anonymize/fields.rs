//! Treatment of each field of an event, by an allow-list. Other fields become zero.

use kmt_format::kernel::{Field, FieldKind};
use kmt_format::schema::{EventClass, Role};

use super::allowed::{ALLOWED, COMMON};
use super::mainline;

/// Treatment of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// Unchanged.
    Keep,
    /// Becomes zero.
    Zero,
    /// A task id.
    Pid,
    /// An address of the heap.
    Heap,
    /// Any address of data.
    Address,
    /// An address of the text.
    Code,
    /// Addresses of the text.
    Stack,
    /// A page frame number.
    Frame,
    /// A time of the trace's clock.
    Time,
    /// The name of a cache.
    CacheName,
    /// The name of a task.
    TaskName,
    /// An identifier without other meaning.
    Identity,
}

/// Treatment of an event class.
#[derive(Debug)]
pub struct ClassMask {
    /// By field. Empty: the class is unknown, and only its common fields stay.
    pub treatments: Vec<Treatment>,
    /// Its description.
    pub system: String,
    /// Its description as the kernel's `format` file.
    pub format_text: String,
}

impl ClassMask {
    /// Treatment of a class; `number` is in its new name if it is unknown.
    pub fn of(class: &EventClass, number: usize) -> Self {
        if !mainline::has_event(&class.system, &class.name) {
            let format_text = emptied(class, number);
            return Self { treatments: Vec::new(), system: "hidden".into(), format_text };
        }
        let treatments = class.fields.iter().enumerate().map(|(i, field)| {
            let role = class.roles.get(i).copied().unwrap_or(Role::NONE);
            treatment(&class.system, field, role, i < class.common_count)
        });
        Self {
            treatments: treatments.collect(),
            system: class.system.clone(),
            format_text: class.format_text.to_string(),
        }
    }

    /// True if only the common fields stay.
    pub fn is_hidden(&self) -> bool {
        self.treatments.is_empty()
    }
}

fn treatment(system: &str, field: &Field, role: Role, is_common: bool) -> Treatment {
    if field.kind != FieldKind::Scalar {
        return match role {
            Role::STACK => Treatment::Stack,
            Role::CACHE_NAME if field.is_text() => Treatment::CacheName,
            _ if field.is_text() && is_comm(&field.name) => Treatment::TaskName,
            _ => Treatment::Zero,
        };
    }
    match role {
        Role::PID => Treatment::Pid,
        // Values that are no address stay: the second argument of kvfree_call_rcu may be an offset.
        Role::PTR | Role::RCU_HEAD | Role::RCU_OBJECT => Treatment::Heap,
        Role::CALL_SITE => Treatment::Code,
        Role::PFN => Treatment::Frame,
        Role::ENTRY_TIME | Role::RETURN_TIME => Treatment::Time,
        // Linux 5.12 and 5.13 have a pointer to the name.
        Role::CACHE_NAME => Treatment::Address,
        Role::NONE if is_common => keep_if(COMMON.contains(&field.name.as_str())),
        Role::NONE => by_name(system, field),
        Role::STACK => Treatment::Zero,
        _ => Treatment::Keep,
    }
}

fn keep_if(is_allowed: bool) -> Treatment {
    if is_allowed { Treatment::Keep } else { Treatment::Zero }
}

fn is_comm(name: &str) -> bool {
    matches!(name, "comm" | "prev_comm" | "next_comm" | "parent_comm" | "child_comm" | "oldcomm" | "newcomm")
}

fn is_pid(name: &str) -> bool {
    matches!(name, "pid" | "tgid" | "ppid" | "tid")
        || (name.ends_with("_pid") && !name.ends_with("vpid"))
        || name.ends_with("_tgid")
}

fn by_name(system: &str, field: &Field) -> Treatment {
    let name = field.name.as_str();
    match (system, name) {
        ("ftrace", "ip" | "parent_ip" | "func") | ("vmscan", "shrink") => Treatment::Code,
        ("vmscan", "shr") | ("kmem", "page") => Treatment::Address,
        ("vmscan" | "kmem", "pfn") => Treatment::Frame,
        ("kmem", "mm_id") => Treatment::Identity,
        _ if is_pid(name) && field.size == 4 => Treatment::Pid,
        _ => {
            let of_system = ALLOWED.iter().find(|(s, _)| *s == system).map_or(&[][..], |(_, names)| names);
            // A pointer is not a count, whatever its name.
            keep_if(of_system.contains(&name) && !field.is_pointer())
        }
    }
}

/// A description with the common fields only.
fn emptied(class: &EventClass, number: usize) -> String {
    let mut text = format!("name: event_{number}\nID: {}\nformat:\n", class.id);
    for (index, field) in class.fields.iter().take(class.common_count).enumerate() {
        let is_known = class.roles.get(index).is_some_and(|&r| r != Role::NONE);
        let name = if is_known || COMMON.contains(&field.name.as_str()) {
            field.name.clone()
        } else {
            format!("common_unknown{index}")
        };
        let kind = match (field.size, field.signed) {
            (1, false) => "unsigned char",
            (1, true) => "signed char",
            (2, false) => "unsigned short",
            (2, true) => "short",
            (8, false) => "unsigned long long",
            (8, true) => "long long",
            (_, false) => "unsigned int",
            (_, true) => "int",
        };
        let (offset, size, signed) = (field.offset, field.size, u8::from(field.signed));
        text += &format!("\tfield:{kind} {name};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
    }
    text + "\nprint fmt: \"\"\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON_TEXT: &str = "format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

    fn class(system: &str, name: &str, fields: &str) -> EventClass {
        let text = format!("name: {name}\nID: 9\n{COMMON_TEXT}{fields}\nprint fmt: \"secret\"\n");
        EventClass::from_format(system, &text, 8).unwrap()
    }

    fn plan(system: &str, name: &str, field: &str) -> Treatment {
        let field = format!("\tfield:{field};\toffset:8;\tsize:8;\tsigned:0;\n");
        ClassMask::of(&class(system, name, &field), 1).treatments[4]
    }

    #[test]
    fn what_is_not_listed_becomes_zero() {
        assert_eq!(
            plan("vmscan", "mm_vmscan_direct_reclaim_end", "unsigned long nr_reclaimed"),
            Treatment::Keep
        );
        assert_eq!(plan("vmscan", "mm_vmscan_direct_reclaim_end", "unsigned long serial"), Treatment::Zero);
        assert_eq!(plan("kmem", "mm_page_alloc", "unsigned long pfn"), Treatment::Frame);
        assert_eq!(plan("vmscan", "mm_shrink_slab_start", "void * shrink"), Treatment::Code);
        assert_eq!(plan("vmscan", "mm_shrink_slab_start", "void * order"), Treatment::Zero, "a pointer");
    }

    #[test]
    fn compaction_tells_no_places() {
        for field in ["zone_start", "zone_end", "migrate_pfn", "free_pfn", "start_pfn", "end_pfn"] {
            let field = format!("unsigned long {field}");
            assert_eq!(plan("compaction", "mm_compaction_begin", &field), Treatment::Zero, "{field}");
        }
    }

    #[test]
    fn an_unknown_class_keeps_its_common_fields_only() {
        let class = class("acme", "secret_event", "\tfield:u64 serial;\toffset:8;\tsize:8;\tsigned:0;\n");
        let plan = ClassMask::of(&class, 3);
        assert!(plan.is_hidden());
        let emptied = EventClass::from_format(&plan.system, &plan.format_text, 8).unwrap();
        assert_eq!((emptied.system.as_str(), emptied.name.as_str(), emptied.id), ("hidden", "event_3", 9));
        assert_eq!(*emptied.fields, class.fields[..4]);
        assert!(!plan.format_text.contains("secret") && !plan.format_text.contains("serial"));
    }
}
