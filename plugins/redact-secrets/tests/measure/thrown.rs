//! Secrets that nobody has, thrown when the test runs: so no file of this repository holds what looks like one.

/// Dice that fall the same every time.
pub struct Dice(pub u64);

pub const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
pub const URL64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
pub const B64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub const CAPS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
pub const HEX: &str = "0123456789abcdef";
pub const SMALL: &str = "abcdefghijklmnopqrstuvwxyz0123456789";

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    pub fn of(&mut self, signs: &str, len: usize) -> String {
        (0..len).map(|_| char::from(signs.as_bytes()[self.below(signs.len())])).collect()
    }

    pub fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// A secret of this kind, and whether it shows what it is by itself.
pub fn secret(kind: &str, dice: &mut Dice) -> String {
    match kind {
        "github" => {
            let (prefix, body) = (dice.pick(&["ghp_", "gho_", "ghs_"]), dice.of(ALNUM, 30));
            let sum = redact_secrets::find::prefixes::checksum(body.as_bytes());
            format!("{prefix}{body}{}", String::from_utf8_lossy(&sum))
        }
        "github-fine" => format!("github_{}_{}_{}", "pat", dice.of(ALNUM, 22), dice.of(ALNUM, 59)),
        "gitlab" => format!("glpat{}{}", "-", dice.of(URL64, 20)),
        "npm" => format!("npm{}{}", "_", dice.of(ALNUM, 36)),
        "aws-id" => format!("AK{}{}", "IA", dice.of(CAPS, 16)),
        "openai" => format!("sk-{}-{}", "proj", dice.of(URL64, 120)),
        "openai-old" => format!("sk{}{}", "-", dice.of(ALNUM, 48)),
        "anthropic" => format!("sk-{}-api03-{}AA", "ant", dice.of(URL64, 93)),
        "slack" => {
            format!("xo{}-{}-{}-{}", "xb", dice.of("123456789", 12), dice.of("123456789", 13), dice.of(ALNUM, 24))
        }
        "stripe" => format!("sk_{}_{}", "live", dice.of(ALNUM, 24)),
        "google" => format!("AI{}{}", "za", dice.of(URL64, 35)),
        "huggingface" => format!("hf{}{}", "_", dice.of(ALNUM, 34)),
        "sendgrid" => format!("SG{}{}.{}", ".", dice.of(URL64, 22), dice.of(URL64, 43)),
        "jwt" => format!(
            "ey{}.ey{}.{}",
            dice.of("J", 1) + "hbGciOiJIUzI1NiJ9",
            dice.of("J", 1) + &dice.of(ALNUM, 60),
            dice.of(URL64, 43)
        ),
        "aws-secret" => dice.of(B64, 40),
        "hex-key" => dice.of(HEX, 40),
        "alnum-key" => dice.of(ALNUM, 32),
        "small-key" => dice.of(SMALL, 24),
        "uuid" => [8, 4, 4, 4, 12].map(|len| dice.of(HEX, len)).join("-"),
        "password" => {
            format!("{}{}{}", dice.of("ABCDEFGHKLMN", 1), dice.of(SMALL, 8), dice.pick(&["!7", "#2", "-9x", "_4Q"]))
        }
        "pem" => {
            let lines: Vec<_> = (0..12).map(|_| dice.of(B64, 64)).collect();
            let name = dice.pick(&["RSA PRIVATE", "PRIVATE", "OPENSSH PRIVATE", "EC PRIVATE"]);
            format!("-----BEGIN {name} KEY-----\n{}\n-----END {name} KEY-----", lines.join("\n"))
        }
        other => panic!("{other}?"),
    }
}
