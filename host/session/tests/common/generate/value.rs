//! Random numbers, strings and values, as JSON text.

/// A small generator (splitmix64): the same numbers for the same seed, everywhere.
pub struct Rng {
    state: u64,
    /// Choices that somebody else has made, to be used up first.
    chosen: std::collections::VecDeque<u8>,
    /// How often odd bytes occur in strings, per mille.
    pub odd: u32,
}

impl Rng {
    pub fn new(seed: u64) -> Rng {
        // Neighbouring seeds must not give one another's numbers, only shifted.
        let mut first = Rng { state: seed, chosen: Default::default(), odd: 0 };
        first.state = first.next();
        first
    }

    /// The choices of a fuzzer, a byte each where that is enough; when they are used up, those of seed 0.
    pub fn of(choices: &[u8]) -> Rng {
        Rng { chosen: choices.iter().copied().collect(), ..Rng::new(0) }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to but not including `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        let end = end.max(1);
        match self.chosen.pop_front() {
            Some(low) if end > 256 => (u32::from(self.chosen.pop_front().unwrap_or(0)) << 8 | u32::from(low)) % end,
            Some(byte) => u32::from(byte) % end,
            None => (self.next() >> 33) as u32 % end,
        }
    }

    pub fn per_mille(&mut self, chance: u32) -> bool {
        self.below(1000) < chance
    }

    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u32) as usize]
    }

    /// A length: mostly short, sometimes long.
    pub fn length(&mut self) -> u32 {
        let end = self.pick(&[3, 10, 10, 40, 40, 200, 1000, 6000]);
        self.below(end)
    }
}

const PLAIN: &[&str] = &["let", "fn ", "return", " the ", "session", "x", "\\n", "\\\"", "/tmp/a", ", "];
const EXOTIC: &[&str] = &[
    "é",
    "日本",
    "😀",
    "\u{2028}",
    "\\u0041",
    "\\u00e9",
    "\\ud83d\\ude00",
    "\\/",
    "\\b\\f\\r\\t",
    "\\\\",
    "\u{7f}",
    "\\u0000",
    "\\u001f",
    "\\u2028",
    "\\uD83D\\uDE00",
];
const LONE: &[&str] = &["\\ud800", "\\udc00", "\\ud800\\ud800", "\\udc00\\ud83d\\ude00", "\\ud83dx", "\\ud800\\u0041"];
/// Stands for invalid bytes until the text is turned into bytes; no generated text holds it otherwise.
const INVALID: char = '\u{e000}';
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "42",
    "-1",
    "3.5",
    "1e3",
    "1E+2",
    "1e400",
    "-1e400",
    "9007199254740993",
    "-0",
    "0.1e-7",
    "1e21",
    "1e-7",
    "100000000000000000000",
    "123456789012345680000",
    "5e-324",
    "0.000001",
    "1.50",
    "4.35",
    "1e-400",
];

impl Rng {
    /// A JSON string of about this many units.
    pub fn string(&mut self, length: u32) -> String {
        let mut text = String::from("\"");
        let exotic = self.pick(&[0, 0, 0, 100, 400]);
        let odd = self.odd;
        while text.len() <= length as usize {
            if self.per_mille(exotic) {
                text.push_str(self.pick(EXOTIC));
            } else if self.per_mille(odd) {
                match self.below(3) {
                    0 => text.push(INVALID),
                    _ => text.push_str(self.pick(LONE)),
                }
            } else {
                text.push_str(self.pick(PLAIN));
            }
        }
        text.push('"');
        text
    }

    /// A JSON string of any length.
    pub fn text(&mut self) -> String {
        let length = self.length();
        self.string(length)
    }

    /// Any JSON value.
    pub fn value(&mut self, depth: u32) -> String {
        match self.below(if depth == 0 { 4 } else { 7 }) {
            0 => self.pick(&["true", "false", "null"]).to_owned(),
            1 => self.pick(NUMBERS).to_owned(),
            2 | 3 => self.string(12),
            4 => self.list(depth),
            _ => self.object(depth),
        }
    }

    fn list(&mut self, depth: u32) -> String {
        let items: Vec<_> = (0..self.below(4)).map(|_| self.value(depth - 1)).collect();
        let comma = self.pick(&[",", ",", " , "]);
        format!("[{}]", items.join(comma))
    }

    pub fn object(&mut self, depth: u32) -> String {
        let members: Vec<_> = (0..self.below(5)).map(|_| self.member(depth)).collect();
        let comma = self.pick(&[",", ",", ", "]);
        format!("{{{}}}", members.join(comma))
    }

    fn member(&mut self, depth: u32) -> String {
        let key = match self.below(4) {
            0 => self.string(6),
            _ => self
                .pick(&["\"a\"", "\"b\"", "\"path\"", "\"10\"", "\"2\"", "\"__proto__\"", "\"\\u0061\"", "\"\""])
                .to_owned(),
        };
        let colon = self.pick(&[":", ":", ": "]);
        format!("{key}{colon}{}", self.value(depth.saturating_sub(1)))
    }
}

/// The text as bytes, with bytes that are no UTF-8 where they were meant to be.
pub fn bytes_of(text: &str, rng: &mut Rng) -> Vec<u8> {
    let invalid: &[&[u8]] =
        &[b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80", b"\x80"];
    let mut out = Vec::with_capacity(text.len());
    for (index, part) in text.split(INVALID).enumerate() {
        if index > 0 {
            out.extend_from_slice(rng.pick(invalid));
        }
        out.extend_from_slice(part.as_bytes());
    }
    out
}
