//! Lines in colours, for terminals that want them.

use super::text;

/// How a piece of a line is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// As the terminal paints all else.
    Plain,
    /// What matters less.
    Dim,
    /// What matters more.
    Bold,
    /// A user.
    Blue,
    /// What Pi goes on from; what is well.
    Green,
    /// A label; a warning.
    Yellow,
    /// A compaction, and what else changes the context.
    Magenta,
    /// A tool.
    Cyan,
    /// What is wrong.
    Red,
}

impl Ink {
    /// The number in the terminal's sequence; none for what is not painted.
    fn code(self) -> Option<u8> {
        Some(match self {
            Ink::Plain => return None,
            Ink::Bold => 1,
            Ink::Dim => 2,
            Ink::Red => 31,
            Ink::Green => 32,
            Ink::Yellow => 33,
            Ink::Blue => 34,
            Ink::Magenta => 35,
            Ink::Cyan => 36,
        })
    }
}

/// A line in pieces, each with its own ink. What is unseen in them is shown as a sign.
#[derive(Clone, Debug, Default)]
pub struct Row(Vec<(Ink, String)>);

impl Row {
    /// An empty line.
    #[must_use]
    pub fn new() -> Row {
        Row::default()
    }

    /// The same with this behind it.
    #[must_use]
    pub fn and(mut self, ink: Ink, text: &str) -> Row {
        self.0.push((ink, text::seen(text).into_owned()));
        self
    }

    /// The same with this behind it, cut or filled to so many columns.
    #[must_use]
    pub fn column(self, ink: Ink, wide: usize, text: &str) -> Row {
        let text = text::fit(&text::seen(text), wide);
        self.and(ink, &text)
    }

    /// The same, the text at the right of its column.
    #[must_use]
    pub fn number(self, ink: Ink, wide: usize, text: &str) -> Row {
        self.and(ink, &format!("{text:>wide$}"))
    }

    /// The line in so many columns, without spaces at its end.
    #[must_use]
    pub fn render(&self, most: usize, colours: bool) -> String {
        let (mut out, mut left) = (String::new(), most);
        let whole: String = self.0.iter().map(|(_, text)| text.as_str()).collect();
        let mut bytes = whole.trim_end().len();
        let too_long = text::columns(whole.trim_end()) > most;
        for (ink, piece) in &self.0 {
            let piece = &piece[..piece.len().min(bytes)];
            bytes -= piece.len();
            let wide = text::columns(piece);
            // The last one that fits whole is cut too, if there is more behind it.
            let shown = if too_long && wide >= left { text::cut_short(piece, left) } else { piece.into() };
            push(&mut out, *ink, &shown, colours);
            left = left.saturating_sub(wide);
            if left == 0 || bytes == 0 {
                break;
            }
        }
        out
    }
}

fn push(out: &mut String, ink: Ink, piece: &str, colours: bool) {
    match ink.code().filter(|_| colours && !piece.is_empty()) {
        Some(code) => out.push_str(&format!("\u{1b}[{code}m{piece}\u{1b}[0m")),
        None => out.push_str(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row::new().and(Ink::Dim, "3f2a ").and(Ink::Blue, "user ").and(Ink::Plain, "日本語 and more  ")
    }

    #[test]
    fn a_line_is_cut_to_columns_and_its_end_is_seen() {
        for (most, text) in [
            (80, "3f2a user 日本語 and more"),
            (25, "3f2a user 日本語 and more"),
            (24, "3f2a user 日本語 and mo…"),
            (14, "3f2a user 日…"),
            (10, "3f2a user…"),
            (5, "3f2a…"),
            (3, "3f…"),
        ] {
            assert_eq!(row().render(most, false), text, "{most}");
            assert!(text::columns(text) <= most);
        }
    }

    #[test]
    fn colours_are_there_only_where_they_are_wanted() {
        assert_eq!(row().render(6, true), "\u{1b}[2m3f2a \u{1b}[0m\u{1b}[34m…\u{1b}[0m");
        assert!(!row().render(80, false).contains('\u{1b}'));
        assert_eq!(Row::new().and(Ink::Red, "\u{1b}[0m").render(80, false), "␛[0m");
    }

    #[test]
    fn columns_stand_below_each_other() {
        let line =
            |a, b| Row::new().column(Ink::Plain, 6, a).number(Ink::Plain, 4, b).and(Ink::Plain, "|").render(80, false);
        assert_eq!(line("日本語", "1"), "日本語   1|");
        assert_eq!(line("too long", "12345"), "too l…12345|");
    }
}
