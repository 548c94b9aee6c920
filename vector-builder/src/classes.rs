//! The event classes of the vectors: one of each kind that the format treats in its own way.

/// Storage of a field in the compact shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Not stored.
    Id,
    /// The context.
    Context,
    /// The descriptor.
    Descriptor,
    /// The value word.
    Value,
    /// 64 bit: 4 bytes in the value word, the record's time minus them. 32 bit: the descriptor.
    Returned,
    /// 64 bit: 4 bytes in the value word, field `returned` minus them. 32 bit: the descriptor.
    Entered(u8),
}

/// A field of the kernel's record.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Name.
    pub name: &'static str,
    /// C type.
    pub ctype: &'static str,
    /// The text behind the name in the declaration.
    pub bracket: &'static str,
    /// Kind as the specification numbers it.
    pub kind: u8,
    /// Size in bytes; 0: long.
    pub size: usize,
    /// True if it is signed.
    pub signed: bool,
    /// Size of an element in bytes; 0: long.
    pub element: usize,
    /// Role as the registry numbers it.
    pub role: u16,
    /// Place.
    pub place: Place,
    /// True if 8 bytes may shrink to 4 in the compact shape: not for addresses.
    pub shrinks: bool,
}

/// An event class.
#[derive(Debug, Clone, Copy)]
pub struct Class {
    /// System.
    pub system: &'static str,
    /// Name.
    pub name: &'static str,
    /// Event id.
    pub id: u16,
    /// Meaning as the registry numbers it.
    pub meaning: u16,
    /// Fields behind the common ones.
    pub fields: &'static [Field],
    /// print fmt.
    pub print: &'static str,
}

/// A scalar that repeats.
pub const fn field(name: &'static str, ctype: &'static str, size: usize, signed: bool, role: u16) -> Field {
    let (kind, place) = (0, Place::Descriptor);
    Field { name, ctype, bracket: "", kind, size, signed, element: size, role, place, shrinks: true }
}

const fn address(name: &'static str, ctype: &'static str, role: u16, place: Place) -> Field {
    Field { place, shrinks: false, ..field(name, ctype, 0, false, role) }
}

/// The fields that all events have.
pub const COMMON: [Field; 4] = [
    Field { place: Place::Id, ..field("common_type", "unsigned short", 2, false, 1) },
    Field { place: Place::Context, ..field("common_flags", "unsigned char", 1, false, 2) },
    Field { place: Place::Context, ..field("common_preempt_count", "unsigned char", 1, false, 3) },
    Field { place: Place::Context, ..field("common_pid", "int", 4, true, 4) },
];

/// An address that moves, numbers that repeat.
pub const KMALLOC: Class = Class {
    system: "kmem",
    name: "kmalloc",
    id: 11,
    meaning: 1,
    fields: &[
        address("call_site", "unsigned long", 6, Place::Descriptor),
        address("ptr", "const void *", 5, Place::Value),
        field("bytes_req", "size_t", 0, false, 7),
        field("bytes_alloc", "size_t", 0, false, 8),
        field("gfp_flags", "unsigned long", 0, false, 9),
        field("node", "int", 4, true, 10),
    ],
    print: "\"call_site=%lx ptr=%p\", REC->call_site, REC->ptr",
};

/// Dynamic text.
pub const CACHE_FREE: Class = Class {
    system: "kmem",
    name: "kmem_cache_free",
    id: 12,
    meaning: 4,
    fields: &[
        address("call_site", "unsigned long", 6, Place::Descriptor),
        address("ptr", "const void *", 5, Place::Value),
        Field { kind: 2, element: 1, ..field("name", "__data_loc char[]", 4, false, 11) },
    ],
    print: "\"name=%s\", __get_str(name)",
};

/// A page frame number.
pub const PAGE_ALLOC: Class = Class {
    system: "kmem",
    name: "mm_page_alloc",
    id: 13,
    meaning: 5,
    fields: &[
        Field { place: Place::Value, ..field("pfn", "unsigned long", 0, false, 13) },
        field("order", "unsigned int", 4, false, 14),
        field("gfp_flags", "unsigned long", 0, false, 9),
        field("migratetype", "int", 4, true, 15),
    ],
    print: "\"pfn=0x%lx\", REC->pfn",
};

/// The free of kmalloc.
pub const KFREE: Class = Class {
    system: "kmem",
    name: "kfree",
    id: 14,
    meaning: 2,
    fields: &[
        address("call_site", "unsigned long", 6, Place::Descriptor),
        address("ptr", "const void *", 5, Place::Value),
    ],
    print: "\"call_site=%lx ptr=%p\", REC->call_site, REC->ptr",
};

/// An allocation with dynamic text.
pub const CACHE_ALLOC: Class = Class {
    system: "kmem",
    name: "kmem_cache_alloc",
    id: 15,
    meaning: 3,
    fields: &[
        address("call_site", "unsigned long", 6, Place::Descriptor),
        address("ptr", "const void *", 5, Place::Value),
        Field { kind: 2, element: 1, ..field("name", "__data_loc char[]", 4, false, 11) },
        field("bytes_req", "size_t", 0, false, 7),
        field("bytes_alloc", "size_t", 0, false, 8),
        field("gfp_flags", "unsigned long", 0, false, 9),
    ],
    print: "\"name=%s\", __get_str(name)",
};

/// A stack, longer or shorter than its declaration.
pub const STACK: Class = Class {
    system: "ftrace",
    name: "kernel_stack",
    id: 4,
    meaning: 9,
    fields: &[
        field("size", "int", 4, true, 18),
        Field { kind: 1, bracket: "[8]", element: 0, ..field("caller", "unsigned long", 0, false, 17) },
    ],
    print: "\"\"",
};

/// Two times that lie close to the event's own.
pub const EXIT: Class = Class {
    system: "ftrace",
    name: "funcgraph_exit",
    id: 10,
    meaning: 0,
    fields: &[
        address("func", "unsigned long", 0, Place::Descriptor),
        Field { place: Place::Entered(6), ..field("calltime", "unsigned long long", 8, false, 19) },
        Field { place: Place::Returned, ..field("rettime", "unsigned long long", 8, false, 20) },
        field("depth", "int", 4, true, 0),
    ],
    print: "\"%d\", REC->depth",
};

/// Arrays of every other kind.
pub const ARRAYS: Class = Class {
    system: "odd",
    name: "arrays",
    id: 300,
    meaning: 0,
    fields: &[
        Field { kind: 1, bracket: "[16]", element: 1, ..field("comm", "char", 16, true, 0) },
        Field { kind: 1, bracket: "[5]", element: 1, ..field("raw", "u8", 5, false, 0) },
        Field { kind: 3, bracket: "[]", element: 4, ..field("tail", "__rel_loc u32", 4, false, 0) },
        field("flag", "bool", 1, false, 0),
    ],
    print: "\"%s\", REC->comm",
};

/// An array to the end of the record.
pub const TAIL: Class = Class {
    system: "ftrace",
    name: "raw_data",
    id: 9,
    meaning: 0,
    fields: &[
        field("id", "unsigned int", 4, false, 0),
        Field { kind: 4, bracket: "[]", element: 1, ..field("buf", "char", 0, true, 0) },
    ],
    print: "\"\"",
};

/// No field of its own.
pub const EMPTY: Class =
    Class { system: "odd", name: "empty", id: 301, meaning: 0, fields: &[], print: "\"\"" };

/// The classes that a kernel of these vectors has.
pub const ALL: [&Class; 10] =
    [&KMALLOC, &CACHE_FREE, &PAGE_ALLOC, &KFREE, &CACHE_ALLOC, &STACK, &EXIT, &ARRAYS, &TAIL, &EMPTY];

impl Field {
    /// Bytes in the kernel's record, whatever the record holds.
    pub fn record_size(&self, long: usize) -> usize {
        match (self.kind, self.name) {
            (4, _) => 0,
            (1, "caller") => 8 * long,
            _ if self.size == 0 => long,
            _ => self.size,
        }
    }

    /// Bytes of an element; of a scalar its own.
    pub fn element_size(&self, long: usize) -> usize {
        match (self.kind, self.element) {
            (0, _) => self.record_size(long),
            (_, 0) => long,
            (_, element) => element,
        }
    }
}

impl Class {
    /// All fields, the common ones first.
    pub fn all_fields(&self) -> Vec<Field> {
        COMMON.iter().chain(self.fields).copied().collect()
    }

    /// Offset of each field in the kernel's record, as a C compiler lays them out.
    pub fn offsets(&self, long: usize) -> Vec<usize> {
        let mut at: usize = 0;
        let mut out = Vec::new();
        for field in self.all_fields() {
            let align =
                if field.kind == 1 { field.element_size(long) } else { field.record_size(long).max(1) };
            at = at.next_multiple_of(align);
            out.push(at);
            at += field.record_size(long);
        }
        out
    }

    /// The kernel's `format` file.
    pub fn format_text(&self, long: usize) -> String {
        let mut out = format!("name: {}\nID: {}\nformat:\n", self.name, self.id);
        for (i, (field, offset)) in self.all_fields().iter().zip(self.offsets(long)).enumerate() {
            if i == COMMON.len() {
                out.push('\n');
            }
            let Field { name, ctype, bracket, signed, .. } = field;
            let size = field.record_size(long);
            let signed = u8::from(*signed);
            out += &format!(
                "\tfield:{ctype} {name}{bracket};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"
            );
        }
        if self.fields.is_empty() {
            out.push('\n');
        }
        out + "\nprint fmt: " + self.print + "\n"
    }
}
