//! The label: the text `BPC1|pv=<uuid>|ph=<hash>|pr=<hash>|rh=<hash>` and its QR code as a PNG.
//!
//! | part | |
//! |---|---|
//! | `BPC1` | the version of this format |
//! | `pv` | the passport version, a UUID |
//! | `ph` | the hash of its payload |
//! | `pr` | the root of the proof over its facts |
//! | `rh` | the hash of its receipt, which is what is signed |
//!
//! Hashes are Base32 without padding, 52 letters each, so that every text has [`TEXT_BYTES`] bytes. As bytes at level M
//! (15 % of the code may be lost) that is QR version 10: 57 modules a side, 570 pixels. All labels have this one size.
//! A picture has no border: whoever prints it leaves four modules of white around it, or no reader will find it.

use std::fmt;

use png::{BitDepth, ColorType};
use qrcode::bits::Bits;
use qrcode::{Color, EcLevel, QrCode, Version};
use tenure::Invalid;
use uuid::Uuid;

use crate::code::{Code, Refusal};
use crate::digest::Digest;

/// What the text begins with.
pub const FORMAT: &str = "BPC1";
/// Length of every text, in bytes; what is longer is no label.
pub const TEXT_BYTES: usize = 212;
/// The side of a module, in pixels.
pub const MODULE_PIXELS: usize = 10;
/// The QR version: 57 modules a side, and room for 213 bytes at level M.
const VERSION: Version = Version::Normal(10);
const LEVEL: EcLevel = EcLevel::M;

/// What a label says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// The passport version.
    pub passport_version_id: Uuid,
    /// The hash of its payload.
    pub payload_hash: Digest,
    /// The root over its facts.
    pub proof_root: Digest,
    /// The hash of its receipt.
    pub receipt_hash: Digest,
}

impl Label {
    /// Reads a label's text, strictly: what this reads is written the same, letter by letter.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let shape = "a label is BPC1|pv=<uuid>|ph=<hash>|pr=<hash>|rh=<hash>";
        if text.len() > TEXT_BYTES {
            return Err(Invalid::new("label", text, format!("{shape}, {TEXT_BYTES} bytes; this is {}", text.len())));
        }
        let parts: Vec<&str> = text.split('|').collect();
        let &[FORMAT, pv, ph, pr, rh] = parts.as_slice() else {
            return Err(Invalid::new("label", text, shape));
        };
        let value = |field: &'static str, part: &'static str, text| {
            str::strip_prefix(text, part).ok_or_else(|| Invalid::new(field, text, format!("it begins with {part}")))
        };
        let pv = value("pv", "pv=", pv)?;
        let passport_version_id = pv.parse().ok().filter(|id: &Uuid| id.to_string() == pv);
        let limit = "it is a UUID in small letters, such as 550e8400-e29b-41d4-a716-446655440000";
        Ok(Self {
            passport_version_id: passport_version_id.ok_or_else(|| Invalid::new("pv", pv, limit))?,
            payload_hash: Digest::from_base32("ph", value("ph", "ph=", ph)?)?,
            proof_root: Digest::from_base32("pr", value("pr", "pr=", pr)?)?,
            receipt_hash: Digest::from_base32("rh", value("rh", "rh=", rh)?)?,
        })
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passport_version_id, payload_hash, proof_root, receipt_hash } = self;
        let [ph, pr, rh] = [payload_hash, proof_root, receipt_hash].map(|hash| hash.to_base32());
        write!(f, "{FORMAT}|pv={passport_version_id}|ph={ph}|pr={pr}|rh={rh}")
    }
}

/// The QR code of `text` as a PNG of black and white; `QREncodeFailed` when it is longer than a label.
///
/// The same text has the same picture.
pub fn png(text: &str) -> Result<Vec<u8>, Refusal> {
    let fail = |why: &dyn fmt::Display| {
        let bytes = text.len();
        Refusal::new(Code::QrEncodeFailed, format!("a text of {bytes} bytes cannot be printed: {why}"))
    };
    if text.len() > TEXT_BYTES {
        return Err(fail(&format!("a label has {TEXT_BYTES}, and its code one size")));
    }
    let code = encode(text).map_err(|error| fail(&error))?;
    picture(&code).map_err(|error| fail(&error))
}

/// All of it as bytes: mixed modes would save a version for some texts and not for others.
fn encode(text: &str) -> Result<QrCode, qrcode::types::QrError> {
    let mut bits = Bits::new(VERSION);
    bits.push_byte_data(text.as_bytes())?;
    bits.push_terminator(LEVEL)?;
    QrCode::with_bits(bits, LEVEL)
}

fn picture(code: &QrCode) -> Result<Vec<u8>, png::EncodingError> {
    let (modules, pixels) = (code.width(), code.width() * MODULE_PIXELS);
    // One bit a pixel, 0 is black; each row begins with a byte of its own.
    let mut rows = Vec::with_capacity(pixels * pixels.div_ceil(8));
    for y in 0..modules {
        let mut row = vec![0_u8; pixels.div_ceil(8)];
        for x in (0..pixels).filter(|x| code[(x / MODULE_PIXELS, y)] == Color::Light) {
            row[x / 8] |= 0x80 >> (x % 8);
        }
        (0..MODULE_PIXELS).for_each(|_| rows.extend_from_slice(&row));
    }
    let side = u32::try_from(pixels).unwrap_or(u32::MAX);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side, side);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::One);
    encoder.write_header()?.write_image_data(&rows)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four modules, as the standard wants it.
    const QUIET: usize = 4 * MODULE_PIXELS;

    fn label() -> Label {
        Label {
            passport_version_id: "550e8400-e29b-41d4-a716-446655440000".parse().unwrap(),
            payload_hash: Digest::of(b"payload"),
            proof_root: Digest::of(b"root"),
            receipt_hash: Digest::of(b"receipt"),
        }
    }

    /// A picture as its side and its pixels, true is black.
    fn pixels(png: &[u8]) -> (usize, Vec<bool>) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!((info.color_type, info.bit_depth, info.width), (ColorType::Grayscale, BitDepth::One, info.height));
        let side = info.width as usize;
        let dark = |i: usize| bytes[i / side * info.line_size + i % side / 8] & (0x80 >> (i % side % 8)) == 0;
        (side, (0..side * side).map(dark).collect())
    }

    /// What a reader sees on a label with a white margin around the picture.
    fn scanned(png: &[u8]) -> (rqrr::MetaData, String) {
        let (side, dark) = pixels(png);
        let whole = side + 2 * QUIET;
        let mut image = rqrr::PreparedImage::prepare_from_greyscale(whole, whole, |x, y| {
            let inside = (QUIET..side + QUIET).contains(&x) && (QUIET..side + QUIET).contains(&y);
            if inside && dark[(y - QUIET) * side + x - QUIET] { 0 } else { 255 }
        });
        let grids = image.detect_grids();
        assert_eq!(grids.len(), 1);
        grids[0].decode().unwrap()
    }

    /// Shows: S4.38 S4.39
    #[test]
    fn a_label_has_212_bytes_and_is_read_back() {
        let text = label().to_string();
        assert!(text.starts_with("BPC1|pv=550e8400-e29b-41d4-a716-446655440000|ph="));
        assert!(!text.contains("=|") && !text.ends_with('='), "no padding");
        assert_eq!(text.len(), TEXT_BYTES);
        assert_eq!(Label::parse(&text), Ok(label()));
    }

    /// Shows: S4.40 S4.41 S4.42
    #[test]
    fn the_code_is_version_10_at_level_m_in_570_pixels_without_border_and_can_be_scanned() {
        let text = label().to_string();
        let png = png(&text).unwrap();
        let (side, dark) = pixels(&png);
        assert_eq!(side, 570);
        let corner = |x: usize, y: usize| dark[y * side + x];
        assert!(corner(0, 0) && corner(569, 0) && corner(0, 569), "the finder patterns touch the edges");
        let (meta, read) = scanned(&png);
        assert_eq!(read, text);
        assert_eq!(meta.version.0, 10);
        assert_eq!(meta.ecc_level, 0, "0 is the standard's number of level M");
        assert!(side as f64 / 300.0 * 2.54 >= 2.0, "at 300 dots an inch it is wider than 2 cm");
    }

    /// Shows: S4.56
    #[test]
    fn the_same_label_has_the_same_picture() {
        let text = label().to_string();
        assert_eq!(png(&text).unwrap(), png(&text).unwrap());
    }

    #[test]
    fn every_module_is_ten_pixels_of_one_colour() {
        let code = encode(&label().to_string()).unwrap();
        let (side, dark) = pixels(&picture(&code).unwrap());
        for (i, dark) in dark.into_iter().enumerate() {
            let module = (i % side / MODULE_PIXELS, i / side / MODULE_PIXELS);
            assert_eq!(dark, code[module] == Color::Dark, "pixel {i}");
        }
    }

    /// Shows: S4.44
    #[test]
    fn a_text_that_is_longer_than_a_label_is_a_permanent_failure() {
        assert_eq!(scanned(&png(&"x".repeat(TEXT_BYTES)).unwrap()).1.len(), TEXT_BYTES);
        for bytes in [TEXT_BYTES + 1, 214, 5_000] {
            let refused = png(&"x".repeat(bytes)).unwrap_err();
            assert_eq!(refused.code, Code::QrEncodeFailed);
            assert_eq!(refused.code.class(), tenure::Class::Permanent);
            assert!(refused.message.contains(&format!("{bytes} bytes")), "{refused}");
        }
    }

    #[test]
    fn what_is_not_a_label_is_refused_with_its_part() {
        let text = label().to_string();
        for (from, to, field) in [
            ("BPC1", "BPC2", "label"),
            ("BPC1|", "BPC1||", "label"),
            ("|rh=", "|xx=", "rh"),
            ("|ph=", "|pr=", "ph"),
            ("550e8400-", "550E8400-", "pv"),
            ("550e8400-", "", "pv"),
            ("-", "", "pv"),
        ] {
            assert_eq!(Label::parse(&text.replacen(from, to, 9)).unwrap_err().field, field, "{to}");
        }
        let short = &text[..text.len() - 1];
        assert_eq!(Label::parse(short).unwrap_err().field, "rh");
        assert_eq!(Label::parse(&format!("{text}A")).unwrap_err().field, "label");
        assert_eq!(Label::parse(&text.to_lowercase()).unwrap_err().field, "label");
        assert_eq!(Label::parse("").unwrap_err().field, "label");
    }
}
