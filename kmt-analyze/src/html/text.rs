//! Text in HTML and SVG.

use std::fmt::Write as _;

/// Text as content or as the value of an attribute, of HTML and of SVG. Terminals and tables have
/// [`escaped`](kmt_common::text::escaped).
pub fn html_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML 1.0 has no other characters, and none of these may steer what shows the text.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(
            html_text("<img src=x onerror='a'>&\"\u{1b}"),
            "&lt;img src=x onerror=&#39;a&#39;&gt;&amp;&quot;\\u{1b}"
        );
        assert_eq!(html_text("? (576 byte objects)"), "? (576 byte objects)");
    }
}
