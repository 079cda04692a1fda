//! Aligned columns. Text that came from elsewhere cannot move the cursor: control characters are escaped.

use crate::paint::Paint;

/// Space between columns.
const GAP: &str = "  ";
/// A column that would be shorter than this may as well go on in the next line.
const LAST_CHARS_MIN: usize = 12;

/// Rows under a heading.
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    /// Columns are at least so wide, and shown even when empty.
    widths_min: Vec<usize>,
}

/// One piece of text in a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    paint: Paint,
    right: bool,
}

impl Table {
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new(), widths_min: Vec::new() }
    }

    /// A table of names and values, without a heading.
    pub(crate) fn pairs<V: Into<Cell>>(pairs: impl IntoIterator<Item = (&'static str, V)>) -> Self {
        let rows = pairs.into_iter().map(|(name, value)| vec![Cell::dim(name), value.into()]).collect();
        Self { head: Vec::new(), rows, widths_min: Vec::new() }
    }

    /// Rows that follow others, as in a tail: each batch is a table, and all of them line up.
    pub(crate) fn with_widths(head: &[&'static str], widths_min: &[usize]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new(), widths_min: widths_min.to_vec() }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Shortens the last column to what is left of a terminal's `columns`, unless that is too little to read.
    pub(crate) fn shorten_last(&mut self, columns: usize) {
        let Some(last) = self.head.len().checked_sub(1) else { return };
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(Cell::width);
            let least = self.widths_min.get(column).copied().unwrap_or(0);
            match cells.max().unwrap_or(0).max(least) {
                // Left out, with its heading.
                0 => 0,
                width => width.max(self.head[column].len()) + GAP.len(),
            }
        };
        let left = columns.saturating_sub((0..last).map(widest).sum());
        if left >= LAST_CHARS_MIN {
            for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(last)) {
                cell.text = shorten(&cell.text, left);
            }
        }
    }

    pub(crate) fn render(&self, color: bool) -> String {
        let head = self.head.iter().enumerate().map(|(column, text)| {
            let right = self.rows.iter().any(|row| row.get(column).is_some_and(|cell| cell.right));
            Cell { text: (*text).to_owned(), paint: Paint::Bold, right }
        });
        let head: Vec<Cell> = head.collect();
        let lines = || std::iter::once(&head).filter(|head| !head.is_empty()).chain(&self.rows);
        let columns = lines().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let least = self.widths_min.get(column).copied().unwrap_or(0);
            lines().filter_map(|row| row.get(column)).map(Cell::width).max().unwrap_or(0).max(least)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        // A heading over nothing is left out with its column.
        let said = |column: usize| {
            column < self.widths_min.len()
                || self.rows.iter().any(|row| row.get(column).is_some_and(|cell| cell.width() > 0))
        };
        let mut text = String::new();
        for row in lines() {
            let columns = row.iter().zip(&widths).enumerate().filter(|(column, _)| said(*column));
            let cells = columns.map(|(_, (cell, width))| cell.render(*width, color));
            text.push_str(cells.collect::<Vec<_>>().join(GAP).trim_end());
            text.push('\n');
        }
        text
    }
}

impl Cell {
    pub(crate) fn painted(text: impl Into<String>, paint: Paint) -> Self {
        Self { text: printable(&text.into()), paint, right: false }
    }

    pub(crate) fn dim(text: impl Into<String>) -> Self {
        Self::painted(text, Paint::Dim)
    }

    /// A number, to the right.
    pub(crate) fn number(number: impl std::fmt::Display) -> Self {
        Self { text: number.to_string(), paint: Paint::Plain, right: true }
    }

    /// The same in another colour.
    pub(crate) fn paint(self, paint: Paint) -> Self {
        Self { paint, ..self }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }

    fn render(&self, width: usize, color: bool) -> String {
        let fill = " ".repeat(width.saturating_sub(self.width()));
        let text = self.paint.apply(&self.text, color);
        if self.right { format!("{fill}{text}") } else { format!("{text}{fill}") }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::painted(text, Paint::Plain)
    }
}

pub(crate) use tenure_core::text::printable;

/// The first `max` characters, with a mark where something is missing.
pub(crate) fn shorten(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_numbers_go_right() {
        let mut table = Table::new(&["NAME", "DUE", "NOTE"]);
        table.row(vec!["mail".into(), Cell::number(5), "".into()]);
        table.row(vec!["a".into(), Cell::number(1_200), "x\x1b[2Jy".into()]);
        assert_eq!(table.render(false), "NAME   DUE  NOTE\nmail     5\na     1200  x\\u{1b}[2Jy\n");
    }

    #[test]
    fn a_column_without_content_is_left_out() {
        let mut table = Table::new(&["A", "B", "C"]);
        table.row(vec!["1".into(), "".into(), "2".into()]);
        assert_eq!(table.render(false), "A  C\n1  2\n");
    }

    #[test]
    fn the_last_column_gives_way_to_a_narrow_terminal() {
        let table = || {
            let mut table = Table::new(&["A", "EMPTY", "NOTE"]);
            table.row(vec!["12345".into(), "".into(), "a note that is long".into()]);
            table
        };
        for (columns, note) in [(80, "a note that is long"), (20, "a note that …"), (18, "a note that is long")] {
            let mut table = table();
            table.shorten_last(columns);
            assert_eq!(table.render(false), format!("A      NOTE\n12345  {note}\n"), "{columns}");
        }
    }

    #[test]
    fn batches_with_the_same_widths_line_up() {
        let mut first = Table::with_widths(&["A", "B", "C"], &[3, 4, 0]);
        first.row(vec!["1".into(), "".into(), "x".into()]);
        let mut second = Table::with_widths(&[], &[3, 4, 0]);
        second.row(vec!["200".into(), "ab".into(), "y".into()]);
        assert_eq!(first.render(false) + &second.render(false), "A    B     C\n1          x\n200  ab    y\n");
    }

    #[test]
    fn colours_do_not_move_columns() {
        let table = Table::pairs([("state", Cell::painted("dead", Paint::Red)), ("id", Cell::from("7"))]);
        assert_eq!(table.render(false), "state  dead\nid     7\n");
        assert_eq!(table.render(true), "\x1b[2mstate\x1b[0m  \x1b[31mdead\x1b[0m\n\x1b[2mid\x1b[0m     7\n");
    }

    #[test]
    fn long_text_is_cut_with_a_mark() {
        assert_eq!((shorten("abcdef", 6).as_str(), shorten("abcdefg", 6).as_str()), ("abcdef", "abcde…"));
    }
}
