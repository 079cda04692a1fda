//! JSON for people: indented, and otherwise exactly as it was written. A tree in between would sort members and round
//! large numbers, and a person would look for the difference in vain.

pub use crate::dead::error_text;

/// Indents a valid document by two spaces a level; empty arrays and objects stay on their line.
pub fn indent(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let mut level = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for c in json.chars() {
        if in_string {
            text.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            ' ' | '\t' | '\n' | '\r' => {}
            '}' | ']' => {
                level = level.saturating_sub(1);
                if !text.ends_with(['{', '[']) {
                    new_line(&mut text, level);
                }
                text.push(c);
            }
            _ => {
                if text.ends_with(['{', '[', ',']) {
                    new_line(&mut text, level);
                }
                text.push(c);
                match c {
                    '"' => in_string = true,
                    '{' | '[' => level += 1,
                    ':' => text.push(' '),
                    _ => {}
                }
            }
        }
    }
    text
}

fn new_line(text: &mut String, level: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(level));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_indented_and_nothing_else_changes() {
        for (json, text) in [
            ("null", "null"),
            (" [ ] ", "[]"),
            ("{}", "{}"),
            (
                r#"{"b":1,"a":[12345678901234567890.10,{}]}"#,
                "{\n  \"b\": 1,\n  \"a\": [\n    12345678901234567890.10,\n    {}\n  ]\n}",
            ),
            (r#"["a,{ \"b\" : \\","["]"#, "[\n  \"a,{ \\\"b\\\" : \\\\\",\n  \"[\"\n]"),
            (r#"[[],[[]]]"#, "[\n  [],\n  [\n    []\n  ]\n]"),
        ] {
            assert_eq!(indent(json), text);
        }
    }
}
