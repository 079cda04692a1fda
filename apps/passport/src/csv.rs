//! Comma-separated values, strictly: RFC 4180, with line feeds alone as line ends as well, and a byte order mark skipped.
//!
//! What is read here is hashed and signed, so nothing is guessed: a quote in the middle of a field, text behind a closing
//! quote, a quote that is never closed and a carriage return alone are refused with their place.

use crate::code::Refusal;

/// One line of a table. A field with line feeds in quotes makes it longer than one line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The line of the file where it begins; 1 is the first.
    pub line: usize,
    /// Its fields, unquoted, as they were written.
    pub fields: Vec<String>,
}

/// Reads the records of `text` one by one; lines with nothing on them are skipped.
pub struct Records<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
    failed: bool,
}

impl<'a> Records<'a> {
    /// Begins at the first line.
    pub fn new(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self { rest: text.chars().peekable(), line: 1, failed: false }
    }

    fn record(&mut self) -> Result<Option<Record>, Refusal> {
        loop {
            let line = self.line;
            let mut fields = Vec::new();
            let mut more = self.rest.peek().is_some();
            if !more {
                return Ok(None);
            }
            while more {
                let (field, another) = self.field(fields.len() + 1)?;
                fields.push(field);
                more = another;
            }
            if fields.iter().any(|field| !field.is_empty()) || fields.len() > 1 {
                return Ok(Some(Record { line, fields }));
            }
        }
    }

    /// One field, and whether another one follows on the same line.
    fn field(&mut self, number: usize) -> Result<(String, bool), Refusal> {
        let mut field = String::new();
        if self.rest.next_if_eq(&'"').is_some() {
            self.quoted(&mut field, number)?;
        } else {
            while let Some(c) = self.rest.next_if(|c| !matches!(c, ',' | '\r' | '\n')) {
                if c == '"' {
                    let out = "put the whole field in quotes and write \"\" for each one inside";
                    return Err(self.refuse(number, &format!("a quote stands inside of the field: {out}")));
                }
                field.push(c);
            }
        }
        match self.rest.next() {
            None => Ok((field, false)),
            Some(',') => Ok((field, true)),
            Some('\n') => {
                self.line += 1;
                Ok((field, false))
            }
            Some('\r') if self.rest.next_if_eq(&'\n').is_some() => {
                self.line += 1;
                Ok((field, false))
            }
            Some('\r') => Err(self.refuse(number, "a carriage return stands alone: lines end with LF or CR LF")),
            Some(c) => {
                let why =
                    format!("`{}` follows the closing quote: a comma or a new line is expected", c.escape_default());
                Err(self.refuse(number, &why))
            }
        }
    }

    /// The rest of a field whose opening quote was read, the closing one included.
    fn quoted(&mut self, field: &mut String, number: usize) -> Result<(), Refusal> {
        let opened = self.line;
        while let Some(c) = self.rest.next() {
            match c {
                '"' if self.rest.next_if_eq(&'"').is_none() => return Ok(()),
                '\n' => self.line += 1,
                _ => {}
            }
            field.push(c);
        }
        self.line = opened;
        Err(self.refuse(number, "its opening quote is never closed"))
    }

    fn refuse(&self, number: usize, why: &str) -> Refusal {
        Refusal::invalid(format!("line {}, column {number} is refused: {why}", self.line))
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, Refusal>;

    /// After a refusal there is nothing more: where the next record begins is unknown.
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.record();
        self.failed = record.is_err();
        record.transpose()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Vec<(usize, Vec<String>)>, Refusal> {
        Records::new(text).map(|record| record.map(|record| (record.line, record.fields))).collect()
    }

    fn fields(fields: &[&str]) -> Vec<String> {
        fields.iter().map(|&field| field.to_owned()).collect()
    }

    #[test]
    fn line_feeds_carriage_returns_and_a_mark_are_all_read() {
        let expected = vec![(1, fields(&["a", "b"])), (2, fields(&["1", ""])), (3, fields(&["", "2"]))];
        for text in ["a,b\n1,\n,2\n", "a,b\r\n1,\r\n,2\r\n", "\u{feff}a,b\n1,\n,2", "a,b\r\n1,\n,2\r\n\r\n\n"] {
            assert_eq!(read(text).unwrap(), expected, "{text:?}");
        }
        assert_eq!(read("").unwrap(), []);
        assert_eq!(read("\u{feff}\n\n").unwrap(), []);
    }

    #[test]
    fn quoted_fields_hold_commas_quotes_and_lines() {
        let records = read("\"a,b\",\"say \"\"hi\"\"\"\n\"two\r\nlines\",\"\"\nlast,1\n").unwrap();
        assert_eq!(records[0], (1, fields(&["a,b", "say \"hi\""])));
        assert_eq!(records[1], (2, fields(&["two\r\nlines", ""])));
        assert_eq!(records[2], (4, fields(&["last", "1"])), "the line of the file, not of the table");
    }

    #[test]
    fn what_would_be_guessed_is_refused_with_its_place() {
        for (text, place, why) in [
            ("a,b\n1,2\"3\n", "line 2, column 2", "inside of the field"),
            ("a\n\"1\"x\n", "line 2, column 1", "`x` follows"),
            ("a,\"b\nc\nd", "line 1, column 2", "never closed"),
            ("a\r1\n", "line 1, column 1", "stands alone"),
            ("a, \"b\"\n", "line 1, column 2", "inside of the field"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.message.contains(place) && refused.message.contains(why), "{refused}");
        }
    }

    #[test]
    fn nothing_is_read_after_a_refusal() {
        let mut records = Records::new("a\"\nb\n");
        assert!(records.next().unwrap().is_err());
        assert!(records.next().is_none());
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_read_back(
            table in proptest::collection::vec(proptest::collection::vec("[a,\"\r\n é]{0,5}", 2..4), 0..5),
        ) {
            let quote = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let line = |row: &Vec<String>| row.iter().map(quote).collect::<Vec<_>>().join(",") + "\r\n";
            let text: String = table.iter().map(line).collect();
            let read: Vec<_> = read(&text).unwrap().into_iter().map(|(_, fields)| fields).collect();
            prop_assert_eq!(read, table);
        }

        #[test]
        fn no_text_is_a_crash(text in "[a,\"\r\n]{0,40}") {
            let _ = read(&text);
        }
    }
}
