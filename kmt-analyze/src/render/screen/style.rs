//! Weight and colour. Colour carries no meaning alone.

use anstyle::{AnsiColor, Style};

/// Kinds of text that stand out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// As the terminal has it.
    Plain,
    Answer,
    /// Headings of tables and columns.
    Heading,
    /// A verdict that needs attention.
    Bad,
    /// A verdict that reassures.
    Good,
    /// Bars and sparklines.
    Bar,
    /// Facts that reduce trust.
    Warning,
    /// Commands, and what is less important.
    Dim,
}

impl Ink {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Answer | Self::Heading => Style::new().bold(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bar => AnsiColor::Cyan.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Dim => Style::new().dimmed(),
        }
    }
}

/// A text in that ink, if there is colour.
pub fn paint(text: &str, ink: Ink, colour: bool) -> String {
    if !colour || ink == Ink::Plain || text.is_empty() {
        return text.to_owned();
    }
    let style = ink.style();
    format!("{style}{text}{style:#}")
}
