//! Events whose id has no format: kept with the fields that all events of a kernel share, and the rest as bytes.

use crate::error::Result;
use crate::kernel::EventFormat;
use crate::schema::EventClass;

/// System of their classes in the file.
pub(super) const SYSTEM: &str = "unknown";
/// Ids that get a class; more of them come from damage.
const IDS_MAX: usize = 64;

/// Makes classes for ids without a format.
#[derive(Debug)]
pub(super) struct UnknownIds {
    /// Lines of the common fields, as in a `format` file.
    common: String,
    /// Offset of the first byte behind the common fields.
    common_len: u32,
    long_size: usize,
    /// Classes that can still be made.
    left: usize,
}

impl UnknownIds {
    /// With the common fields of a `format` file of the same kernel.
    pub fn new(format: &str, long_size: usize) -> Result<Self> {
        let parsed = EventFormat::parse(format, long_size)?;
        let common = parsed.fields.iter().take(parsed.common_count);
        let common_len = common.map(|field| field.offset.saturating_add(field.size)).max().unwrap_or(2);
        let is_field = |line: &&str| line.trim_start().starts_with("field") && line.contains("offset:");
        let lines = format.lines().filter(is_field).take(parsed.common_count);
        let common = lines.map(|line| format!("{line}\n")).collect();
        Ok(Self { common, common_len, long_size, left: IDS_MAX })
    }

    /// A class for an id; `None` if there are too many.
    pub fn class(&mut self, id: u16) -> Option<EventClass> {
        self.left = self.left.checked_sub(1)?;
        let (common, at) = (&self.common, self.common_len);
        let text = format!(
            "name: event_{id}\nID: {id}\nformat:\n{common}\n\tfield:u8 data[];\toffset:{at};\tsize:0;\tsigned:0;\n\nprint fmt: \"\"\n"
        );
        EventClass::from_format(SYSTEM, &text, self.long_size).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::FieldKind;

    #[test]
    fn a_class_has_the_common_fields_and_the_rest_as_bytes() {
        let text = "name: kfree\nID: 458\nformat:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
             \tfield:const void * ptr;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"%p\", REC->ptr\n";
        let mut unknown = UnknownIds::new(text, 8).unwrap();
        let class = unknown.class(7).unwrap();
        assert_eq!((class.id, class.system.as_str(), class.name.as_str()), (7, "unknown", "event_7"));
        let fields: Vec<_> = class.fields.iter().map(|field| (field.name.as_str(), field.offset)).collect();
        assert_eq!(fields, [("common_type", 0), ("common_pid", 4), ("data", 8)]);
        assert_eq!((class.common_count, class.fields[2].kind), (2, FieldKind::Tail));
        assert_eq!((8..).map_while(|id| unknown.class(id)).count(), IDS_MAX - 1);
        assert!(UnknownIds::new("nonsense", 8).is_err());
    }
}
