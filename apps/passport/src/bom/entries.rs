//! A bill of materials as JSON: `{"components": [{…}, …]}`.
//!
//! An amount is a whole number or a decimal in quotes. A number with a fraction is refused: it was a float before we saw it,
//! and nobody knows what its writer meant.

use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tenure::Invalid;

use super::{LINES_MAX, Line, check_count};
use crate::code::Refusal;
use crate::component::{Cells, Column};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    components: Entries,
}

/// One more than are taken; what follows is passed over. A document of nothing but `{}` would fill the memory otherwise.
struct Entries(Vec<Entry>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of components")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while entries.len() <= LINES_MAX {
                    let Some(entry) = list.next_element()? else { return Ok(Entries(entries)) };
                    entries.push(entry);
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_seq(InOrder)
    }
}

/// Kept as it came, so that a refusal can name what was written, and no larger than it came.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    component: Option<Box<RawValue>>,
    material: Option<Box<RawValue>>,
    mass_g: Option<Box<RawValue>>,
    mass_mg: Option<Box<RawValue>>,
    recycled_percent: Option<Box<RawValue>>,
    origin_country: Option<Box<RawValue>>,
    hazardous: Option<Box<RawValue>>,
}

/// The entries, in their order.
pub(super) fn lines(text: &str) -> Result<Vec<Line>, Refusal> {
    let out = "a bill of materials is {\"components\": [{\"component\": …, \"material\": …, \"mass_g\": …}, …]}";
    let document: Document = serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text))
        .map_err(|error| Refusal::invalid(format!("the document is refused: {error}; {out}")))?;
    let Entries(entries) = document.components;
    check_count(entries.len())?;
    entries.into_iter().enumerate().map(|(i, entry)| line(format!("components[{i}]"), entry)).collect()
}

fn line(place: String, entry: Entry) -> Result<Line, Refusal> {
    let Entry { component, material, mass_g, mass_mg, recycled_percent, origin_country, hazardous } = entry;
    // In the order of `Column::ALL`.
    let values = [component, material, mass_g, mass_mg, recycled_percent, origin_country, hazardous];
    let mut cells = Cells::default();
    for (column, value) in Column::ALL.into_iter().zip(values) {
        let Some(value) = value else { continue };
        let text = text_of(column, &value).map_err(|invalid| Refusal::invalid(format!("{place}, {invalid}")))?;
        cells.set(column, &text);
    }
    Ok((place, cells))
}

fn text_of(column: Column, raw: &RawValue) -> Result<String, Invalid> {
    use Column::*;
    // A list or an object would be many times as large once it is read, and is never right.
    let value = match raw.get().starts_with(['[', '{']) {
        true => None,
        false => serde_json::from_str(raw.get()).ok(),
    };
    let limit = match (column, &value) {
        (Component | Material | OriginCountry | MassG | MassMg | RecycledPercent, Some(Value::String(text))) => {
            return Ok(text.clone());
        }
        (MassG | MassMg | RecycledPercent, Some(Value::Number(number))) if !number.is_f64() => {
            return Ok(number.to_string());
        }
        (Hazardous, Some(Value::Bool(flag))) => return Ok(flag.to_string()),
        (Component | Material | OriginCountry, _) => "it is text",
        (MassG | MassMg | RecycledPercent, _) => {
            "an amount is a whole number, or a decimal in quotes, such as \"12.5\""
        }
        (Hazardous, _) => "it is true, false or null, without quotes",
    };
    Err(Invalid::new(column.as_str(), value.map_or_else(|| raw.get().to_owned(), |value| value.to_string()), limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_than_is_taken() {
        let list = vec!["{}"; LINES_MAX * 10].join(",");
        let document: Document = serde_json::from_str(&format!("{{\"components\":[{list}]}}")).unwrap();
        assert_eq!(document.components.0.len(), LINES_MAX + 1);
    }
}
