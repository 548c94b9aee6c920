//! Pictures as PNG: for documents and messages that take no SVG. Links and tooltips are lost.
//!
//! The SVG of a chart is drawn by resvg with the fonts of this system, in the light colours. A picture without text
//! would mislead, so that it is refused where no font is installed. The feature `png` of the build has this file.

use std::sync::Arc;

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::{Database, FaceInfo};
use resvg::usvg::{Options, Tree};

use super::svg::DARK;
use crate::failure::{Failure, Result};

/// Pixels for each unit of the picture: small labels stay legible.
const SCALE: f32 = 2.0;

/// Families without serifs that systems have, the best first.
const FAMILIES: [&str; 6] = ["Inter", "Noto Sans", "DejaVu Sans", "Liberation Sans", "Arial", "Helvetica"];

/// The picture in its light look, drawn with the fonts of this system.
pub fn encode(svg: &str) -> Result<Vec<u8>> {
    let mut fonts = Database::new();
    fonts.load_system_fonts();
    drawn(svg, fonts)
}

fn drawn(svg: &str, mut fonts: Database) -> Result<Vec<u8>> {
    let family = family(&fonts).ok_or_else(|| {
        Failure::new("no font is installed, and the texts of a PNG need one").hint(
            "install one, such as the package fonts-dejavu-core, or write a file whose name ends with .svg",
        )
    })?;
    fonts.set_sans_serif_family(family);
    encoded(svg, fonts)
}

fn encoded(svg: &str, fonts: Database) -> Result<Vec<u8>> {
    let failed = |what: String| Failure::new(format!("cannot draw the picture: {what}"));
    let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
    let tree = Tree::from_str(&svg.replace(DARK, ""), &options).map_err(|error| failed(error.to_string()))?;
    let size =
        tree.size().to_int_size().scale_by(SCALE).ok_or_else(|| failed("it has no size".to_owned()))?;
    let mut pixels = Pixmap::new(size.width(), size.height())
        .ok_or_else(|| failed(format!("{} × {} pixels", size.width(), size.height())))?;
    pixels.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(error.to_string()))
}

/// The family of the texts; `None`: no font is installed.
fn family(fonts: &Database) -> Option<String> {
    let name = |face: &FaceInfo| face.families.first().map(|(name, _)| name.clone());
    let mut names: Vec<String> = fonts.faces().filter(|face| !face.monospaced).filter_map(name).collect();
    names.extend(fonts.faces().filter_map(name));
    let known = FAMILIES.iter().find(|family| names.iter().any(|name| name == *family));
    known.map(|family| (*family).to_owned()).or_else(|| names.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::super::svg::{Anchor, Svg};
    use super::*;

    fn picture() -> String {
        let mut svg = Svg::default();
        svg.rect((10.0, 10.0), (20.0, 30.0), "c0", "tooltip");
        svg.text((40.0, 40.0), "title", Anchor::Start, "kmalloc");
        svg.finish(120.0, 60.0, "a picture", "of nothing")
    }

    #[test]
    fn without_a_font_it_is_refused() {
        let refused = drawn(&picture(), Database::new()).unwrap_err();
        assert!(refused.to_string().contains("no font is installed"), "{refused}");
    }

    /// Colour of a pixel: red, green, blue.
    fn colour(pixels: &Pixmap, x: u32, y: u32) -> (u8, u8, u8) {
        pixels.pixel(x, y).map(|pixel| (pixel.red(), pixel.green(), pixel.blue())).unwrap()
    }

    #[test]
    fn shapes_are_drawn_on_white() {
        let pixels = Pixmap::decode_png(&encoded(&picture(), Database::new()).unwrap()).unwrap();
        assert_eq!((pixels.width(), pixels.height()), (240, 120));
        assert_eq!((colour(&pixels, 2, 2), colour(&pixels, 40, 50)), ((255, 255, 255), (0, 0x72, 0xb2)));
    }

    /// Needs a font of the system, which a machine may not have.
    #[test]
    fn texts_are_drawn_with_a_font() {
        let mut fonts = Database::new();
        fonts.load_system_fonts();
        let Ok(png) = drawn(&picture(), fonts.clone()) else {
            assert!(fonts.is_empty());
            return;
        };
        let pixels = Pixmap::decode_png(&png).unwrap();
        let places = (80..200).flat_map(|x| (50..84).map(move |y| (x, y)));
        assert!(places.filter(|&(x, y)| colour(&pixels, x, y).0 < 100).count() > 50);
    }
}
