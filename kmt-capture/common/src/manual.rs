//! The command `man` of both programs: manual pages of the program and of its commands.

use clap::Command;

/// The program with a command `man COMMAND` that accepts only names of its commands.
pub fn with_names(program: Command) -> Command {
    let names: Vec<String> = program.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let parser = move |text: &str| match names.iter().any(|name| name == text) {
        true => Ok(text.to_owned()),
        false => Err(format!("not a command; commands are {}", names.join(", "))),
    };
    program.mut_subcommand("man", |man| man.mut_arg("command", |arg| arg.value_parser(parser)))
}

/// Subject of a manual page: the program, or one of its commands.
pub fn subject(mut program: Command, command: Option<&str>) -> Command {
    program.build();
    let found = command.and_then(|name| program.find_subcommand(name)).cloned();
    found.unwrap_or(program)
}
