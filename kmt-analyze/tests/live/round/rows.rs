//! Events of a .kmt file in a form that two conversions of the same events share.

use std::collections::HashSet;

use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Event, Item, Trace};
use kmt_format::schema::Role;

/// Fields that reports use, by the name that a message gives them.
pub const ROLES: [(Role, &str); 12] = [
    (Role::PTR, "ptr"),
    (Role::CALL_SITE, "call_site"),
    (Role::BYTES_REQ, "bytes_req"),
    (Role::BYTES_ALLOC, "bytes_alloc"),
    (Role::GFP_FLAGS, "gfp_flags"),
    (Role::NODE, "node"),
    (Role::CACHE_NAME, "name"),
    (Role::ACCOUNTED, "accounted"),
    (Role::PFN, "pfn"),
    (Role::ORDER, "order"),
    (Role::MIGRATETYPE, "migratetype"),
    (Role::RSS_SIZE, "size"),
];

/// Value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    /// A name: of a cache, of flags, of a function with its offset.
    Name(String),
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub cpu: u32,
    /// In nanoseconds.
    pub time: u64,
    pub pid: i32,
    pub comm: String,
    pub name: String,
    /// Text of its fields as the kernel or the tool prints it.
    pub text: String,
    /// In the order of `ROLES`.
    pub values: [Option<Value>; ROLES.len()],
    /// Frames of a stack.
    pub stack: Option<Vec<String>>,
}

/// All events of a file, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub rows: Vec<Row>,
    /// Every name that each task has in the file.
    pub names: HashSet<(i32, String)>,
    /// Losses, counted or not.
    pub losses: u64,
}

impl Rows {
    pub fn of(file: &[u8]) -> Self {
        let trace = Trace::open(file).unwrap();
        assert!(trace.is_finished() && trace.damages().is_empty(), "{:?}", trace.damages());
        let env = PrintEnv::of(trace.header(), trace.metadata(), trace.symbols());
        let mut texts: Vec<Option<EventText>> = Vec::new();
        let mut found = Self::default();
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        found.names.extend(trace.metadata().tasks.iter().map(|t| (t.pid, text_of(&t.comm))));
        for item in trace.items() {
            let event = match item {
                Item::Event(event) => event,
                Item::Loss(_) => {
                    found.losses += 1;
                    continue;
                }
                _ => continue,
            };
            let class = event.class_index();
            texts.resize_with(texts.len().max(class + 1), || None);
            let text = texts[class].get_or_insert_with(|| EventText::new(event.class(), &env));
            found.rows.push(row(&event, text, &env));
        }
        found
    }
}

fn row(event: &Event<'_>, text: &EventText, env: &PrintEnv<'_>) -> Row {
    let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    let frames = |stack: kmt_format::read::Stack<'_>| {
        stack.addresses().map(|a| string(&env.symbol_with_offset(a))).collect()
    };
    let mut fields = Vec::new();
    if event.stack().is_none() {
        text.write_fields(&mut fields, event, env);
    }
    Row {
        cpu: event.cpu(),
        time: event.time(),
        pid: event.pid(),
        comm: event.comm().map(string).unwrap_or_default(),
        name: event.class().name.clone(),
        text: string(&fields),
        values: ROLES.map(|(role, _)| value(event, role, text, env)),
        stack: event.stack().map(frames),
    }
}

fn value(event: &Event<'_>, role: Role, text: &EventText, env: &PrintEnv<'_>) -> Option<Value> {
    let field = event.class().field_with(role)?;
    let name = |bytes: &[u8]| Value::Name(String::from_utf8_lossy(bytes).into_owned());
    match role {
        Role::CALL_SITE => event.uint(field).map(|address| name(&env.symbol_with_offset(address))),
        Role::GFP_FLAGS => text.field_text(field, event, env).map(|bytes| name(&bytes)),
        Role::CACHE_NAME => event.text(field).map(name),
        _ => event.uint(field).map(Value::Number),
    }
}
