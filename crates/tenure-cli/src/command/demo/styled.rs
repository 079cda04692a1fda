//! A line of text in colours that knows how wide it is.

use crate::paint::Paint;
use crate::table::printable;

/// Pieces of one line.
#[derive(Debug, Clone, Default)]
pub(super) struct Styled(Vec<(String, Paint)>);

impl Styled {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn plain(self, text: impl AsRef<str>) -> Self {
        self.paint(text, Paint::Plain)
    }

    pub(super) fn paint(mut self, text: impl AsRef<str>, paint: Paint) -> Self {
        self.0.push((printable(text.as_ref()), paint));
        self
    }

    /// Spaces up to this column.
    pub(super) fn to(self, column: usize) -> Self {
        let fill = column.saturating_sub(self.width());
        self.plain(" ".repeat(fill))
    }

    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| text.chars().count()).sum()
    }

    /// The line, cut with a mark where it is wider than `width`.
    pub(super) fn render(&self, width: usize, color: bool) -> String {
        let cut = self.width() > width;
        let mut left = if cut { width.saturating_sub(1) } else { width };
        let mut line = String::new();
        for (text, paint) in &self.0 {
            let text: String = text.chars().take(left).collect();
            left -= text.chars().count();
            if !text.is_empty() {
                line.push_str(&paint.apply(&text, color));
            }
        }
        if cut {
            line.push('…');
        }
        line.trim_end().to_owned()
    }
}

/// Breaks a text between words into lines of at most `width` characters; a longer word has a line of its own.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    // Not at every white space: a number and its unit are kept together by one that does not break.
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_take_no_room_and_what_is_too_wide_is_cut() {
        let line = Styled::new().paint("worker-1", Paint::Red).to(10).plain("runs \x1b[2J");
        assert_eq!((line.width(), line.render(80, false).as_str()), (24, "worker-1  runs \\u{1b}[2J"));
        assert_eq!(line.render(14, false), "worker-1  run…");
        assert_eq!(line.render(5, true), "\x1b[31mwork\x1b[0m…");
    }

    #[test]
    fn words_stay_whole() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("extraordinary", 5), ["extraordinary"]);
        assert_eq!(wrap("in 1.8\u{a0}s", 7), ["in", "1.8\u{a0}s"]);
    }
}
