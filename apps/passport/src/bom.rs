//! The bill of materials: from a document of CSV or JSON to components and their facts.
//!
//! CSV has a header with the names of its columns, in any order; JSON is `{"components": [{…}, …]}` with the same names,
//! amounts in text or as whole numbers. What the columns hold is told in [`component`](crate::component).
//!
//! ```text
//! component,material,mass_g,recycled_percent,origin_country,hazardous
//! cathode,nickel,38400.5,16,FI,false
//! ```
//!
//! A refusal names the line (in JSON the entry), the column, the value and the way out. All or nothing: no fact is kept
//! of a document that is refused.

mod entries;
mod table;

use std::collections::HashMap;

use tenure::Invalid;

use crate::canonical::Canonical;
use crate::code::{Code, Refusal};
use crate::component::{Cells, Component};
use crate::fact::Fact;

/// Largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 4 << 20;
/// Most lines of one document.
pub const LINES_MAX: usize = 20_000;
/// The type of the facts of a bill of materials.
pub const FACT_TYPE: &str = "bom.component";
/// The shape of their payloads, [`Component`].
pub const SCHEMA_VERSION: u32 = 1;

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// JSON.
    Json,
}

impl Format {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }

    /// The format of this word.
    pub fn parse(word: &str) -> Result<Self, Invalid> {
        let found = [Self::Csv, Self::Json].into_iter().find(|format| format.as_str() == word);
        found.ok_or_else(|| Invalid::new("format", word, "a bill of materials is csv or json"))
    }
}

/// The facts of a document, in its order.
pub fn facts(format: Format, document: &[u8]) -> Result<Vec<Fact>, Refusal> {
    components(format, document)?.iter().map(fact).collect()
}

/// The components of a document, in its order.
pub fn components(format: Format, document: &[u8]) -> Result<Vec<Component>, Refusal> {
    if document.len() > DOCUMENT_BYTES_MAX {
        let bytes = document.len();
        let message =
            format!("a document of {bytes} bytes is refused: at most {DOCUMENT_BYTES_MAX} are read, split it");
        return Err(Refusal::new(Code::PayloadTooLarge, message));
    }
    let text = std::str::from_utf8(document).map_err(|error| {
        let line = 1 + document[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        Refusal::invalid(format!("line {line} is refused: it is not UTF-8; save the document as UTF-8"))
    })?;
    let lines = match format {
        Format::Csv => table::lines(text)?,
        Format::Json => entries::lines(text)?,
    };
    checked(&lines)
}

/// Where a line stands, for people, and what stands on it.
type Line = (String, Cells);

fn checked(lines: &[Line]) -> Result<Vec<Component>, Refusal> {
    if lines.is_empty() {
        return Err(Refusal::invalid("the document is refused: it has no component; give at least one line"));
    }
    check_count(lines.len())?;
    let mut components = Vec::with_capacity(lines.len());
    let mut seen: HashMap<String, &str> = HashMap::with_capacity(lines.len());
    for (place, cells) in lines {
        let component = Component::new(cells).map_err(|invalid| Refusal::invalid(format!("{place}, {invalid}")))?;
        if let Some(first) = seen.insert(component.key(), place) {
            let Component { component, material, .. } = component;
            let out = "add the masses up on one line, or name the parts apart";
            let message = format!("{place} is refused: {first} has `{material}` of `{component}` already: {out}");
            return Err(Refusal::invalid(message));
        }
        components.push(component);
    }
    Ok(components)
}

/// Refuses what was not read to its end.
fn check_count(lines: usize) -> Result<(), Refusal> {
    if lines <= LINES_MAX {
        return Ok(());
    }
    let message = format!("a document of more than {LINES_MAX} lines is refused: split it");
    Err(Refusal::new(Code::PayloadTooLarge, message))
}

fn fact(component: &Component) -> Result<Fact, Refusal> {
    Ok(Fact {
        fact_type: FACT_TYPE.to_owned(),
        fact_key: component.key(),
        schema_version: SCHEMA_VERSION,
        payload: Canonical::of("component", component)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "\
component,material,mass_g,recycled_percent,origin_country,hazardous
cathode,nickel,38400.5,16,FI,false
cathode,Cobalt,4800,,CD,true
\"cell, outer\",aluminium,12000.125,85.5,,
";

    const JSON: &str = r#"{"components": [
        {"component": "cathode", "material": "nickel", "mass_g": "38400.5", "recycled_percent": 16,
         "origin_country": "FI", "hazardous": false},
        {"component": "cathode", "material": "cobalt", "mass_mg": 4800000, "origin_country": "CD", "hazardous": true},
        {"component": "cell, outer", "material": "aluminium", "mass_g": "12000.125", "recycled_percent": "85.50",
         "origin_country": null}]}"#;

    fn refused(format: Format, document: &str) -> Refusal {
        facts(format, document.as_bytes()).unwrap_err()
    }

    #[test]
    fn both_formats_give_the_same_facts() {
        let facts_csv = facts(Format::Csv, CSV.as_bytes()).unwrap();
        let payload = r#"{"component":"cathode","hazardous":false,"mass_mg":38400500,"material":"nickel","origin_country":"FI","recycled_bp":1600}"#;
        assert_eq!(facts_csv.len(), 3);
        assert_eq!(facts_csv[0].payload.as_str(), payload);
        assert_eq!((facts_csv[0].fact_type.as_str(), facts_csv[0].schema_version), ("bom.component", 1));
        let keys: Vec<&str> = facts_csv.iter().map(|fact| fact.fact_key.as_str()).collect();
        assert_eq!(keys, ["cathode/nickel", "cathode/cobalt", "cell, outer/aluminium"]);
        assert_eq!(facts(Format::Json, JSON.as_bytes()).unwrap(), facts_csv);
        let windows = format!("\u{feff}{}", CSV.replace('\n', "\r\n"));
        assert_eq!(facts(Format::Csv, windows.as_bytes()).unwrap(), facts_csv);
    }

    /// Shows: S4.28
    #[test]
    fn a_csv_refusal_names_line_column_value_and_the_way_out() {
        for (from, to, message) in [
            ("38400.5", "38400\u{b7}5", "line 2, mass_g `38400\u{b7}5` is refused: a mass is grams"),
            (",CD,", ",Congo,", "line 3, origin_country `Congo` is refused: a country is two capital letters"),
            ("hazardous", "toxic", "line 1, column 6, name `toxic` is refused: a column is one of component, material"),
            ("hazardous", "mass_g", "line 1, column 6, name `mass_g` is refused: a column is there once"),
            ("hazardous", "mass_mg", "`mass_g` and `mass_mg`; keep one"),
            ("mass_g,", "hazardous,", "line 1, column 6, name `hazardous`"),
            ("component,material,mass_g", "component;material;mass_g", "not by semicolons"),
            ("\"cell, outer\"", "cell, outer", "line 4 is refused: it has 7 fields, the header has 6: write"),
            ("38400.5", "38400,5", "line 2, mass_g `38400,5` is refused: a decimal has a point: write 38400.5"),
            (",16,", ",16,25,", "line 2, recycled_percent `16,25` is refused: a decimal has a point: write 16.25"),
            ("38400.5,16,", "38400,5,16,25,", "line 2 is refused: it has 8 fields, the header has 6: write decimals"),
            ("\"cell, outer\"", "\"cell, outer", "line 4, column 1 is refused: its opening quote is never closed"),
            ("Cobalt", "NICKEL", "line 3 is refused: line 2 has `nickel` of `cathode` already"),
        ] {
            let refusal = refused(Format::Csv, &CSV.replace(from, to));
            assert_eq!(refusal.code, Code::ValidationError);
            assert!(refusal.message.contains(message), "{refusal}");
        }
        assert!(refused(Format::Csv, "component,mass_g\na,1\n").message.contains("`material` is missing"));
        assert!(refused(Format::Csv, "component,material\na,b\n").message.contains("`mass_g` or `mass_mg` is missing"));
    }

    #[test]
    fn a_json_refusal_names_entry_member_value_and_the_way_out() {
        for (from, to, message) in [
            ("\"38400.5\"", "38400.5", "components[0], mass_g `38400.5` is refused: an amount is a whole number"),
            ("4800000", "48000001e2", "components[1], mass_mg `4800000100.0`"),
            ("true", "\"true\"", "components[1], hazardous `\"true\"` is refused: it is true, false or null"),
            ("\"CD\"", "7", "components[1], origin_country `7` is refused: it is text"),
            ("\"CD\"", "[[1]]", "components[1], origin_country `[[1]]` is refused: it is text"),
            ("4800000", "1e999", "components[1], mass_mg `1e999` is refused: an amount is a whole number"),
            ("\"85.50\"", "\"855\"", "components[2], recycled_percent `855`"),
            ("\"hazardous\": false", "\"toxic\": false", "unknown field `toxic`"),
            ("\"hazardous\": false", "\"mass_g\": \"1\"", "duplicate field `mass_g`"),
            ("\"mass_mg\": 4800000,", "", "components[1], mass_g `` is refused"),
            ("]}", "], \"more\": 1}", "unknown field `more`"),
            ("]}", "", "a bill of materials is {\"components\""),
        ] {
            let refusal = refused(Format::Json, &JSON.replace(from, to));
            assert_eq!(refusal.code, Code::ValidationError);
            assert!(refusal.message.contains(message), "{refusal}");
        }
    }

    #[test]
    fn a_document_without_components_is_refused() {
        for (format, document) in
            [(Format::Csv, ""), (Format::Csv, "component,material,mass_g\n\n"), (Format::Json, "{\"components\": []}")]
        {
            assert!(refused(format, document).message.contains("no component"), "{document:?}");
        }
    }

    #[test]
    fn a_document_that_is_not_utf_8_is_refused_with_its_line() {
        let refusal = facts(Format::Csv, b"component,material,mass_g\na,b,1\nk\xe4fig,b,1\n").unwrap_err();
        assert_eq!(refusal, Refusal::invalid("line 3 is refused: it is not UTF-8; save the document as UTF-8"));
    }

    /// Shows: S4.30
    #[test]
    fn documents_have_limits() {
        let lines = |count| {
            let lines: String = (0..count).map(|i| format!("part {i},nickel,1\n")).collect();
            format!("component,material,mass_g\n{lines}")
        };
        assert_eq!(facts(Format::Csv, lines(LINES_MAX).as_bytes()).unwrap().len(), LINES_MAX);
        assert_eq!(refused(Format::Csv, &lines(LINES_MAX + 1)).code, Code::PayloadTooLarge);
        // As many as fit into a document: each would be some hundred bytes if it were kept.
        let entries = |count: usize| format!("{{\"components\":[{}]}}", vec!["{}"; count].join(","));
        let most = (DOCUMENT_BYTES_MAX - entries(0).len()) / 3;
        assert_eq!(refused(Format::Json, &entries(most)).code, Code::PayloadTooLarge);
        let cut_off = entries(most).replace("]}", "");
        assert_eq!(refused(Format::Json, &cut_off).code, Code::ValidationError, "it is read to its end all the same");
        assert_eq!(refused(Format::Json, &entries(LINES_MAX)).code, Code::ValidationError);
        assert_eq!(refused(Format::Json, &" ".repeat(DOCUMENT_BYTES_MAX + 1)).code, Code::PayloadTooLarge);
        assert_eq!(refused(Format::Json, &" ".repeat(DOCUMENT_BYTES_MAX)).code, Code::ValidationError);
        assert!(Format::parse("xml").is_err() && Format::parse("csv") == Ok(Format::Csv));
    }
}
