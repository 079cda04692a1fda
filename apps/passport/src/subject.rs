//! [`Subject`]: what rules may ask about a battery, by path, each with its type.
//!
//! | path | type | |
//! |---|---|---|
//! | `components` | int | lines of the bill of materials |
//! | `mass_total_mg` | int | the mass of all of them |
//! | `recycled_bp` | int | the recycled share of that mass, in basis points, rounded down; an unknown share counts as none |
//! | `origins_unknown` | int | lines without an origin |
//! | `hazardous` | bool | whether any line is |
//! | `material.NAME.mass_mg` | int | the mass of one substance; 0 where there is none |
//! | `material.NAME.recycled_bp` | int | its recycled share; not applicable where there is none of it |
//! | `battery.serial` | text | |
//! | `battery.model` | text | |
//! | `battery.category` | text | |
//! | `battery.capacity_ah` | decimal | the rated capacity |
//! | `battery.manufactured_on` | date | |

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tenure::Invalid;
use tenure::core::dedupe::Day;

use crate::component::{Component, NAME_CHARS_MAX};
use crate::decimal::Decimal;
use crate::value::{Type, Value};

/// What is known about a battery beside its bill of materials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Battery {
    /// Which one, in its maker's words: 1 to 100 characters.
    pub serial: String,
    /// Which model: 1 to 100 characters.
    pub model: String,
    /// Which category, such as `EV`, `LMT`, `industrial`: 1 to 100 characters.
    pub category: String,
    /// Rated capacity in ampere-hours, an exact decimal above zero.
    pub capacity_ah: String,
    /// The day it was made, `YYYY-MM-DD`.
    pub manufactured_on: String,
}

/// Everything that can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    values: BTreeMap<String, Value>,
}

/// The fixed paths.
const PATHS: [(&str, Type); 10] = [
    ("components", Type::Int),
    ("mass_total_mg", Type::Int),
    ("recycled_bp", Type::Int),
    ("origins_unknown", Type::Int),
    ("hazardous", Type::Bool),
    ("battery.serial", Type::Text),
    ("battery.model", Type::Text),
    ("battery.category", Type::Text),
    ("battery.capacity_ah", Type::Decimal),
    ("battery.manufactured_on", Type::Date),
];
const MATERIAL: &str = "material.";
const MASS: &str = ".mass_mg";
const RECYCLED: &str = ".recycled_bp";

/// The type of what stands at `path`, if there can be anything.
pub fn type_of(path: &str) -> Option<Type> {
    let fixed = PATHS.iter().find(|(known, _)| *known == path).map(|(_, kind)| *kind);
    let named = path.strip_prefix(MATERIAL).and_then(|rest| rest.strip_suffix(MASS).or(rest.strip_suffix(RECYCLED)));
    // Materials are in small letters: a rule about `Nickel` would never find any.
    let is_name = |name: &str| !name.is_empty() && name.to_lowercase() == name;
    fixed.or(named.filter(|name| is_name(name)).map(|_| Type::Int))
}

/// Every path, for the sentence that one is unknown.
pub fn paths() -> String {
    let fixed: Vec<&str> = PATHS.iter().map(|(path, _)| *path).collect();
    format!("{}, {MATERIAL}NAME{MASS}, {MATERIAL}NAME{RECYCLED} with the name in small letters", fixed.join(", "))
}

impl Subject {
    /// What can be asked about a battery of these components.
    pub fn new(battery: &Battery, components: &[Component]) -> Result<Self, Invalid> {
        battery.check()?;
        let mut materials: BTreeMap<&str, Mass> = BTreeMap::new();
        let mut total = Mass::default();
        for component in components {
            total.add(component);
            materials.entry(&component.material).or_default().add(component);
        }
        let count = |wanted: fn(&&Component) -> bool| Value::Int(components.iter().filter(wanted).count() as i64);
        let mut values = BTreeMap::from([
            ("components", count(|_| true)),
            ("mass_total_mg", total.mass()),
            ("recycled_bp", total.recycled()),
            ("origins_unknown", count(|component| component.origin_country.is_none())),
            ("hazardous", Value::Bool(components.iter().any(|component| component.hazardous == Some(true)))),
            ("battery.serial", Value::Text(battery.serial.clone())),
            ("battery.model", Value::Text(battery.model.clone())),
            ("battery.category", Value::Text(battery.category.clone())),
            ("battery.capacity_ah", Value::Decimal(battery.capacity()?)),
            ("battery.manufactured_on", Value::Date(battery.day()?)),
        ])
        .into_iter()
        .map(|(path, value)| (path.to_owned(), value))
        .collect::<BTreeMap<_, _>>();
        for (name, mass) in materials {
            values.insert(format!("{MATERIAL}{name}{MASS}"), mass.mass());
            values.insert(format!("{MATERIAL}{name}{RECYCLED}"), mass.recycled());
        }
        Ok(Self { values })
    }

    /// What stands at `path`; `None` where nothing is applicable.
    pub fn get(&self, path: &str) -> Option<Value> {
        let absent = || (path.starts_with(MATERIAL) && path.ends_with(MASS)).then_some(Value::Int(0));
        self.values.get(path).cloned().or_else(absent)
    }
}

impl Battery {
    /// Checks what came from outside. Its capacity is kept in one spelling: `94.50` is `94.5`.
    pub fn checked(self) -> Result<Self, Invalid> {
        self.check()?;
        Ok(Self { capacity_ah: self.capacity()?.to_string(), ..self })
    }

    fn check(&self) -> Result<(), Invalid> {
        let names =
            [("battery.serial", &self.serial), ("battery.model", &self.model), ("battery.category", &self.category)];
        for (field, text) in names {
            let chars = text.chars().count();
            if chars == 0 || chars > NAME_CHARS_MAX || text.chars().any(char::is_control) {
                let limit = format!("it is 1 to {NAME_CHARS_MAX} characters on one line");
                return Err(Invalid::new(field, text, limit));
            }
        }
        self.capacity().and(self.day()).map(|_| ())
    }

    fn capacity(&self) -> Result<Decimal, Invalid> {
        let (field, text) = ("battery.capacity_ah", &self.capacity_ah);
        let capacity = Decimal::parse(field, text)?;
        match capacity.is_positive() {
            true => Ok(capacity),
            false => Err(Invalid::new(field, text, "a battery holds more than nothing, such as 94.5")),
        }
    }

    fn day(&self) -> Result<Day, Invalid> {
        let refuse = |_| Invalid::new("battery.manufactured_on", &self.manufactured_on, "a day is such as 2026-11-15");
        Day::parse(&self.manufactured_on).map_err(refuse)
    }
}

/// A mass and how much of it was recycled. The longest bill of the heaviest lines is 2·10^14 mg, times basis points 2·10^18:
/// a `u128` holds the sum of any.
#[derive(Default)]
struct Mass {
    mg: u128,
    recycled_mg_bp: u128,
}

impl Mass {
    fn add(&mut self, component: &Component) {
        self.mg += u128::from(component.mass_mg);
        self.recycled_mg_bp += u128::from(component.mass_mg) * u128::from(component.recycled_bp.unwrap_or(0));
    }

    fn mass(&self) -> Value {
        Value::Int(i64::try_from(self.mg).unwrap_or(i64::MAX))
    }

    fn recycled(&self) -> Value {
        let share = self.recycled_mg_bp.checked_div(self.mg).unwrap_or(0);
        Value::Int(i64::try_from(share).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
impl Battery {
    /// For unit tests.
    pub(crate) fn example() -> Self {
        let text = str::to_owned;
        Self {
            serial: text("SN-1"),
            model: text("P-90"),
            category: text("EV"),
            capacity_ah: text("94.50"),
            manufactured_on: text("2026-11-15"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bom::{Format, components};

    fn subject() -> Subject {
        let bill = "component,material,mass_g,recycled_percent,origin_country,hazardous\n\
                    cathode,nickel,2,16,FI,\ncathode,cobalt,1,,,true\nanode,nickel,1,15.99,FI,false\n";
        Subject::new(&Battery::example(), &components(Format::Csv, bill.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn sums_and_shares_are_exact() {
        for (path, value) in [
            ("components", 3),
            ("mass_total_mg", 4_000),
            ("recycled_bp", 1_199), // (2 · 1600 + 1 · 1599) / 4 = 1199.75
            ("origins_unknown", 1),
            ("material.nickel.mass_mg", 3_000),
            ("material.nickel.recycled_bp", 1_599), // 1599.66…
            ("material.cobalt.recycled_bp", 0),
            ("material.lithium.mass_mg", 0),
        ] {
            assert_eq!(subject().get(path), Some(Value::Int(value)), "{path}");
        }
        assert_eq!(subject().get("hazardous"), Some(Value::Bool(true)));
        assert_eq!(subject().get("material.lithium.recycled_bp"), None, "there is none of it to have a share");
    }

    #[test]
    fn every_value_has_the_type_of_its_path() {
        for (path, value) in &subject().values {
            assert_eq!(type_of(path), Some(value.kind()), "{path}");
        }
        for (path, kind) in PATHS {
            assert_eq!(subject().get(path).map(|value| value.kind()), Some(kind), "{path}");
        }
    }

    #[test]
    fn other_paths_have_no_type() {
        for path in
            ["", "mass", "material.nickel", "material..mass_mg", "material.Nickel.mass_mg", "battery", "Components"]
        {
            assert_eq!(type_of(path), None, "{path}");
        }
        assert!(paths().contains("mass_total_mg") && paths().contains("material.NAME.mass_mg"));
    }

    #[test]
    fn a_malformed_battery_is_refused_with_its_field() {
        type Change = fn(&mut Battery);
        let changes: [(&str, Change); 8] = [
            ("battery.serial", |battery| battery.serial.clear()),
            ("battery.model", |battery| battery.model.clear()),
            ("battery.model", |battery| battery.model.push('\n')),
            ("battery.category", |battery| battery.category = "x".repeat(101)),
            ("battery.capacity_ah", |battery| battery.capacity_ah = "94,5".to_owned()),
            ("battery.capacity_ah", |battery| battery.capacity_ah = "0.000".to_owned()),
            ("battery.capacity_ah", |battery| battery.capacity_ah = "-94.5".to_owned()),
            ("battery.manufactured_on", |battery| battery.manufactured_on = "15.11.2026".to_owned()),
        ];
        for (field, change) in changes {
            let mut other = Battery::example();
            change(&mut other);
            assert_eq!(other.check().unwrap_err().field, field, "{other:?}");
            assert!(Subject::new(&other, &[]).is_err());
        }
    }

    #[test]
    fn a_capacity_has_one_spelling() {
        let spelled = |text: &str| Battery { capacity_ah: text.to_owned(), ..Battery::example() }.checked().unwrap();
        assert_eq!(spelled("094.50"), spelled("94.5"));
        assert_eq!(spelled("94.50").capacity_ah, "94.5");
    }
}
