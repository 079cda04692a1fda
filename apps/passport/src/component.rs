//! [`Component`]: one line of a bill of materials, checked.
//!
//! | column | | |
//! |---|---|---|
//! | `component` | the part | 1 to 100 characters |
//! | `material` | the substance it is made of, one a line | 1 to 100 characters without `/`; lower-cased |
//! | `mass_g` or `mass_mg` | how much of it | grams with up to three decimals, or whole milligrams; up to 10 t |
//! | `recycled_percent` | how much of that was recycled; may be empty | 0 to 100 with up to two decimals |
//! | `origin_country` | where it comes from; may be empty | two capital letters of ISO 3166-1 |
//! | `hazardous` | whether it is; may be empty | `true` or `false` |
//!
//! Amounts are kept as whole numbers: milligrams, and hundredths of a percent (basis points).

use serde::{Deserialize, Serialize};
use tenure::Invalid;

use crate::country::is_country;
use crate::decimal::units;

/// Longest name of a part or a substance, in characters.
pub const NAME_CHARS_MAX: usize = 100;
/// Heaviest line: 10 t. The sum of all lines of the longest bill stays below 2^53.
pub const MASS_MG_MAX: u64 = 10_000_000_000;
/// All of it, in basis points.
pub const RECYCLED_BP_MAX: u16 = 10_000;

/// What is said about one substance in one part. This is the payload of its fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// The part.
    pub component: String,
    /// The substance, in small letters.
    pub material: String,
    /// Its mass in milligrams.
    pub mass_mg: u64,
    /// Its recycled share in basis points, where it is known.
    pub recycled_bp: Option<u16>,
    /// Its origin, where it is known.
    pub origin_country: Option<String>,
    /// Whether it is hazardous, where it is known.
    pub hazardous: Option<bool>,
}

/// A column of a bill of materials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The part.
    Component,
    /// The substance.
    Material,
    /// Its mass in grams.
    MassG,
    /// Its mass in milligrams.
    MassMg,
    /// Its recycled share.
    RecycledPercent,
    /// Its origin.
    OriginCountry,
    /// Whether it is hazardous.
    Hazardous,
}

/// What stands in each column of one line, in the order of [`Column::ALL`]; white space around it and empty text are
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cells([Option<String>; Column::ALL.len()]);

impl Column {
    /// Every column.
    pub const ALL: [Self; 7] = [
        Self::Component,
        Self::Material,
        Self::MassG,
        Self::MassMg,
        Self::RecycledPercent,
        Self::OriginCountry,
        Self::Hazardous,
    ];

    /// Its name in the header.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Component => "component",
            Self::Material => "material",
            Self::MassG => "mass_g",
            Self::MassMg => "mass_mg",
            Self::RecycledPercent => "recycled_percent",
            Self::OriginCountry => "origin_country",
            Self::Hazardous => "hazardous",
        }
    }

    /// The column of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.as_str() == name)
    }
}

impl Cells {
    /// Puts `text` into `column`.
    pub fn set(&mut self, column: Column, text: &str) {
        let text = text.trim();
        self.0[column as usize] = (!text.is_empty()).then(|| text.to_owned());
    }

    fn get(&self, column: Column) -> Option<&str> {
        self.0[column as usize].as_deref()
    }

    fn required(&self, column: Column) -> Result<&str, Invalid> {
        self.get(column).ok_or_else(|| Invalid::new(column.as_str(), "", "every line has one"))
    }
}

impl Component {
    /// Checks one line.
    pub fn new(cells: &Cells) -> Result<Self, Invalid> {
        Ok(Self {
            component: name(Column::Component, cells)?,
            material: material(cells)?,
            mass_mg: mass_mg(cells)?,
            recycled_bp: cells.get(Column::RecycledPercent).map(recycled_bp).transpose()?,
            origin_country: cells.get(Column::OriginCountry).map(origin_country).transpose()?,
            hazardous: cells.get(Column::Hazardous).map(hazardous).transpose()?,
        })
    }

    /// What it is called among facts: `component/material`. No material has a slash, so no two lines share it.
    pub fn key(&self) -> String {
        format!("{}/{}", self.component, self.material)
    }
}

fn name(column: Column, cells: &Cells) -> Result<String, Invalid> {
    let text = cells.required(column)?;
    if text.chars().count() > NAME_CHARS_MAX || text.chars().any(char::is_control) {
        let limit = format!("a name is 1 to {NAME_CHARS_MAX} characters on one line");
        return Err(Invalid::new(column.as_str(), text, limit));
    }
    Ok(text.to_owned())
}

fn material(cells: &Cells) -> Result<String, Invalid> {
    let text = name(Column::Material, cells)?;
    if text.contains('/') {
        return Err(Invalid::new("material", text, "it is one substance without a slash: give each its own line"));
    }
    Ok(text.to_lowercase())
}

fn mass_mg(cells: &Cells) -> Result<u64, Invalid> {
    let (column, text, decimals, limit) = match (cells.get(Column::MassG), cells.get(Column::MassMg)) {
        (Some(_), Some(mg)) => return Err(Invalid::new("mass_mg", mg, "a line has mass_g or mass_mg, not both")),
        (None, Some(mg)) => (Column::MassMg, mg, 0, "a mass is whole milligrams from 1 to 10000000000, such as 12500"),
        (g, None) => {
            let limit = "a mass is grams from 0.001 to 10000000 with at most three decimals and a point, such as 12.5";
            (Column::MassG, g.unwrap_or_default(), 3, limit)
        }
    };
    let mass = units(text, decimals).filter(|mass| (1..=MASS_MG_MAX).contains(mass));
    mass.ok_or_else(|| Invalid::new(column.as_str(), text, limit))
}

fn recycled_bp(text: &str) -> Result<u16, Invalid> {
    let share = units(text, 2).and_then(|share| u16::try_from(share).ok()).filter(|share| *share <= RECYCLED_BP_MAX);
    let limit = "a share is 0 to 100 percent with at most two decimals and no percent sign, such as 16 or 12.25";
    share.ok_or_else(|| Invalid::new("recycled_percent", text, limit))
}

fn origin_country(text: &str) -> Result<String, Invalid> {
    if is_country(text) {
        return Ok(text.to_owned());
    }
    Err(Invalid::new("origin_country", text, "a country is two capital letters of ISO 3166-1, such as FI"))
}

fn hazardous(text: &str) -> Result<bool, Invalid> {
    text.parse().map_err(|_| Invalid::new("hazardous", text, "it is true or false, or empty where nobody knows"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(cells: &[(Column, &str)]) -> Result<Component, Invalid> {
        let mut line = Cells::default();
        for (column, text) in [(Column::Component, "cathode"), (Column::Material, "nickel")].iter().chain(cells) {
            line.set(*column, text);
        }
        Component::new(&line)
    }

    #[test]
    fn a_line_is_kept_in_whole_numbers() {
        use Column::{Hazardous, MassG, MassMg, Material, OriginCountry, RecycledPercent};
        let full = [(MassG, "12.5"), (RecycledPercent, "16.25"), (OriginCountry, "FI"), (Hazardous, "true")];
        let component = Component {
            component: "cathode".to_owned(),
            material: "nickel".to_owned(),
            mass_mg: 12_500,
            recycled_bp: Some(1_625),
            origin_country: Some("FI".to_owned()),
            hazardous: Some(true),
        };
        assert_eq!(line(&full).unwrap(), component);
        assert_eq!(component.key(), "cathode/nickel");
        let bare = line(&[(MassMg, "12500"), (RecycledPercent, "  "), (Material, " Nickel ")]).unwrap();
        assert_eq!(bare, Component { recycled_bp: None, origin_country: None, hazardous: None, ..component });
    }

    #[test]
    fn limits_are_met_exactly() {
        use Column::*;
        for (column, text) in [
            (MassG, "0.001"),
            (MassG, "10000000"),
            (MassG, "10000000.000"),
            (MassMg, "10000000000"),
            (RecycledPercent, "0"),
            (RecycledPercent, "100.00"),
        ] {
            let mass = if column == RecycledPercent { (MassG, "1") } else { (column, text) };
            assert!(line(&[mass, (column, text)]).is_ok(), "{column:?} {text}");
        }
    }

    #[test]
    fn a_refusal_names_column_value_and_the_way_out() {
        use Column::*;
        let long = "x".repeat(NAME_CHARS_MAX + 1);
        for (column, text, out) in [
            (Component, "", "every line has one"),
            (Component, &long, "1 to 100 characters"),
            (Component, "two\nlines", "on one line"),
            (Material, "Al/Cu", "each its own line"),
            (MassG, "", "such as 12.5"),
            (MassG, "12,5", "a point"),
            (MassG, "0", "from 0.001"),
            (MassG, "0.0001", "three decimals"),
            (MassG, "10000000.001", "to 10000000"),
            (MassG, "1e3", "such as 12.5"),
            (MassG, "-1", "from 0.001"),
            (RecycledPercent, "16%", "no percent sign"),
            (RecycledPercent, "100.01", "0 to 100"),
            (RecycledPercent, "1.234", "two decimals"),
            (OriginCountry, "fi", "two capital letters"),
            (OriginCountry, "XX", "ISO 3166-1"),
            (Hazardous, "yes", "true or false"),
        ] {
            let refused = line(&[(MassG, "1"), (column, text)]).unwrap_err();
            assert_eq!(refused.field, column.as_str(), "{refused}");
            assert!(refused.limit.contains(out), "{refused}");
        }
        assert_eq!(line(&[(MassMg, "1.5")]).unwrap_err().field, "mass_mg");
        assert!(line(&[(MassG, "1"), (MassMg, "1")]).unwrap_err().limit.contains("not both"));
    }
}
