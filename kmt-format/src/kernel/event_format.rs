//! The `format` file of an event: `events/SYSTEM/EVENT/format`.

use crate::error::{Error, ErrorKind, Result};

/// Location and encoding of a field's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldKind {
    /// One integer, pointer or bool of 1, 2, 4 or 8 bytes.
    Scalar,
    /// A fixed array of `count` elements, or a structure that is no integer (`count` elements of one byte).
    Array {
        /// Number of elements.
        count: u32,
    },
    /// `__data_loc`: a u32 whose low half is an offset from the start of the record, its high half a length in bytes.
    DataLoc,
    /// `__rel_loc`: the same, with the offset counted from the end of the u32.
    RelLoc,
    /// A flexible array at the end: it reaches to the end of the record.
    Tail,
    /// A kind of that number, which a later version of the format describes: the field has a name, and no value here.
    Opaque(u8),
}

/// One `field:` line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// Name without brackets.
    pub name: String,
    /// C type as printed, brackets of fixed arrays left out.
    pub type_text: String,
    /// Offset from the start of the record, in bytes.
    pub offset: u32,
    /// Size in bytes; of the 4-byte locator for dynamic fields; 0 for a flexible array.
    pub size: u32,
    /// True if the (elements') type is signed.
    pub signed: bool,
    /// Location of its bytes.
    pub kind: FieldKind,
    /// Size of one element in bytes; the size itself for scalars, but of files that state another number.
    pub element_size: u32,
}

impl Field {
    /// True if the bytes are text: an array of plain `char`.
    pub fn is_text(&self) -> bool {
        if matches!(self.kind, FieldKind::Scalar) || self.element_size != 1 {
            return false;
        }
        let element = self.element_type();
        element == "char" || element == "const char"
    }

    /// True if it is a fixed array of plain `char`: text that ends at its first NUL, with stale bytes after it.
    pub fn is_fixed_text(&self) -> bool {
        matches!(self.kind, FieldKind::Array { .. }) && self.is_text()
    }

    /// The C type of one element, without locator and brackets.
    pub fn element_type(&self) -> &str {
        let text = self.type_text.trim_start_matches("__data_loc").trim_start_matches("__rel_loc");
        text.trim().trim_end_matches("[]").trim_end()
    }

    /// True if the C type is a pointer.
    pub fn is_pointer(&self) -> bool {
        self.type_text.contains('*')
    }
}

/// The parsed `format` file of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventFormat {
    /// Name of the event without its system.
    pub name: String,
    /// `common_type` of its records; valid for one boot of one kernel.
    pub id: u16,
    /// All fields, the common ones first, in the order of the file.
    pub fields: Vec<Field>,
    /// Number of `fields` that are common to all events.
    pub common_count: usize,
    /// Byte range of the text after `print fmt: ` in the file.
    pub print_fmt: core::ops::Range<usize>,
}

impl EventFormat {
    /// Most fields accepted of one event.
    pub const FIELDS_MAX: usize = 256;

    /// Parses a `format` file; `long_size` is the size of the kernel's `long` in bytes (4 or 8).
    ///
    /// Size and sign are taken as printed: the type text is wrong (`int fd` with size 8 in syscall events).
    /// Source: `f_show`, kernel/trace/trace_events.c 4.4 to 7.2.
    ///
    /// # Errors
    ///
    /// Returns an error if name, id or a well-formed field line is missing, or there are too many fields.
    pub fn parse(text: &str, long_size: usize) -> Result<Self> {
        let mut name = None;
        let mut id = None;
        let mut fields: Vec<Field> = Vec::new();
        let mut print_fmt = 0..0;
        let mut position = 0usize;
        for line in text.split_inclusive('\n') {
            let start = position;
            position = position.saturating_add(line.len());
            let line = line.trim_end_matches(['\n', '\r']);
            let bad = |what| Error::at(start as u64, ErrorKind::KernelText { file: "format", what });
            if let Some(value) = line.strip_prefix("name: ") {
                name = Some(value.trim().to_owned());
            } else if let Some(value) = line.strip_prefix("ID: ") {
                id = Some(value.trim().parse::<u16>().map_err(|_| bad("the ID is not a 16-bit number"))?);
            } else if let Some(rest) = line.strip_prefix("print fmt: ") {
                // A print fmt may hold raw newlines only inside string literals; it is the last thing in the file.
                let from = start.saturating_add(line.len().saturating_sub(rest.len()));
                print_fmt = from..from.saturating_add(text.get(from..).map_or(0, |t| t.trim_end().len()));
                break;
            } else if line.trim_start().starts_with("field") && line.contains("offset:") {
                if fields.len() >= Self::FIELDS_MAX {
                    return Err(bad("more than 256 fields"));
                }
                fields.push(parse_field(line, long_size).ok_or_else(|| bad("a field line is malformed"))?);
            }
        }
        let bad = |what| Error::new(ErrorKind::KernelText { file: "format", what });
        let common_count = fields.iter().take_while(|f| f.name.starts_with("common_")).count();
        if fields.first().is_none_or(|f| f.name != "common_type" || (f.offset, f.size) != (0, 2)) {
            return Err(bad("the first field is not common_type, 2 bytes at offset 0"));
        }
        Ok(Self {
            name: name.filter(|n| !n.is_empty()).ok_or_else(|| bad("the line `name:` is missing"))?,
            id: id.ok_or_else(|| bad("the line `ID:` is missing"))?,
            fields,
            common_count,
            print_fmt,
        })
    }
}

/// Largest end of the fixed fields of an event, in bytes: an event fits into a page (`BUF_MAX_DATA_SIZE`,
/// kernel/trace/ring_buffer.c, 4.4 to 6.7), and offsets of dynamic arrays after the fixed fields have 16 bits.
pub(crate) const FIELDS_END_MAX: u64 = 1 << 16;

/// `field:TYPE NAME[LEN];\toffset:N;\tsize:N;\tsigned:N;`; the ancient `field special:` is accepted too.
fn parse_field(line: &str, long_size: usize) -> Option<Field> {
    let (_, rest) = line.split_once(':')?;
    let mut attributes = rest.split(';');
    let declaration = attributes.next()?.trim();
    let (mut offset, mut size, mut signed) = (None, None, false);
    for attribute in attributes {
        match attribute.trim().split_once(':') {
            Some(("offset", value)) => offset = value.parse::<u32>().ok(),
            Some(("size", value)) => size = value.parse::<u32>().ok(),
            Some(("signed", value)) => signed = value.trim() == "1",
            _ => {}
        }
    }
    let (offset, size) = (offset?, size?);
    if u64::from(offset).saturating_add(size.into()) > FIELDS_END_MAX {
        return None;
    }
    // A bracket after the name may contain anything, blanks included.
    let (before, bracket) = match declaration.split_once('[') {
        Some((before, rest)) if !before.trim_end().ends_with(' ') && !rest.trim_end().contains("] ") => {
            (before.trim_end(), Some(rest.trim_end().trim_end_matches(']')))
        }
        _ => (declaration, None),
    };
    let split = before.rfind([' ', '*'])?.saturating_add(1);
    let (type_text, name) = (before.get(..split)?.trim_end(), before.get(split..)?);
    if name.is_empty() || type_text.is_empty() {
        return None;
    }
    let mut field = Field {
        name: name.to_owned(),
        type_text: type_text.to_owned(),
        offset,
        size,
        signed,
        kind: FieldKind::Scalar,
        element_size: size,
    };
    classify(&mut field, bracket, long_size);
    Some(field)
}

/// Finds out the kind: the locator types go by their prefix, because `__rel_loc` prints brackets after the name.
fn classify(field: &mut Field, bracket: Option<&str>, long_size: usize) {
    let by_name = || element_size_of(field.element_type(), long_size);
    if field.type_text.starts_with("__data_loc") {
        (field.kind, field.element_size) = (FieldKind::DataLoc, by_name());
    } else if field.type_text.starts_with("__rel_loc") {
        (field.kind, field.element_size) = (FieldKind::RelLoc, by_name());
    } else if field.size == 0 {
        (field.kind, field.element_size) = (FieldKind::Tail, by_name());
    } else if let Some(bracket) = bracket {
        let element = match bracket.trim().parse::<u32>() {
            Ok(count) if count > 0 && field.size.checked_rem(count) == Some(0) => {
                field.size.checked_div(count).unwrap_or(0)
            }
            _ => Some(by_name()).filter(|e| field.size.checked_rem(*e) == Some(0)).unwrap_or(1),
        };
        let element = if matches!(element, 1 | 2 | 4 | 8) { element } else { 1 };
        field.kind = FieldKind::Array { count: field.size.checked_div(element).unwrap_or(0) };
        field.element_size = element;
    } else if !matches!(field.size, 1 | 2 | 4 | 8) {
        field.kind = FieldKind::Array { count: field.size };
        field.element_size = 1;
    }
}

/// Size of an element whose type is only known by name.
fn element_size_of(element: &str, long_size: usize) -> u32 {
    let long = long_size as u32;
    if element.contains('*') {
        return long;
    }
    match element.trim_start_matches("const ").trim() {
        "short" | "short int" | "unsigned short" | "u16" | "s16" | "__u16" | "__s16" | "__le16"
        | "__be16" | "uint16_t" | "int16_t" => 2,
        "int" | "unsigned int" | "unsigned" | "u32" | "s32" | "__u32" | "__s32" | "__le32" | "__be32"
        | "uint32_t" | "int32_t" | "pid_t" | "gfp_t" | "dev_t" => 4,
        "long long" | "unsigned long long" | "u64" | "s64" | "__u64" | "__s64" | "__le64" | "__be64"
        | "uint64_t" | "int64_t" | "loff_t" => 8,
        "long" | "unsigned long" | "size_t" | "ssize_t" | "cpumask_t" | "uintptr_t" => long,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(line: &str) -> Field {
        parse_field(line, 8).unwrap()
    }

    fn check(line: &str, name: &str, type_text: &str, kind: FieldKind, element: u32) {
        let field = field(line);
        assert_eq!((field.name.as_str(), field.type_text.as_str()), (name, type_text), "{line}");
        assert_eq!((field.kind, field.element_size), (kind, element), "{line}");
    }

    #[test]
    fn splits_declarations() {
        use FieldKind::*;
        check("\tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;", "pfn", "unsigned long", Scalar, 8);
        check("\tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;", "ptr", "const void *", Scalar, 8);
        check(
            "\tfield:struct iocb * *iocbpp;\toffset:16;\tsize:8;\tsigned:0;",
            "iocbpp",
            "struct iocb * *",
            Scalar,
            8,
        );
        check(
            "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:1;",
            "comm",
            "char",
            Array { count: 16 },
            1,
        );
        check(
            "\tfield:char comm[TASK_COMM_LEN];\toffset:8;\tsize:16;\tsigned:1;",
            "comm",
            "char",
            Array { count: 16 },
            1,
        );
        check(
            "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;",
            "caller",
            "unsigned long",
            Array { count: 8 },
            8,
        );
        check(
            "\tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;",
            "name",
            "__data_loc char[]",
            DataLoc,
            1,
        );
        check(
            "\tfield:__rel_loc char name[];\toffset:24;\tsize:4;\tsigned:0;",
            "name",
            "__rel_loc char",
            RelLoc,
            1,
        );
        check(
            "\tfield:__data_loc cpumask_t cpus;\toffset:8;\tsize:4;\tsigned:0;",
            "cpus",
            "__data_loc cpumask_t",
            DataLoc,
            8,
        );
        check("\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;", "buf", "char", Tail, 1);
        check("\tfield:u32 buf[];\toffset:24;\tsize:0;\tsigned:0;", "buf", "u32", Tail, 4);
        check(
            "\tfield:struct timespec t;\toffset:8;\tsize:16;\tsigned:0;",
            "t",
            "struct timespec",
            Array { count: 16 },
            1,
        );
        check("\tfield:unsigned flags;\toffset:8;\tsize:4;\tsigned:0;", "flags", "unsigned", Scalar, 4);
    }

    #[test]
    fn reads_a_whole_file() {
        let text = "name: kfree\nID: 458\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
            \tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"x=%lx\", REC->call_site\n";
        let format = EventFormat::parse(text, 8).unwrap();
        assert_eq!((format.name.as_str(), format.id, format.common_count), ("kfree", 458, 2));
        assert_eq!(&text[format.print_fmt.clone()], "\"x=%lx\", REC->call_site");
        assert!(format.fields[1].signed);
    }

    #[test]
    fn refuses_what_cannot_be() {
        for text in
            ["", "name: x\n", "name: x\nID: 70000\n", "name: x\nID: 7\n\tfield:int;\toffset:0;\tsize:4;\n"]
        {
            assert!(EventFormat::parse(text, 8).is_err(), "{text:?}");
        }
    }
}
