//! Dice that fall the same every time.

pub struct Dice(pub u64);

const SMALL: &str = "abcdefghijklmnopqrstuvwxyz";
const CAPITAL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const WORDS: [&str; 16] = [
    "copper", "meadow", "falcon", "winter", "harbor", "violet", "thunder", "maple", "silver", "ocean", "pepper",
    "rocket", "saddle", "timber", "walnut", "zephyr",
];

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn of(&mut self, signs: &str, len: usize) -> String {
        (0..len).map(|_| char::from(signs.as_bytes()[self.below(signs.len())])).collect()
    }

    /// What a bracket of a pattern stands for.
    pub fn part(&mut self, part: &str) -> String {
        let len = part[1..].parse().unwrap_or(0);
        match &part[..1] {
            "A" => self.of(&format!("{SMALL}{CAPITAL}0123456789"), len),
            "S" => self.of(&format!("{SMALL}0123456789"), len),
            "C" => self.of(&format!("{CAPITAL}234567"), len),
            "H" => self.of("0123456789abcdef", len),
            "D" => self.of("123456789", len),
            "U" => self.of(&format!("{SMALL}{CAPITAL}0123456789-_"), len),
            "B" => self.of(&format!("{SMALL}{CAPITAL}0123456789+/"), len),
            "G" => [8, 4, 4, 4, 12].map(|len| self.of("0123456789abcdef", len)).join("-"),
            "K" => self.chosen(),
            other => panic!("{other}?"),
        }
    }

    /// As people choose them, or as their manager throws them.
    fn chosen(&mut self) -> String {
        let (word, other) = (self.pick(&WORDS), self.pick(&WORDS));
        let capital = format!("{}{}", word[..1].to_uppercase(), &word[1..]);
        match self.below(5) {
            0 => format!("{capital}{}!", 1990 + self.below(40)),
            1 => format!("{word}-{other}-{}", self.below(100)),
            2 => format!("{}{}{}", self.part("A7"), self.pick(&["!", "#", "@", "%"]), self.part("A6")),
            3 => self.part("A20"),
            _ => format!("{capital}_{other}{}", 10 + self.below(90)),
        }
    }
}
