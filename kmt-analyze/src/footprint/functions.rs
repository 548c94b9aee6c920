//! Objects of functions, by the symbol tables of a build: allocations have an object without debug information.

use std::collections::HashMap;

use object::{Object, ObjectSymbol, SymbolKind};

/// Longest name of a function: that of the kernel's own table (KSYM_NAME_LEN, include/linux/kallsyms.h of Linux 6.12).
const NAME_MAX: usize = 512;

/// Objects that define functions, by module ("": the kernel itself) and name.
#[derive(Debug, Default)]
pub struct FunctionObjects {
    /// Paths of objects.
    objects: Vec<String>,
    /// Number of the object; `None`: several define a function of that name.
    by_module: HashMap<String, HashMap<String, Option<usize>>>,
}

impl FunctionObjects {
    /// Adds the functions that an object defines.
    pub fn add(&mut self, module: &str, path: &str, elf: &object::File<'_>) {
        let number = self.objects.len();
        self.objects.push(path.to_owned());
        let of_module = self.by_module.entry(module.to_owned()).or_default();
        let defined = elf.symbols().filter(|s| s.kind() == SymbolKind::Text && s.is_definition());
        for name in defined.filter_map(|symbol| symbol.name().ok()).filter(|name| name.len() < NAME_MAX) {
            let object = of_module.entry(name.to_owned()).or_insert(Some(number));
            if *object != Some(number) {
                *object = None;
            }
        }
    }

    /// Path of the object that defines a function, which is named with its module: `veth_open [veth]`.
    pub fn of(&self, function: &str) -> Option<&str> {
        let (name, module) = match function.split_once(" [") {
            Some((name, module)) => (name, module.strip_suffix(']')?),
            None => (function, ""),
        };
        let number = (*self.by_module.get(module)?.get(name)?)?;
        self.objects.get(number).map(String::as_str)
    }
}
