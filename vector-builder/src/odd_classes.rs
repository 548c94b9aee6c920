//! Event classes for one case each: no writer of the other vectors knows them.

use crate::classes::{Class, Field, Place, field};

/// Arrays of bytes of which only plain `char` ends at its first NUL.
pub const TEXTS: Class = Class {
    system: "odd",
    name: "texts",
    id: 302,
    meaning: 0,
    fields: &[
        Field { kind: 1, bracket: "[6]", element: 1, ..field("plain", "char", 6, true, 0) },
        Field { kind: 1, bracket: "[6]", element: 1, ..field("constant", "const char", 6, true, 0) },
        Field { kind: 1, bracket: "[6]", element: 1, ..field("bytes", "unsigned char", 6, false, 0) },
        Field { kind: 1, bracket: "[6]", element: 1, ..field("small", "signed char", 6, true, 0) },
        Field { kind: 2, element: 1, ..field("dynamic", "__data_loc char[]", 4, true, 0) },
    ],
    print: "\"\"",
};

/// A class with the id of kmalloc, as another boot has it.
pub const SAME_ID: Class = Class {
    system: "odd",
    name: "same_id",
    id: 11,
    meaning: 0,
    fields: &[field("number", "unsigned int", 4, false, 0)],
    print: "\"\"",
};

/// A third class with that id.
pub const SAME_ID_AGAIN: Class = Class {
    system: "odd",
    name: "same_id_again",
    id: 11,
    meaning: 0,
    fields: &[field("small", "unsigned short", 2, false, 0), field("number", "unsigned short", 2, false, 0)],
    print: "\"\"",
};

/// Differences of every size, numbers at every place of the value word, and fields without a value: by slots that are
/// changed by hand.
pub const DIFFERENCES: Class = Class {
    system: "odd",
    name: "differences",
    id: 303,
    meaning: 0,
    fields: &[
        Field { place: Place::Value, ..field("word", "unsigned long", 0, false, 0) },
        field("base_unsigned", "unsigned int", 4, false, 0),
        field("base_signed", "short", 2, true, 0),
        field("time_u8", "unsigned char", 1, false, 0),
        field("time_s16", "short", 2, true, 0),
        field("time_u32", "unsigned int", 4, false, 0),
        field("time_s64", "long long", 8, true, 0),
        field("less_s8", "signed char", 1, true, 0),
        field("less_u16", "unsigned short", 2, false, 0),
        field("less_s32", "int", 4, true, 0),
        field("less_u64", "unsigned long long", 8, false, 0),
        field("less_time_s64", "long long", 8, true, 0),
        field("of_array", "unsigned int", 4, false, 0),
        field("of_difference", "unsigned int", 4, false, 0),
        field("of_none", "unsigned int", 4, false, 0),
        field("none", "unsigned int", 4, false, 0),
        field("low", "unsigned short", 2, false, 0),
        field("middle", "unsigned char", 1, false, 0),
        field("high", "signed char", 1, true, 0),
        Field { kind: 2, element: 1, ..field("text", "__data_loc char[]", 4, true, 0) },
    ],
    print: "\"\"",
};

/// Arrays of dynamic length, whose words are changed by hand.
pub const DYNAMIC: Class = Class {
    system: "odd",
    name: "dynamic",
    id: 304,
    meaning: 0,
    fields: &[
        Field { kind: 2, element: 1, ..field("text", "__data_loc char[]", 4, true, 0) },
        Field { kind: 3, bracket: "[]", element: 4, ..field("words", "__rel_loc u32", 4, false, 0) },
    ],
    print: "\"\"",
};

const fn addresses(name: &'static str, ctype: &'static str, element: usize) -> Field {
    Field { kind: 1, bracket: "[16]", element, ..field(name, ctype, 16, false, 17) }
}

/// Stacks of every kind of array; of the two numbers of addresses the first one counts.
pub const TWO_DEPTHS: Class = Class {
    system: "odd",
    name: "two_depths",
    id: 305,
    meaning: 0,
    fields: &[
        field("depth", "unsigned int", 4, false, 18),
        field("another", "unsigned int", 4, false, 18),
        addresses("fixed", "unsigned long", 0),
        addresses("text", "char", 1),
        Field { kind: 4, bracket: "[]", element: 0, ..field("rest", "unsigned long", 0, false, 17) },
    ],
    print: "\"\"",
};

/// A stack beside two numbers of addresses, of which the first one is an array.
pub const ARRAY_DEPTH: Class = Class {
    system: "odd",
    name: "array_depth",
    id: 306,
    meaning: 0,
    fields: &[
        Field { kind: 1, bracket: "[4]", element: 1, ..field("depth", "u8", 4, false, 18) },
        field("another", "unsigned int", 4, false, 18),
        addresses("fixed", "unsigned long", 0),
    ],
    print: "\"\"",
};

/// The time when a function was entered in an array.
pub const ARRAY_TIME: Class = Class {
    system: "odd",
    name: "array_time",
    id: 307,
    meaning: 0,
    fields: &[
        field("returned", "unsigned long long", 8, false, 20),
        Field { kind: 2, element: 1, ..field("entered", "__data_loc char[]", 8, false, 19) },
    ],
    print: "\"\"",
};

/// Two times of a function; the first one becomes a common field by hand.
pub const COMMON_TIME: Class = Class {
    system: "odd",
    name: "common_time",
    id: 308,
    meaning: 0,
    fields: &[
        field("returned", "unsigned long long", 8, false, 20),
        field("entered", "unsigned long long", 8, false, 19),
    ],
    print: "\"\"",
};
