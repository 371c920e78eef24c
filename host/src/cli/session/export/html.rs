//! Text of a session as HTML: escaped, or as the markdown that it mostly is. No markup of the session's own gets through.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::cli::text;

/// Longer texts are shown as they are: nobody wrote so much for a reader.
const MOST: usize = 256 * 1024;
/// Elements within each other; what is deeper stands in the last.
const DEEP: usize = 40;

/// The text for an element or an attribute between double quotes. What would be unseen, or turn the text around, is a
/// sign.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    push_escaped(&mut out, text);
    out
}

fn push_escaped(out: &mut String, text: &str) {
    let text = text.replace("\r\n", "\n");
    let mut signs = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if text::is_unseen(c) => {
                signs.clear();
                signs.push(c);
                out.push_str(&text::seen(&signs));
            }
            c => out.push(c),
        }
    }
}

/// Text as it stands.
#[must_use]
pub fn pre(text: &str) -> String {
    format!("<pre>{}</pre>", escaped(text))
}

/// What a program printed, without the sequences that colour it.
#[must_use]
pub fn printed(text: &str) -> String {
    pre(&without_colours(text))
}

/// Only whole sequences of numbers that end in `m` go; any other escape stays, to be seen.
#[must_use]
pub fn without_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut pieces = text.split("\u{1b}[");
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(piece.len());
        match piece[end..].strip_prefix('m') {
            Some(rest) => out.push_str(rest),
            None => {
                out.push_str("\u{1b}[");
                out.push_str(piece);
            }
        }
    }
    out
}

/// Markdown as HTML. Links lead to web pages only, pictures are links, and HTML in it is text.
#[must_use]
pub fn markdown(text: &str) -> String {
    if text.len() > MOST {
        return pre(text);
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Page { out: String::with_capacity(text.len() * 2), open: Vec::new() };
    Parser::new_ext(text, options).for_each(|event| page.take(event));
    page.out
}

/// HTML that is being made.
struct Page {
    out: String,
    /// What ends each element that is open; nothing for one that is not shown.
    open: Vec<&'static str>,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(end) => self.end(end),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => push_escaped(&mut self.out, &text),
            Event::Code(text) => self.put(&["<code>", &escaped(&text), "</code>"]),
            Event::SoftBreak | Event::HardBreak => self.out.push_str("<br>\n"),
            Event::Rule => self.out.push_str("<hr>\n"),
            Event::TaskListMarker(done) => self.out.push_str(if done { "☑ " } else { "☐ " }),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                push_escaped(&mut self.out, &text);
            }
        }
    }

    fn put(&mut self, pieces: &[&str]) {
        pieces.iter().for_each(|piece| self.out.push_str(piece));
    }

    fn start(&mut self, tag: &Tag<'_>) {
        if self.open.len() >= DEEP {
            return self.open.push("");
        }
        let end = match tag {
            Tag::Heading { level, .. } => self.heading(*level),
            Tag::CodeBlock(kind) => self.code(kind),
            Tag::List(Some(first)) => self.element(&format!("<ol start=\"{first}\">"), "</ol>\n"),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.link(dest_url),
            Tag::Paragraph => self.element("<p>", "</p>\n"),
            Tag::BlockQuote(_) => self.element("<blockquote>", "</blockquote>\n"),
            Tag::List(None) => self.element("<ul>", "</ul>\n"),
            Tag::Item => self.element("<li>", "</li>\n"),
            Tag::Table(_) => self.element("<table>", "</table>\n"),
            Tag::TableHead => self.element("<tr class=\"head\">", "</tr>\n"),
            Tag::TableRow => self.element("<tr>", "</tr>\n"),
            Tag::TableCell => self.element("<td>", "</td>"),
            Tag::Emphasis => self.element("<em>", "</em>"),
            Tag::Strong => self.element("<strong>", "</strong>"),
            Tag::Strikethrough => self.element("<s>", "</s>"),
            Tag::HtmlBlock => self.element("<p>", "</p>\n"),
            _ => "",
        };
        self.open.push(end);
    }

    fn end(&mut self, _: TagEnd) {
        let end = self.open.pop().unwrap_or_default();
        self.out.push_str(end);
    }

    fn element(&mut self, start: &str, end: &'static str) -> &'static str {
        self.out.push_str(start);
        end
    }

    /// The page has headings of its own: those of a message are below them.
    fn heading(&mut self, level: HeadingLevel) -> &'static str {
        match level {
            HeadingLevel::H1 | HeadingLevel::H2 => self.element("<h3>", "</h3>\n"),
            HeadingLevel::H3 => self.element("<h4>", "</h4>\n"),
            _ => self.element("<h5>", "</h5>\n"),
        }
    }

    fn code(&mut self, kind: &CodeBlockKind<'_>) -> &'static str {
        let language = match kind {
            CodeBlockKind::Fenced(info) => info.split([' ', ',']).next().unwrap_or_default(),
            CodeBlockKind::Indented => "",
        };
        if !language.is_empty() {
            self.put(&["<span class=\"lang\">", &escaped(language), "</span>"]);
        }
        self.element("<pre class=\"code\">", "</pre>\n")
    }

    fn link(&mut self, to: &str) -> &'static str {
        let scheme = to.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase()).unwrap_or_default();
        // A link in a link ends the outer one.
        if self.open.contains(&"</a>") || !matches!(scheme.as_str(), "http" | "https" | "mailto") {
            return self.element("<u>", "</u>");
        }
        self.put(&["<a rel=\"noreferrer noopener\" href=\"", &escaped(to), "\">"]);
        "</a>"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_an_element_or_an_attribute() {
        assert_eq!(escaped("<b a='1' c=\"2\">&"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;");
        assert_eq!(escaped("a\u{202e}b\u{0}\u{1b}\u{9b}\r\n\tc"), "a\\u{202e}b␀␛\\u{9b}\n\tc");
        assert_eq!(pre("</pre><script>"), "<pre>&lt;/pre&gt;&lt;script&gt;</pre>");
    }

    #[test]
    fn markdown_is_markup_and_html_in_it_is_text() {
        for (text, html) in [
            ("a **b** `c<d`", "<p>a <strong>b</strong> <code>c&lt;d</code></p>\n"),
            ("# h\n\nx\ny", "<h3>h</h3>\n<p>x<br>\ny</p>\n"),
            ("<script>alert(1)</script>\n", "<p>&lt;script&gt;alert(1)&lt;/script&gt;\n</p>\n"),
            ("a <img src=x onerror=y> b", "<p>a &lt;img src=x onerror=y&gt; b</p>\n"),
            ("[a](javascript:alert(1))", "<p><u>a</u></p>\n"),
            ("![a](https://x/\"y)", "<p><a rel=\"noreferrer noopener\" href=\"https://x/&quot;y\">a</a></p>\n"),
            ("```a\"><b\nc<d\n```", "<span class=\"lang\">a&quot;&gt;&lt;b</span><pre class=\"code\">c&lt;d\n</pre>\n"),
            ("- [x] a", "<ul>\n<li>☑ a</li>\n</ul>\n".replace("<ul>\n", "<ul>").as_str()),
        ] {
            assert_eq!(markdown(text), html, "{text}");
        }
    }

    #[test]
    fn no_text_makes_a_page_too_deep_or_takes_for_ever() {
        for odd in [">", "[", "*a ", "- ", "`", "![", "<", "|", "&#", "\\", "**a _b ", "(", "[a]("] {
            let html = markdown(&odd.repeat(MOST / odd.len()));
            let deep = html.matches("<blockquote>").count().max(html.matches("<ul>").count());
            assert!(deep <= DEEP, "{odd}: {deep}");
        }
        assert!(markdown(&"a".repeat(MOST + 1)).starts_with("<pre>"));
    }

    #[test]
    fn what_a_program_printed_is_shown_without_colours() {
        assert_eq!(printed("\u{1b}[1;32mok\u{1b}[0m \u{1b}[2J"), "<pre>ok ␛[2J</pre>");
    }
}
