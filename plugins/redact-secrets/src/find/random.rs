//! Whether a value looks as if a machine had thrown dice for it.

/// What a value is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Make {
    /// Bytes.
    pub len: usize,
    /// Digits.
    pub digits: usize,
    /// Lower-case letters.
    pub lower: usize,
    /// Upper-case letters.
    pub upper: usize,
    /// Different bytes.
    pub distinct: usize,
    /// How often a letter or digit is followed by one of another sort.
    pub turns: usize,
    /// Neighbours in the alphabet, or twice the same.
    pub steps: usize,
    /// All are hexadecimal digits.
    pub hex: bool,
}

impl Make {
    /// Of these bytes.
    #[must_use]
    pub fn of(value: &[u8]) -> Self {
        let (mut seen, mut before) = ([false; 256], None);
        let mut make = Self { len: value.len(), hex: true, ..Self::default() };
        for (at, byte) in value.iter().enumerate() {
            make.hex &= byte.is_ascii_hexdigit();
            make.distinct += usize::from(!std::mem::replace(&mut seen[*byte as usize], true));
            // The capital at the beginning of a word makes no other sort of it.
            let is_initial = value.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            let sort = make.count(*byte).map(|sort| if sort == 2 && is_initial { 1 } else { sort });
            if let (Some((old_sort, old)), Some(sort)) = (before, sort) {
                make.turns += usize::from(old_sort != sort);
                make.steps += usize::from(byte.wrapping_sub(old) <= 1);
            }
            before = sort.map(|sort| (sort, *byte)).or(before);
        }
        make
    }

    fn count(&mut self, byte: u8) -> Option<u8> {
        let (count, sort) = match byte {
            b'0'..=b'9' => (&mut self.digits, 0),
            b'a'..=b'z' => (&mut self.lower, 1),
            b'A'..=b'Z' => (&mut self.upper, 2),
            _ => return None,
        };
        *count += 1;
        Some(sort)
    }

    /// Letters and digits.
    #[must_use]
    pub fn alnum(&self) -> usize {
        self.digits + self.lower + self.upper
    }
}

/// Whether it looks thrown: what people write has long runs of one sort, and what stands for a value repeats itself.
#[must_use]
pub fn looks_random(value: &[u8], at_least: usize) -> bool {
    let make = Make::of(value);
    if make.len < at_least || make.alnum() * 4 < make.len * 3 || make.steps * 3 > make.len {
        return false;
    }
    if make.hex {
        return make.digits > 0 && make.lower + make.upper > 0 && make.distinct >= 8;
    }
    let turns = make.turns * 6 >= make.len;
    let mixed = make.digits > 0 && make.lower + make.upper > 0 || make.lower > 2 && make.upper > 2;
    turns && mixed && make.distinct * 3 >= make.len.min(30)
}

/// Whether nobody can speak it: letters and digits, many of which stand in rows of consonants. What is thrown of few sorts of
/// signs changes them too seldom to look thrown otherwise.
#[must_use]
pub fn is_unspeakable(value: &[u8]) -> bool {
    let speaks = |byte: &u8| !byte.is_ascii_alphabetic() || b"aeiouy".contains(&byte.to_ascii_lowercase());
    let rows: usize = value.split(speaks).map(<[u8]>::len).filter(|row| *row >= 4).sum();
    let make = Make::of(value);
    make.len >= 20 && make.alnum() == make.len && make.digits > 0 && make.distinct >= 12 && rows * 4 >= make.len
}

/// Whether it is written in place of a value: an example, a hint, a reference, nothing.
#[must_use]
pub fn is_stand_in(value: &[u8]) -> bool {
    const WORDS: [&str; 24] = [
        "example",
        "your",
        "changeme",
        "change-me",
        "change_me",
        "placeholder",
        "dummy",
        "redacted",
        "replace",
        "insert",
        "xxxx",
        "....",
        "****",
        "todo",
        "fixme",
        "sample",
        "<",
        "${",
        "{{",
        "#{",
        "$(",
        "%s",
        "%(",
        "process.env",
    ];
    const WHOLE: [&str; 14] = [
        "null",
        "none",
        "nil",
        "undefined",
        "true",
        "false",
        "string",
        "required",
        "optional",
        "password",
        "secret",
        "token",
        "unset",
        "empty",
    ];
    let lower = value.to_ascii_lowercase();
    let contains = |word: &&str| lower.windows(word.len()).any(|part| part == word.as_bytes());
    WORDS.iter().any(contains) || WHOLE.iter().any(|word| lower == word.as_bytes()) || Make::of(value).distinct < 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_does_not_look_random() {
        for text in [
            "getAccessTokenFromStore",
            "user-service-v2-internal",
            "com.example.app.TokenProvider",
            "0123456789abcdef0123",
            "aaaaaaaaaaaaaaaaaaaaaaaa",
            "AccessTokenExpired401",
            "max_tokens_per_minute_100",
            "1234567890123456",
        ] {
            assert!(!looks_random(text.as_bytes(), 16), "{text}");
        }
    }

    #[test]
    fn what_machines_throw_does() {
        for text in
            ["q7Wm2Zx9Lp4Tn8Rv", "9f86d081884c7d659a2feaa0c55ad015", "k3j9d8s7a6f5h4g3q2w1", "Zr8/kP2+vB5nM1qLw0Xy"]
        {
            assert!(looks_random(text.as_bytes(), 16), "{text}");
        }
    }

    #[test]
    fn stand_ins_are_known() {
        for text in
            ["your-api-key-here", "<token>", "${GITHUB_TOKEN}", "xxxxxxxxxxxxxxxx", "changeme", "null", "aaaaaaaa"]
        {
            assert!(is_stand_in(text.as_bytes()), "{text}");
        }
        assert!(!is_stand_in(b"hunter2-Blue"));
    }
}
