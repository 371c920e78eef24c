//! Sessions at random: trees of every entry type, compactions at all kinds of kept ids, edits of all kinds of targets,
//! labels, several roots, old versions and odd bytes. One seed makes one session, on every machine.

mod entry;
mod message;
pub mod value;
mod wild;

use value::Rng;

/// One random session file.
pub fn session(seed: u64) -> Vec<u8> {
    chosen(&mut Rng::new(seed))
}

/// The same with values of the wrong type, members that are missing or there twice, in any place.
pub fn wild(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(!seed);
    let chance = rng.pick(&[3, 10, 10, 30, 100]);
    wild::wilder(&session(seed), &mut rng, chance)
}

/// The same of a sound and short session, so that some of them still are valid.
pub fn gently_wild(seed: u64) -> Vec<u8> {
    let mut maker = Maker::new(Rng::new(seed));
    (maker.odd, maker.rng.odd) = (0, 0);
    let session = maker.session(&[1, 2, 5, 10]);
    wild::wilder(&session, &mut Rng::new(!seed), 10)
}

/// The session file that these choices make.
pub fn chosen(rng: &mut Rng) -> Vec<u8> {
    let mut maker = Maker::new(std::mem::replace(rng, Rng::new(0)));
    let session = maker.session(&[0, 1, 2, 5, 10, 20, 40, 80, 200]);
    *rng = maker.rng;
    session
}

/// An entry that was made.
struct Made {
    /// Its id as it stands in the JSON text.
    id: String,
    parent: Option<usize>,
    kind: Hint,
}

/// What later entries like to name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hint {
    User,
    Calls,
    Results,
    System,
    Summary,
    Compaction,
    Label,
    Note,
}

/// A session in the making.
struct Maker {
    rng: Rng,
    out: Vec<u8>,
    made: Vec<Made>,
    /// Where the writer stands: the next parent.
    leaf: Option<usize>,
    version: u32,
    clock: i64,
    /// How often odd things happen, per mille; 0 in half of all sessions.
    odd: u32,
    lines: usize,
}

impl Maker {
    fn new(mut rng: Rng) -> Maker {
        let odd = rng.pick(&[0, 0, 0, 5, 20, 60]);
        let version = rng.pick(&[3, 3, 3, 3, 3, 3, 2, 1]);
        rng.odd = odd;
        Maker { rng, out: Vec::new(), made: Vec::new(), leaf: None, version, clock: 1_767_225_600_000, odd, lines: 0 }
    }

    /// A whole file with one of these numbers of entries.
    fn session(&mut self, entries: &[u32]) -> Vec<u8> {
        self.header();
        for _ in 0..self.rng.pick(entries) {
            self.between_lines();
            match self.rng.per_mille(8) {
                true => self.recovery(),
                false => self.entry(),
            }
        }
        if self.rng.per_mille(250) {
            self.recovery();
        }
        self.ending();
        std::mem::take(&mut self.out)
    }

    fn oddly(&mut self) -> bool {
        let odd = self.odd;
        self.rng.per_mille(odd)
    }

    fn line(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
        self.out.push(b'\n');
        self.lines += 1;
    }

    fn header(&mut self) {
        let odd_version = self.oddly();
        let version = match self.version {
            1 => self.rng.pick(&["", r#""version":1,"#, r#""version":null,"#, r#""version":0,"#, r#""version":"1","#]),
            2 => self.rng.pick(&[r#""version":2,"#, r#""version":2.5,"#, r#""version":"2","#]),
            _ if odd_version => {
                self.rng.pick(&[r#""version":"3","#, r#""version":4,"#, r#""version":3.5,"#, r#""version":"x","#])
            }
            _ => r#""version":3,"#,
        };
        let head = format!(
            r#"{{"type":"session",{version}"id":"01a00000-0000-7000-8000-000000000000","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/dev/project"}}"#
        );
        if self.oddly() {
            self.line(b"");
        }
        self.line(head.as_bytes());
    }

    /// Now and then something that is no entry stands between two lines.
    fn between_lines(&mut self) {
        if !self.oddly() {
            return;
        }
        let junk: &[&[u8]] = &[
            b"",
            b"   ",
            b"\t\r",
            b"{\"type\":\"message\",\"id\":\"half",
            b"null",
            b"false",
            b"0",
            b"\"\"",
            b"garbage",
            b"{\"a\":1}{\"b\":2}",
            b"\0\0\0\0",
            b"\xff\xfe",
            b"{\"type\":\"session\",\"id\":\"again\",\"version\":3}",
            b"{\"type\":\"custom\",\"id\":\"bad\x01\"}",
            b"[1,2",
            b"{\"id\":01}",
            b"{\"id\":1.}",
            b"\xc2\x85",
            b"\xef\xbb\xbf{\"id\":\"x\"}",
        ];
        let nonempty: &[&[u8]] =
            &[b"[1,2]", b"42", b"\"text\"", b"{}", b"true", b"{\"type\":\"custom\",\"parentId\":null}"];
        let junk = self.rng.pick(junk);
        // Pi cannot migrate a value that is no object, and would not open the file.
        let text = if self.version > 1 && self.rng.per_mille(150) { self.rng.pick(nonempty) } else { junk };
        self.line(text);
    }

    /// The end of the file: mostly a line's end, sometimes less.
    fn ending(&mut self) {
        if self.oddly() || self.rng.per_mille(30) {
            match self.rng.below(4) {
                0 => drop(self.out.pop()),
                1 => self.out.extend_from_slice(b"{\"type\":\"message\",\"id\":\"torn"),
                2 => self.out.extend_from_slice(b"   "),
                _ => self.out.extend_from_slice(b"\n\n"),
            }
        }
    }

    /// A time as it stands in the text, after all before it.
    fn timestamp(&mut self) -> String {
        self.clock += i64::from(self.rng.below(5000));
        if self.oddly() {
            return self.rng.pick(ODD_TIMES).to_owned();
        }
        format!("\"{}\"", pi_session::time::iso(self.clock))
    }
}

/// Timestamps as JavaScript may meet them.
const ODD_TIMES: &[&str] = &[
    "\"2026-01-02\"",
    "\"2026-01-02T03:04:05Z\"",
    "\"2026-01-02T03:04:05.5Z\"",
    "\"2026-01-02T03:04:05+02:00\"",
    "\"2026-01-02T03:04Z\"",
    "\"2026-01-02T24:00:00Z\"",
    "\"2026-13-02T03:04:05Z\"",
    "\"2026-02-30T03:04:05Z\"",
    "\"nonsense\"",
    "\"\"",
    "null",
    "1767225600000",
    "1767225600000.75",
    "true",
    "[]",
    "\"2026\"",
    "\"2026-03\"",
    "\"2026-01-02T03:04:05.123456Z\"",
    "\"+002026-01-02T03:04:05Z\"",
    "\"2026-01-02T03:04:05\"",
    "{}",
];
