//! A bill of materials as CSV: a header with the names of its columns, in any order, and one line for each component.

use tenure::Invalid;

use super::{LINES_MAX, Line};
use crate::code::Refusal;
use crate::component::{Cells, Column, Component};
use crate::csv::{Record, Records};

/// The lines below the header.
pub(super) fn lines(text: &str) -> Result<Vec<Line>, Refusal> {
    let mut records = Records::new(text);
    let Some(header) = records.next().transpose()? else { return Ok(Vec::new()) };
    let columns = columns(&header)?;
    let mut lines = Vec::new();
    for record in records.take(LINES_MAX + 1) {
        let Record { line, fields } = record?;
        let place = format!("line {line}");
        if fields.len() != columns.len() {
            return Err(miscounted(&place, &columns, &fields));
        }
        lines.push((place, cells(&columns, &fields)));
    }
    Ok(lines)
}

fn cells(columns: &[Column], fields: &[String]) -> Cells {
    let mut cells = Cells::default();
    columns.iter().zip(fields).for_each(|(column, field)| cells.set(*column, field));
    cells
}

/// A line of one field too many is often one with a decimal comma: it is, if the line is good with a point instead.
fn miscounted(place: &str, columns: &[Column], fields: &[String]) -> Refusal {
    let (got, wanted) = (fields.len(), columns.len());
    let mut commas = columns.iter().enumerate().filter(|_| got == wanted + 1).filter_map(|(i, column)| {
        let (whole, part) = (&fields[i], &fields[i + 1]);
        let pointed = format!("{whole}.{part}");
        let line = [&fields[..i], std::slice::from_ref(&pointed), &fields[i + 2..]].concat();
        let is_amount = matches!(column, Column::MassG | Column::MassMg | Column::RecycledPercent);
        let is_good = is_amount && Component::new(&cells(columns, &line)).is_ok();
        is_good.then(|| {
            Invalid::new(column.as_str(), format!("{whole},{part}"), format!("a decimal has a point: write {pointed}"))
        })
    });
    match commas.next() {
        Some(comma) => Refusal::invalid(format!("{place}, {comma}")),
        None => {
            let out = "write decimals with a point, and put text with a comma in quotes";
            Refusal::invalid(format!("{place} is refused: it has {got} fields, the header has {wanted}: {out}"))
        }
    }
}

fn columns(header: &Record) -> Result<Vec<Column>, Refusal> {
    let known = Column::ALL.map(Column::as_str).join(", ");
    let mut columns = Vec::new();
    for (i, name) in header.fields.iter().enumerate() {
        let refuse = |why: &str| {
            let invalid = Invalid::new("name", name, why);
            Refusal::invalid(format!("line {}, column {}, {invalid}", header.line, i + 1))
        };
        let name = name.trim();
        if name.contains(';') {
            return Err(refuse("columns are separated by commas, not by semicolons"));
        }
        let column = Column::parse(name).ok_or_else(|| refuse(&format!("a column is one of {known}")))?;
        if columns.contains(&column) {
            return Err(refuse("a column is there once"));
        }
        columns.push(column);
    }
    for required in [Column::Component, Column::Material] {
        if !columns.contains(&required) {
            let name = required.as_str();
            return Err(Refusal::invalid(format!("the header is refused: `{name}` is missing; columns are {known}")));
        }
    }
    match (columns.contains(&Column::MassG), columns.contains(&Column::MassMg)) {
        (true, true) => Err(Refusal::invalid("the header is refused: it has `mass_g` and `mass_mg`; keep one of them")),
        (false, false) => Err(Refusal::invalid("the header is refused: `mass_g` or `mass_mg` is missing")),
        _ => Ok(columns),
    }
}
