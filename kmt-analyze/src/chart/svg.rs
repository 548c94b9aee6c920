//! Writing SVG: elements in order, every text escaped, as HTML needs it too.
//!
//! All pictures are made with it; the page escapes its texts by the same rules.

use std::fmt::Write;

use crate::render::screen::split_at;

/// Look of all charts, in colours that the colour-blind can tell apart (Okabe and Ito 2008).
const STYLE: &str = "svg{font:12px system-ui,'Segoe UI',sans-serif;background:#fff;color-scheme:light dark}\
text{fill:#1a1a1a}.muted{fill:#555}.title{font-size:16px;font-weight:600}.warn{fill:#8a2c00}\
.grid{stroke:#ddd}.axis{stroke:#888}.line{fill:none;stroke-width:2}.lost{fill:url(#hatch)}.hatch{stroke:#8a2c00}\
.c0{stroke:#0072b2;fill:#0072b2}.c1{stroke:#d55e00;fill:#d55e00}.c2{stroke:#009e73;fill:#009e73}.c3{stroke:#cc79a7;fill:#cc79a7}\
.c4{stroke:#b07c00;fill:#b07c00}.c5{stroke:#3f9bd1;fill:#3f9bd1}.c6{stroke:#6b6b00;fill:#6b6b00}.c7{stroke:#777;fill:#777}\
.f0{fill:#f6c48b}.f1{fill:#f2b0a0}.f2{fill:#f5dc94}.f3{fill:#eab8c8}.f4{fill:#f0cfa4}.frame text{fill:#1a1a1a;font-size:11px}\
.h1{fill:#deebf7}.h2{fill:#c6dbef}.h3{fill:#9ecae1}.h4{fill:#6baed6}.h5{fill:#4292c6}.h6{fill:#2171b5}.h7{fill:#08519c}.h8{fill:#08306b}\
.d0{fill:#2166ac}.d1{fill:#67a9cf}.d2{fill:#d1e5f0}.d3{fill:#eee}.d4{fill:#fddbc7}.d5{fill:#ef8a62}.d6{fill:#d6604d}\
.r0{fill:#7fb7e6}.r1{fill:#f5b27a}.r2{fill:#86cfae}.r3{fill:#e0a8c8}.r4{fill:#e8cf6a}.r5{fill:#b7a6e0}.r6{fill:#c5cf7c}.r7{fill:#bdbdbd}\
.part path{stroke:#fff;stroke-width:.7}.part text{fill:#1a1a1a;font-size:11px}.part:hover path{stroke:#1a1a1a}\
.frame rect{stroke:#fff;stroke-width:.5}.frame.hit rect{fill:#8fd3ff}";

/// The dark look.
pub const DARK: &str = "\
@media(prefers-color-scheme:dark){svg{background:#161616}text{fill:#eee}.muted{fill:#aaa}.warn{fill:#ffb38a}.hatch{stroke:#ffb38a}\
.grid{stroke:#333}.axis{stroke:#777}.c0{stroke:#56b4e9;fill:#56b4e9}.c2{stroke:#29c796;fill:#29c796}.c4{stroke:#e69f00;fill:#e69f00}\
.c6{stroke:#f0e442;fill:#f0e442}.c7{stroke:#aaa;fill:#aaa}.frame rect{stroke:#161616}}";

/// A picture that is being written.
#[derive(Debug, Default)]
pub struct Svg {
    body: String,
}

/// Side of a point that has the text.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// A text at a point of its baseline.
    pub fn text(&mut self, (x, y): (f64, f64), class: &str, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\" text-anchor=\"{anchor}\">{}</text>\n",
            html_text(text)
        ));
    }

    /// A straight line.
    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        self.add(format_args!("<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" class=\"{class}\"/>\n"));
    }

    /// A rectangle, with a text that is shown where the pointer is.
    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str, title: &str) {
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"{class}\"><title>{}</title></rect>\n",
            html_text(title)
        ));
    }

    /// Anything else; texts in it must be escaped.
    pub fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(element);
    }

    /// The whole file. `title` and `about` are for those who do not see it.
    pub fn finish(self, width: f64, height: f64, title: &str, about: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             role=\"img\" aria-labelledby=\"t d\">\n<title id=\"t\">{}</title>\n<desc id=\"d\">{}</desc>\n<style>{STYLE}{DARK}</style>\n\
             <defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
             <path d=\"M0 0V6\" class=\"hatch\"/></pattern></defs>\n{}</svg>\n",
            html_text(title),
            html_text(about),
            self.body
        )
    }
}

/// The text, cut to `columns_max` columns of a terminal, of which a wide letter takes two; a cut text ends with `…`.
pub fn cut(text: &str, columns_max: usize) -> String {
    match split_at(text, columns_max) {
        (whole, "") => whole.to_owned(),
        _ => format!("{}…", split_at(text, columns_max.saturating_sub(1)).0),
    }
}

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
    fn long_texts_are_cut() {
        assert_eq!((cut("abcdef", 6).as_str(), cut("abcdefg", 6).as_str()), ("abcdef", "abcde…"));
    }

    #[test]
    fn wide_letters_are_cut_by_columns() {
        assert_eq!((cut("日本語", 6).as_str(), cut("日本語の名前", 6).as_str()), ("日本語", "日本…"));
        assert_eq!((cut("e\u{301}a", 2).as_str(), cut("日本", 1).as_str()), ("e\u{301}a", "…"));
    }

    #[test]
    fn text_stays_text() {
        assert_eq!(
            html_text("<img src=x onerror='a'>&\"\u{1b}"),
            "&lt;img src=x onerror=&#39;a&#39;&gt;&amp;&quot;\\u{1b}"
        );
        assert_eq!(html_text("? (576 byte objects)"), "? (576 byte objects)");
    }
}
